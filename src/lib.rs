//! Runs a coding-agent CLI again and again, each time with a fresh context, until the work is proven done.
//!
//! The rooms, and the question that each alone answers:
//!
//! - [`engine`]: what happens next? Pure: no clock, file, process, environment or chance.
//! - [`store`]: what has happened? A loop's directory: lock, journal, inbox, cache.
//! - [`drive`]: how is an order carried out here? Processes, files that appear, git.
//! - [`run`]: who speaks next? The imperative shell around the engine.
//! - [`show`]: how does it look? Readers of the journal.
//! - [`config`], [`cli`], [`verbs`]: what did the user mean, and which door is it?
//! - [`os`]: the few system calls that Rust cannot check.

pub mod cli;
pub mod config;
pub mod drive;
pub mod engine;
pub mod os;
pub mod run;
pub mod show;
pub mod store;
pub mod verbs;
