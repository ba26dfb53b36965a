//! File locks: the holder of a loop's lock may apply events to the loop.
//!
//! The kernel releases a lock when the last process that shares the open file exits. A free lock is
//! therefore proof that no runner is alive, which a pid in a file is not. The lock file is never
//! deleted: otherwise two processes could hold locks on two files of the same name.

use super::Result;
use super::error::IoContext;
use crate::engine::ProcessIdentity;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to retry. [`lock_holder`] takes a shared lock for a moment, which must not make an
/// attempt fail.
const RETRY_TIMEOUT: Duration = Duration::from_millis(200);

/// Describes the process that holds a lock, as it wrote itself into the file. For display, not as
/// proof that the lock is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LockHolder {
    /// 0 if it is not known.
    pub(crate) pid: u32,
    /// The kernel's start time of the process, which tells it from a later one with the same pid.
    pub(crate) start_time: u64,
    pub(crate) loop_name: String,
    pub(crate) workspace: PathBuf,
    /// When it took the lock.
    pub(crate) since: String,
    /// Whether it runs a background loop, which the sweep after another loop's iteration spares.
    pub(crate) background: bool,
    /// The process that hosts its terminal window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<ProcessIdentity>,
}

impl LockHolder {
    pub(crate) fn process(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_time: self.start_time,
        }
    }

    /// Whether the holder is not known to run the loop: a process that cleans up after a crash
    /// leaves `since` empty, and one that has just taken the lock has not written its entry yet.
    pub(crate) fn is_transient(&self) -> bool {
        self.since.is_empty()
    }
}

/// A lock that is held until this value, and every copy made by a fork, is closed.
#[derive(Debug)]
pub(crate) struct FileLock {
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "it holds the lock by being open; closing frees it"
        )
    )]
    pub(super) file: File,
}

impl FileLock {
    /// Takes the lock at `path` in the name of `holder`, or returns its current holder.
    pub(crate) fn acquire(path: &Path, holder: &LockHolder) -> Result<Result<Self, LockHolder>> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        loop {
            let mut file = open(path).context("open", path)?;
            match file.try_lock() {
                Ok(()) if is_file_at(&file, path).context("read", path)? => {
                    write_holder(&mut file, holder).context("write", path)?;
                    return Ok(Ok(Self { file }));
                }
                // The directory was archived between opening and locking. Open the new file.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Ok(Err(read_holder(path)));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::Error(e)) => return Err(e).context("lock", path),
            }
        }
    }
}

/// Returns the current or most recent holder of the lock at `path`, if it ever had one.
pub(crate) fn last_lock_holder(path: &Path) -> Option<LockHolder> {
    Some(read_holder(path)).filter(|holder| !holder.loop_name.is_empty())
}

/// Returns the current holder of the lock at `path`, or `None` if the lock is free.
pub(crate) fn lock_holder(path: &Path) -> Option<LockHolder> {
    let file = File::open(path).ok()?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| read_holder(path))
}

/// Blocks, without polling, until the lock at `path` is free.
pub(crate) fn wait_until_free(path: &Path) {
    // A lock that cannot be opened has no holder that we could wait for.
    let Ok(file) = File::open(path) else { return };
    while file
        .lock_shared()
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
}

fn open(path: &Path) -> io::Result<File> {
    // Not truncated: another process may hold the lock and have written its entry.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Whether `path` still names this open file.
pub(super) fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(current) => Ok((opened.dev(), opened.ino()) == (current.dev(), current.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn write_holder(file: &mut File, holder: &LockHolder) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(holder)?)
}

/// Reads the holder's entry. It is the default value if it cannot be parsed: the holder may not have
/// written it yet.
fn read_holder(path: &Path) -> LockHolder {
    fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}
