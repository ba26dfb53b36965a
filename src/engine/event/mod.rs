//! Events: everything that can happen to a loop. One event is one line of the journal.
//!
//! The serialized names are the published journal format (docs/journal.md) and never change.

mod fault;
mod report;
mod request;

pub use fault::Fault;
pub use report::{AgentReport, CheckReport, ProcessExit, TextSignals};
pub use request::{Request, RequestSource};

use super::label::{CheckProbe, Label};
use super::limits::LimitChange;
use super::long_rest::{LongRest, RestStage};
use super::moved::NewPlace;
use super::outcome::{OutcomeSummary, StopReason};
use super::receipt::EndFacts;
use super::review::Review;
use super::scm::ScmTaskReport;
use super::touched::TouchedFiles;
use super::usage::Tokens;
use serde::{Deserialize, Serialize};

/// The time at which an event happened, on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Wall-clock time, in milliseconds since 1970.
    pub(crate) wall_ms: i64,
    /// Monotonic milliseconds since this runner's previous event; 0 for its first event.
    pub(crate) delta_ms: u64,
}

/// An event in the life of a loop. The journal stores one event per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A runner took the loop's lock, after it had killed any processes an earlier runner left.
    Opened {
        /// The runner's process ID.
        pid: u32,
        /// The runner's version.
        version: String,
        /// The cost so far of an iteration that an earlier runner left unfinished, in dollars;
        /// `None` if there is no such iteration or its cost is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The tokens that the unfinished iteration had used so far; `None` as for `cost_usd`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
        /// Whether the runner is a hook inside the agent's client session.
        #[serde(default, skip_serializing_if = "is_default", rename = "inside")]
        in_session: bool,
        /// The ID of the running system, which changes when it boots; `None` if it is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
    /// A person, a signal or the host program made a request.
    Asked {
        /// The action that the loop should take.
        #[serde(rename = "wish")]
        request: Request,
        /// The source of the request.
        by: RequestSource,
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person sent the agent a message, with `ralph say` or `ralph resume --answer`.
    Answered {
        /// The text of the message, which the next prompt will contain.
        text: String,
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person changed a limit.
    Changed {
        /// The limit and its new value.
        limit: LimitChange,
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A check ended, green or red.
    Checked {
        /// The iteration's number; 0 is preflight.
        iteration: u32,
        /// The check's index in the plan.
        check: usize,
        /// The check's result.
        report: CheckReport,
        /// The ID of the git tree with the working tree's content after the last check; `None`
        /// after other checks and outside git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// The first files that the checks themselves wrote; empty after other checks than the last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        written: Vec<String>,
    },
    /// Before the first iteration, a check ran once more, in a view of the workspace.
    Probed {
        /// The check's index in the plan.
        check: usize,
        /// How the view differed from the workspace.
        probe: CheckProbe,
        /// The check's result; `None` if it could not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<CheckReport>,
    },
    /// Before the first iteration, the checks were labeled by what they can prove.
    Labeled {
        /// The labels, in the plan's order.
        labels: Vec<Label>,
    },
    /// Before the second look, the files were compared with the loop's start.
    Surveyed {
        /// The number of the latest iteration.
        iteration: u32,
        /// The files that were touched since the loop's start.
        touched: TouchedFiles,
        /// Why the checks may still see what they should not when they run again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        weaknesses: Vec<String>,
        /// Why the checks cannot run again; `None` if they can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// The setup command ended in the view.
    #[serde(rename = "set_up")]
    SetUp {
        /// The number of the latest iteration.
        iteration: u32,
        /// The command's result.
        report: CheckReport,
    },
    /// A check ended in the view, with the tests and settings that the loop began with.
    Rechecked {
        /// The number of the latest iteration.
        iteration: u32,
        /// The check's index in the plan.
        check: usize,
        /// The check's result.
        report: CheckReport,
    },
    /// A person accepted changes of files that can turn a check green.
    Accepted {
        /// Globs of these files' paths.
        globs: Vec<String>,
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A checkpoint of the working tree was taken, or could not be.
    Checkpointed {
        /// The number of the checkpoint: that of the iteration; 0 is the start.
        iteration: u32,
        /// The ID of the git tree with the content; `None` if there is no checkpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// The ID of the checkpoint's commit; `None` if there is no checkpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// The first files that it does not contain: large ones, and those whose name suggests a
        /// secret.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        /// Why there is no checkpoint; `None` if there is one, and outside git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// The ID of the HEAD commit, for the checkpoint of the start; `None` for others, and before
        /// the first commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
    },
    /// A person put the files back to a checkpoint.
    Rewound {
        /// The checkpoint: its number, or `undo`.
        to: String,
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// The loop moved to another machine, or to another place on this one.
    Moved {
        /// The new place.
        #[serde(flatten)]
        place: Box<NewPlace>,
    },
    /// An SCM task ended, or had nothing to do.
    Committed {
        /// The number of the iteration whose work the task was for.
        iteration: u32,
        /// The task's index in the plan; one past the last for the worktree task.
        task: usize,
        /// The task's result.
        report: ScmTaskReport,
    },
    /// An iteration began. The agent starts only after this event is durable.
    Started {
        /// The iteration's number; numbers never repeat.
        iteration: u32,
        /// The agent's name; `None` if the loop has only one agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The ID of the git tree with the working tree's content, if no check has run before;
        /// `None` outside git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// The digest of the recorded tests and settings that the loop begins with, before the first
        /// iteration; `None` if there is no second look.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        baseline: Option<String>,
        /// The version of the agent's program, if it was not known before or has changed; `None`
        /// otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// A person ended a rest early.
    Hurried {
        /// The inbox offset, in bytes, after this message; `None` if the event does not come from
        /// the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A long rest began or ended, and the `--notify` command is about to run.
    Notified {
        /// Whether the rest begins or ends.
        stage: RestStage,
        /// The rest.
        #[serde(flatten)]
        rest: LongRest,
    },
    /// The agent's process was started.
    Spawned {
        /// The number of the agent's iteration.
        iteration: u32,
        /// The process ID, which is also the ID of its process group and session.
        pid: u32,
        /// The process's start time, in the kernel's clock ticks. The kernel reuses process IDs,
        /// but never together with the same start time.
        start_time: u64,
    },
    /// The runner noticed something about the agent, during or between iterations.
    Noticed {
        /// The number of the latest iteration.
        iteration: u32,
        /// The observation that the runner made.
        notice: Notice,
        /// What is written in the marker or the bus message; `None` if nothing is.
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "words")]
        text: Option<String>,
    },
    /// The running agent has used up a budget of the loop.
    Spent {
        /// The agent's iteration.
        iteration: u32,
        /// Dollars the iteration has cost so far; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Tokens the iteration has used so far; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
    },
    /// The agent and every process it started have exited.
    Ended {
        /// The number of the agent's iteration.
        iteration: u32,
        /// The result of the agent's run.
        #[serde(default)]
        report: AgentReport,
    },
    /// A turn of the client session failed. The loop waits until a person continues the session.
    #[serde(rename = "stumbled")]
    TurnFailed {
        /// The number of the iteration that the turn belongs to.
        iteration: u32,
        /// The client's error message.
        #[serde(rename = "words")]
        message: String,
    },
    /// No child loop is running anymore.
    Drained {
        /// The number of the latest iteration.
        iteration: u32,
        /// Names of the child loops that ended on their own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waited: Vec<String>,
        /// Names of the child loops that were stopped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stopped: Vec<String>,
    },
    /// An error occurred that retrying cannot fix.
    Faulted {
        /// The error's class.
        class: Fault,
        /// A description of the error, for people.
        detail: String,
    },
    /// A wake-up time ordered by the engine has passed.
    Woke,
    /// The loop has ended. This event is for readers of the journal: the engine's state already
    /// contains the ending.
    Finished {
        /// The loop's outcome, in the form that scripts read.
        outcome: OutcomeSummary,
        /// Why the loop ended, in one word for scripts.
        stop_reason: StopReason,
        /// Whether the loop succeeded.
        success: bool,
        /// The runner's exit code.
        exit_code: i32,
        /// Number of iterations that were started.
        iterations: u32,
        /// Total cost, in dollars; `None` if unknown.
        cost_usd: Option<f64>,
        /// Active time of the loop, in seconds. Pauses and waits at usage limits are not included.
        duration_s: f64,
        /// The path of the loop's worktree; `None` if the loop has none.
        worktree: Option<String>,
        /// The branch or commit that has the worktree's work; `None` if it has no worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The number of the best checkpoint, if the loop ended with fewer green checks or before
        /// they ran; `None` otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        better: Option<u32>,
        /// Added lines that a person should read; `None` if there are none, or if no two checkpoints
        /// could be compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<Review>,
        /// The commit and the versions at the end; `None` if no iteration was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<EndFacts>,
    },
    /// An event written by a later version of ralph.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Applies `edit` to every text from an agent, a person or the system. Such text may contain a
    /// secret.
    pub(crate) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Answered { text, .. } => edit(text),
            Self::Checked {
                report, written, ..
            } => {
                written.iter_mut().for_each(&mut *edit);
                report.edit_texts(edit);
            }
            Self::Rechecked { report, .. } | Self::SetUp { report, .. } => report.edit_texts(edit),
            Self::Probed { report, .. } => {
                if let Some(report) = report {
                    report.edit_texts(edit);
                }
            }
            Self::Labeled { labels } => {
                for label in labels {
                    edit(&mut label.why);
                }
            }
            Self::Surveyed {
                touched,
                weaknesses,
                failure,
                ..
            } => {
                weaknesses.iter_mut().chain(failure).for_each(&mut *edit);
                touched.edit_texts(edit);
            }
            Self::Checkpointed {
                skipped, failure, ..
            } => skipped.iter_mut().chain(failure).for_each(edit),
            Self::Rewound { to, .. } => edit(to),
            Self::Committed { report, .. } => report.edit_texts(edit),
            Self::Notified { rest, .. } => edit(&mut rest.why),
            Self::Noticed { text, .. } => text.iter_mut().for_each(edit),
            Self::Ended { report, .. } => report.edit_texts(edit),
            Self::TurnFailed { message, .. } => edit(message),
            Self::Faulted { detail, .. } => edit(detail),
            Self::Finished {
                outcome, review, ..
            } => {
                edit(&mut outcome.why);
                edit(&mut outcome.detail);
                if let Some(review) = review {
                    review.edit_texts(edit);
                }
            }
            Self::Opened { .. }
            | Self::Asked { .. }
            | Self::Changed { .. }
            | Self::Accepted { .. }
            | Self::Started { .. }
            | Self::Hurried { .. }
            | Self::Moved { .. }
            | Self::Spawned { .. }
            | Self::Spent { .. }
            | Self::Drained { .. }
            | Self::Woke
            | Self::Unknown => {}
        }
    }
}

/// The runner's observation about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A line of the agent's output matched the done pattern.
    Pattern,
    /// A marker or the done file appeared.
    Marker(Marker),
    /// The inactivity timeout passed without output or, on a terminal, without a change to the
    /// screen's text.
    Silence,
    /// The agent's screen did not become ready for the prompt, so nothing was typed.
    Unready,
    /// The agent reported the end of its run, but its process did not exit in time.
    Lingering,
}

/// A file or bus message that an agent leaves as a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Marker {
    /// `DONE` in the task directory.
    Done,
    /// `BLOCKED` in the task directory.
    Blocked,
    /// `WAIT` or `WAIT_WITHOUT_RESTART` in the task directory.
    Wait,
    /// The done file that the plan asks for.
    File,
    /// A bus message that asks ralph not to restart the agent.
    Bus,
}

/// Returns whether a field has its default value. Formats that grow leave such fields out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
