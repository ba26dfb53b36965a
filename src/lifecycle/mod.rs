//! Creates, finds, locks, opens, watches and launches loops. Commands and the library share it; nothing here prints.

pub mod create;
pub mod failure;
pub mod handle;
pub mod launch;
pub mod locks;
pub mod placement;
pub mod preconditions;
pub mod scm_check;
pub mod session;
pub mod tmux;
pub mod watch;
