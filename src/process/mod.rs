//! Starts processes, finds all their descendants, and ends them.

pub(crate) mod exemptions;
pub(crate) mod file_watcher;
pub(crate) mod lock_users;
pub(crate) mod mark;
pub(crate) mod orphans;
pub(crate) mod output_log;
#[cfg(feature = "cli")]
pub(crate) mod probe;
pub(crate) mod pty;
pub(crate) mod signals;
#[cfg(feature = "cli")]
pub(crate) mod termios;
pub(crate) mod tree;
#[cfg(feature = "cli")]
pub(crate) mod version;
pub(crate) mod version_text;
#[cfg(feature = "cli")]
pub(crate) mod warden;
