//! The directory of a mirror: a private state directory that exists as long as its process.

use crate::lifecycle::create::random_id;
use crate::lifecycle::error::CommandError;
use crate::store::dir::create_dir;
use crate::store::{FileLock, LockHolder, StateDir, lock_holder, rfc3339};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for other processes that create a mirror.
const CREATE_TIMEOUT: Duration = Duration::from_secs(30);

/// A mirror's directory, removed on drop.
#[derive(Debug)]
pub(super) struct MirrorPlace {
    root: PathBuf,
    /// Shows others that the process of this mirror is alive.
    _lock: FileLock,
}

impl MirrorPlace {
    /// Creates the directory, and removes those of processes that were killed.
    pub(super) fn create(state_dir: &StateDir) -> Result<Self, CommandError> {
        let parent = state_dir.root().join("fleet").join("mirrors");
        create_dir(&parent).map_err(CommandError::broken)?;
        // Without this lock, another process could take a directory without a lock for an old one.
        let _all = lock(&parent.join("lock"))?;
        remove_old(&parent);
        let root = parent.join(random_id()?);
        create_dir(&root).map_err(CommandError::broken)?;
        let lock = lock(&StateDir::new(root.clone()).mirror_lock())?;
        Ok(Self { root, _lock: lock })
    }

    pub(super) fn state_dir(&self) -> StateDir {
        StateDir::new(self.root.clone())
    }
}

impl Drop for MirrorPlace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn lock(path: &Path) -> Result<FileLock, CommandError> {
    let holder = LockHolder {
        pid: std::process::id(),
        since: rfc3339(jiff::Timestamp::now().as_millisecond()),
        ..LockHolder::default()
    };
    let deadline = Instant::now() + CREATE_TIMEOUT;
    loop {
        match FileLock::acquire(path, &holder)? {
            Ok(lock) => return Ok(lock),
            Err(_) if Instant::now() < deadline => {}
            Err(other) => {
                return Err(CommandError::broken(format!(
                    "process {} keeps {} locked",
                    other.pid,
                    path.display()
                )));
            }
        }
    }
}

/// Removes the mirrors whose processes are gone.
fn remove_old(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let root = entry.path();
        if root.is_dir() && lock_holder(&StateDir::new(root.clone()).mirror_lock()).is_none() {
            let _ = fs::remove_dir_all(root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_goes_with_its_process_and_removes_those_of_killed_ones() {
        let root = std::env::temp_dir().join(format!("ralph-place-{}", random_id().unwrap()));
        let state_dir = StateDir::new(root.clone());
        let first = MirrorPlace::create(&state_dir).unwrap();
        let killed = root.join("fleet/mirrors/0123456789abcdef");
        create_dir(&killed.join("loops/a")).unwrap();
        let second = MirrorPlace::create(&state_dir).unwrap();
        assert!(!killed.exists(), "no process holds its lock");
        assert!(first.root.exists() && first.state_dir().is_mirror());
        assert!(!state_dir.is_mirror());
        let gone = first.root.clone();
        drop(first);
        assert!(!gone.exists() && second.root.exists());
        drop(second);
        fs::remove_dir_all(root).unwrap();
    }
}
