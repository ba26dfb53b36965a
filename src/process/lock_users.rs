//! Finds the processes that have a lock file open, and continues those that keep the lock of a loop
//! without a supervisor because they are stopped.

use super::tree;
use crate::engine::ProcessIdentity;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the paths of the files that a process has open; empty if they cannot be read.
pub(crate) fn open_paths(pid: u32) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let files = files.into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok())
}

/// Returns the processes that have the lock file open.
fn users(lock: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has_open(*pid, lock)).collect()
}

fn has_open(pid: u32, lock: &Path) -> bool {
    open_paths(pid).any(|path| path == lock)
}

/// Continues the stopped processes that hold the lock of a loop without a supervisor, so that they
/// end the loop's other processes and exit. With `kill`, kills them instead. Returns whether there
/// were any.
///
/// A loop has no supervisor if its warden has exited, or if the warden is stopped and the
/// supervisor has exited.
pub(crate) fn wake_stopped(lock: &Path, warden: ProcessIdentity, kill: bool) -> bool {
    let Ok(lock) = lock.canonicalize() else {
        return false;
    };
    let is_alive = tree::start_time(warden.pid) == Some(warden.start_time);
    if is_alive && (!tree::is_stopped(warden.pid) || has_supervisor(warden.pid, &lock)) {
        return false;
    }
    let mut stopped = users(&lock);
    stopped.retain(|pid| tree::is_stopped(*pid));
    let signal = if kill { Signal::KILL } else { Signal::CONT };
    for pid in &stopped {
        let _ = Pid::from_raw(*pid as i32).map(|pid| kill_process(pid, signal));
    }
    !stopped.is_empty()
}

/// Returns whether a child of the warden shares its lock. The agent's processes do not: the lock is
/// closed when a program is started.
fn has_supervisor(warden: u32, lock: &Path) -> bool {
    let children = Pid::from_raw(warden as i32).map_or(vec![], tree::children);
    children
        .iter()
        .any(|child| has_open(child.as_raw_nonzero().get() as u32, lock))
}
