//! Agents: what they print, what they leave in their task directory, and the built-in ones.

pub mod decode;
pub mod function;
pub mod outbox;
pub mod pattern;
pub mod redact;
pub mod script;
pub mod task_dir;
