//! Processes: starting them, finding everything they started, and ending it all.

pub mod exemptions;
pub mod file_watcher;
pub mod orphans;
pub mod output_log;
pub mod probe;
pub mod pty;
pub mod signals;
pub mod termios;
pub mod tree;
pub mod warden;
