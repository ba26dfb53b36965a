//! Finds and removes what selftests left whose processes were all killed.

use crate::lifecycle::handle::sweep_damaged_loop;
use crate::process::tree::start_time;
use crate::proof::view::View;
use crate::store::StateDir;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The beginning of the name of a selftest's temporary directory.
const PREFIX: &str = "ralph-selftest-";

/// How long a selftest tries to delete its directory, and how often.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Returns the temporary directory of a selftest by this process.
pub(super) fn own_root() -> PathBuf {
    let pid = std::process::id();
    let started = start_time(pid).unwrap_or(0);
    std::env::temp_dir().join(format!("{PREFIX}{pid}-{started}"))
}

/// Returns the state directory of the loops that a selftest runs.
pub(super) fn state_dir(root: &Path) -> PathBuf {
    root.join("state")
}

/// Kills what the selftest in this directory has started, and deletes the directory. A process that
/// is about to exit may still write to it, so this is repeated until the directory is gone.
pub(super) fn remove(root: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = StateDir::new(state_dir(root));
        for name in state.loop_names().into_iter().flatten() {
            sweep_damaged_loop(&state, &state.loop_dir(&name));
        }
        let _ = View::recover(&root.join("view"));
        let _ = View::recover(root);
        // What cannot be deleted is deleted by the next selftest.
        if fs::symlink_metadata(root).is_err() || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Removes the directories of this user's selftests that do not run any more.
pub(super) fn remove_abandoned() {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_own = fs::symlink_metadata(entry.path())
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        let Some(process) = name.strip_prefix(PREFIX).filter(|_| is_own) else {
            continue;
        };
        let (pid, started) = process.split_once('-').unwrap_or((process, ""));
        let (pid, started) = (pid.parse::<u32>(), started.parse::<u64>());
        let is_alive = match (pid, started) {
            (Ok(pid), Ok(started)) => start_time(pid) == Some(started),
            _ => true,
        };
        if !is_alive {
            remove(&entry.path());
        }
    }
}
