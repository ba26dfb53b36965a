//! The engine's tests: its rules one by one, then worlds of random events.

mod crashes;
mod draining;
mod fairness;
mod fallback;
mod harmless;
mod kit;
mod limits;
mod prompts;
mod random_runs;
mod requests;
mod rules;
mod scm;
mod sessions;
mod signals;
mod texts;
mod worktrees;
