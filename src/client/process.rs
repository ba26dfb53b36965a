//! Finds the client process that runs a hook: the nearest ancestor that is not a shell.

use crate::engine::ProcessIdentity;
use crate::process::tree::{parent, program_name, start_time};

/// Programs that may run between a client and its hook.
const WRAPPERS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "timeout",
];
/// Maximum number of ancestors to search for the client.
const ANCESTORS_MAX: usize = 8;

/// Returns the client process that called this hook; `None` if it was not found.
pub(crate) fn client_process() -> Option<ProcessIdentity> {
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS_MAX {
        pid = parent(pid).filter(|pid| *pid > 1)?;
        let name = program_name(pid)?;
        if !WRAPPERS.contains(&name.as_str()) {
            let start_time = start_time(pid)?;
            return Some(ProcessIdentity { pid, start_time });
        }
    }
    None
}

/// Returns whether a process that [`client_process`] found is still running.
pub(crate) fn is_alive(process: ProcessIdentity) -> bool {
    start_time(process.pid) == Some(process.start_time)
}
