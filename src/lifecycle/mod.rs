//! Creates, finds, locks, opens, watches and launches loops.
//!
//! Shared by the commands and the library. This module never prints: it returns warnings to the
//! caller.

pub(crate) mod create;
pub(crate) mod enclosing;
pub(crate) mod error;
pub(crate) mod handle;
#[cfg(feature = "cli")]
pub(crate) mod history;
#[cfg(feature = "cli")]
pub(crate) mod launch;
#[cfg(feature = "cli")]
pub(crate) mod live_view;
pub(crate) mod locks;
#[cfg(feature = "cli")]
pub(crate) mod loop_changes;
pub(crate) mod preconditions;
#[cfg(feature = "cli")]
pub(crate) mod requests;
pub(crate) mod scm_check;
pub(crate) mod session;
#[cfg(feature = "cli")]
pub(crate) mod tmux;
#[cfg(feature = "cli")]
pub(crate) mod trust;
#[cfg(feature = "cli")]
pub(crate) mod verify;
#[cfg(feature = "cli")]
pub(crate) mod watcher;
#[cfg(feature = "cli")]
pub(crate) mod workspace_files;
pub(crate) mod worktree_request;
