//! Inspects the state directory and counts its loops.

use super::report::StateDirReport;
use crate::lifecycle::handle::read_loop;
use crate::store::{EndedLoop, StateDir};
use rustix::fs::{Access, access, statvfs};
use std::collections::BTreeMap;
use std::path::Path;

/// Inspects the directory without creating it. `min_free` is the required free disk space in bytes.
pub(super) fn inspect(state_dir: &StateDir, min_free: u64) -> StateDirReport {
    let root = state_dir.root();
    let mut loops = BTreeMap::new();
    let mut unreadable = 0;
    for name in state_dir.loop_names().unwrap_or_default() {
        let dir = state_dir.loop_dir(&name);
        let ended = EndedLoop::read(&dir).map(|ended| ended.status);
        let read = || read_loop(&dir).map(|(view, liveness)| view.state.status(liveness));
        match ended.map_or_else(read, Ok) {
            Ok(status) => *loops.entry(status.as_str().to_owned()).or_default() += 1,
            Err(_) => unreadable += 1,
        }
    }
    let existing = root
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"));
    let free_bytes = statvfs(existing)
        .ok()
        .map(|disk| disk.f_bavail * disk.f_frsize);
    StateDirReport {
        path: root.display().to_string(),
        exists: root.is_dir(),
        writable: existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        free_bytes,
        enough_space: free_bytes.is_none_or(|free| free >= min_free),
        loops,
        unreadable,
    }
}
