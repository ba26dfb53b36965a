//! The engine's tests: its rules one by one, then worlds of random events.

mod crashes;
mod draining;
mod fair;
mod harmless;
mod keeping;
mod kit;
mod limits;
mod prompts;
mod rules;
mod sessions;
mod signals;
mod team;
mod texts;
mod wishes;
mod worktrees;
mod worlds;
