//! Decides what a loop does next: a pure, synchronous state machine.
//!
//! The engine sees no clock, file, process, environment or randomness, is never `async`, and cannot
//! fail. It has three entry points:
//!
//! - [`State::step`] applies one [`Event`], together with the time at which it happened. The state
//!   is a fold of the journal: applying the same events again gives the same state. A stale
//!   event (a timer that is no longer needed, an earlier iteration's exit) is ignored.
//! - [`State::orders`] derives from the state what must be running now, as a list of [`Effect`]s.
//!   The runner reconciles: it starts what is ordered and not running, and stops what is running
//!   and not ordered. Phases, timers, changed limits and crash recovery all use this mechanism.
//! - [`decide`](decide::decide) chooses, between iterations, whether the loop ends, pauses, rests
//!   or runs again. No other code makes this choice, and the order of its tests is a contract.
//!
//! # Phases
//!
//! A loop is in one [`Phase`] at a time:
//!
//! ```text
//!  NotStarted ──> Checking (preflight, iteration 0)
//!                     │
//!                     v
//!                  decide ──> Resting ──> decide      (delay, backoff, usage limits)
//!                   ^  │ ├──> Paused ───> decide      (until a person resumes)
//!                   │  │ └──> Draining ─> decide ──> Ended
//!                   │  v
//!                   │ Running ──> Killing             (timeout, marker, request, …)
//!                   │  │             │
//!                   │  v             v
//!                   │ Checking <─────┘                (the plan's checks, one by one)
//!                   │  │
//!                   │  v
//!                   └─ Committing                     (SCM tasks, if the checks are green)
//! ```
//!
//! | Phase | Orders | Left on |
//! |---|---|---|
//! | `Running`, not started | run the agent | `Started`, the durable record of the iteration |
//! | `Running` | run the agent; wake at the next deadline | `Ended`, or a reason to kill it |
//! | `Killing` | kill the agent | `Ended` |
//! | `Checking` | take a checkpoint, then run the next check | `Checked` of the last check, `Labeled` in preflight |
//! | `Committing` | run the next SCM task | `Committed` of the last task |
//! | `Resting` | wake when the rest is over | `Woke`, or any event that changes the decision |
//! | `Draining` | wait for child loops, or stop them | `Drained` |
//! | `Paused` | exit the runner | `Asked`: resume or stop |
//! | `Ended` | write `Finished`, then exit | `Asked`: resume |
//!
//! Before an iteration has started, every event makes the engine decide again, so a request or a
//! new limit takes effect at once.
//!
//! # Where to find what
//!
//! - Input: [`event`] (the journal's events), [`plan`] (what the loop was asked to do), [`act`]
//!   (what an agent does while it works) and [`signals`] (claims in an agent's text).
//! - State machine: [`state`], [`step`], [`orders`], [`iteration`] (the end of an iteration),
//!   [`decide`](mod@decide), [`proven`] (when the work is done), [`stall`] (when a loop makes no
//!   progress), [`checkpoint`] (checkpoints and the best iteration), [`label`] (what checks can prove), [`failure`] and [`fallback`] (failed agents), [`scm`] (SCM tasks),
//!   [`long_rest`] (rests to notify of), [`drain`] (child loops) and [`session`] (loops inside a client session).
//! - Output: [`outcome`] (how a loop ends) and [`prompt`] (the text of the next prompt).
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub(crate) mod act;
pub(crate) mod added_lines;
pub(crate) mod checkpoint;
pub(crate) mod commit_message;
pub(crate) mod decide;
pub(crate) mod display;
mod dispute_note;
mod done_text;
mod drain;
pub(crate) mod event;
pub(crate) mod excerpt;
mod exit_code;
pub(crate) mod failing_lines;
pub(crate) mod failure;
pub(crate) mod fallback;
pub(crate) mod fnv;
pub(crate) mod format;
pub(crate) mod graded;
mod held_out;
mod idle;
pub(crate) mod iteration;
pub(crate) mod junit;
pub(crate) mod label;
pub(crate) mod limits;
pub(crate) mod long_rest;
pub(crate) mod look;
pub(crate) mod moved;
pub(crate) mod orders;
pub(crate) mod outcome;
pub(crate) mod plain_text;
pub(crate) mod plan;
pub(crate) mod prompt;
mod proven;
pub(crate) mod receipt;
pub(crate) mod review;
pub(crate) mod scm;
pub(crate) mod screen;
pub(crate) mod session;
pub(crate) mod signals;
mod stable_name;
mod stall;
pub(crate) mod state;
mod step;
pub(crate) mod task_text;
pub(crate) mod template;
pub(crate) mod test_counts;
pub(crate) mod test_names;
pub(crate) mod test_run;
pub(crate) mod touched;
pub(crate) mod usage;
pub(crate) mod weak_check;
pub(crate) mod work_elsewhere;

#[cfg(test)]
#[expect(clippy::large_stack_arrays, reason = "tables of loops in tests")]
mod tests;

pub use act::Act;
pub(crate) use act::Tally;
pub use event::Event;
pub(crate) use event::{Marker, Now, ProcessExit};
pub use exit_code::ExitCode;
pub(crate) use limits::LimitChange;
pub use limits::{Amount, Limit};
pub(crate) use orders::Effect;
pub(crate) use outcome::{Liveness, Status};
pub use outcome::{Outcome, StopReason};
pub(crate) use plan::Plan;
pub(crate) use state::{Phase, ProcessIdentity, State};
