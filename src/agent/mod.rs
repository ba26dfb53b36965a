//! Decodes and redacts agents' output, reads their task directory, and contains the built-in
//! agents.
//!
//! Everything an agent prints or writes is an untrusted claim. This module reports it and leaves
//! every decision to the engine.

pub(crate) mod decode;
pub(crate) mod function;
pub(crate) mod outbox;
pub(crate) mod pattern;
pub(crate) mod pipeline;
pub(crate) mod redact;
pub(crate) mod script;
pub(crate) mod task_dir;
