//! Where loops are kept, and how many there are.

use super::report::StateDir;
use crate::lifecycle::session;
use crate::store::{Home, View, holder, view_with_inbox};
use rustix::fs::{Access, access, statvfs};
use std::collections::BTreeMap;
use std::path::Path;

/// Looks, and makes nothing.
pub(crate) fn look(home: &Home, min_free: u64) -> StateDir {
    let root = home.root();
    let mut loops = BTreeMap::new();
    let mut unreadable = 0;
    for name in home.names().unwrap_or_default() {
        let dir = home.loop_dir(&name);
        // In this order: what a runner wrote before it let go is then in the view.
        let held = holder(&dir.lock()).is_some();
        match view_with_inbox(&dir) {
            Ok(View { state, .. }) => {
                let held = held || session::has(&state);
                *loops
                    .entry(state.status(held).word().to_owned())
                    .or_default() += 1;
            }
            Err(_) => unreadable += 1,
        }
    }
    let there = root
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"));
    let free_bytes = statvfs(there)
        .ok()
        .map(|disk| disk.f_bavail * disk.f_frsize);
    StateDir {
        path: root.display().to_string(),
        exists: root.is_dir(),
        writable: there.is_dir() && access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        free_bytes,
        enough_space: free_bytes.is_none_or(|free| free >= min_free),
        loops,
        unreadable,
    }
}
