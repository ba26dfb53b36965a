//! Processes: starting them, finding everything they started, and ending it all.

pub(crate) mod exemptions;
pub(crate) mod file_watcher;
pub(crate) mod orphans;
pub(crate) mod output_log;
pub(crate) mod probe;
pub(crate) mod pty;
pub(crate) mod signals;
pub(crate) mod termios;
pub(crate) mod tree;
pub(crate) mod version;
pub(crate) mod warden;
