//! Tests of the engine: its rules one by one, then random runs.

mod cooperative_runs;
mod crashes;
mod decisions;
mod denials;
mod done;
mod draining;
mod failures;
mod fallback;
mod formats;
mod green_checks;
mod kit;
mod limits;
mod markers;
mod outages;
mod prompt_feedback;
mod prompt_safety;
mod prompts;
mod random_events;
mod random_runs;
mod requests;
mod resume;
mod scm;
mod sessions;
mod signals;
mod stalls;
mod worktrees;
