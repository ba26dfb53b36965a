//! Creates, finds, locks, opens, watches and launches loops.
//!
//! Commands and the library share this module. It never prints: warnings are returned to the
//! caller.

pub(crate) mod create;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod launch;
pub(crate) mod locks;
pub(crate) mod preconditions;
pub(crate) mod scm_check;
pub(crate) mod session;
pub(crate) mod tmux;
pub(crate) mod watcher;
pub(crate) mod worktree_request;
