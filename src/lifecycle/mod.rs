//! Creates, finds, locks, opens, watches and launches loops.
//!
//! Commands and the library share this module. It never prints: warnings are returned to the
//! caller.

pub(crate) mod create;
pub(crate) mod error;
pub(crate) mod handle;
#[cfg(feature = "cli")]
pub(crate) mod launch;
pub(crate) mod locks;
pub(crate) mod preconditions;
pub(crate) mod scm_check;
pub(crate) mod session;
#[cfg(feature = "cli")]
pub(crate) mod tmux;
#[cfg(feature = "cli")]
pub(crate) mod watcher;
pub(crate) mod worktree_request;
