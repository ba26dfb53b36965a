//! File locks: the holder of a loop's lock may apply events to the loop.
//!
//! The kernel releases a lock when the last process that shares the open file exits. A free lock is
//! therefore proof that no runner is alive, which a pid in a file is not. ralph never deletes a lock
//! file: otherwise two processes could hold locks on two files of the same name. For the case that
//! another process deletes it, a loop's journal is locked too (`store/loop_lock.rs`).

use super::error::IoContext;
use super::{Result, aside};
use crate::engine::ProcessIdentity;
use crate::os::regular_file;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time during which a failed attempt is repeated. [`lock_holder`] briefly takes a shared lock,
/// which must not make an attempt fail.
pub(super) const RETRY_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest entry that is read, in bytes.
const ENTRY_MAX: u64 = 64 << 10;

/// The entry that the holder of a lock writes into the lock file. The entry is for display; it does
/// not prove that the lock is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LockHolder {
    /// The holder's process ID; 0 if unknown.
    pub(crate) pid: u32,
    /// The process's start time in the kernel's clock ticks, which distinguishes it from a later
    /// process with the same ID.
    pub(crate) start_time: u64,
    pub(crate) loop_name: String,
    pub(crate) workspace: PathBuf,
    /// The time at which the holder took the lock, in RFC 3339 format and UTC; empty if the holder
    /// only cleans up.
    pub(crate) since: String,
    /// Whether the holder runs a background loop. The sweep after another loop's iteration must not
    /// kill a background loop.
    pub(crate) background: bool,
    /// The process that hosts the holder's terminal window; `None` if the holder has no window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<ProcessIdentity>,
}

impl LockHolder {
    /// The value of `since` if the lock is held and its entry is lost.
    pub(super) const UNKNOWN: &str = "unknown";

    pub(crate) fn process(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_time: self.start_time,
        }
    }

    /// Returns whether the holder may not be running the loop. A process that cleans up after a
    /// crash leaves `since` empty, and a process that has just taken the lock has not written its
    /// entry yet.
    pub(crate) fn is_transient(&self) -> bool {
        self.since.is_empty()
    }
}

/// A lock that is held until this value is dropped and every copy made by a fork is closed.
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
    /// Takes the lock at `path` and writes `holder` into it. If the lock is taken, returns the
    /// current holder as the inner error.
    pub(crate) fn acquire(path: &Path, holder: &LockHolder) -> Result<Result<Self, LockHolder>> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        loop {
            let mut file = match regular_file::create(path) {
                Err(error) if regular_file::is_not_regular(&error) => {
                    aside::move_away(path).context("replace", path)?;
                    continue;
                }
                file => file.context("open", path)?,
            };
            match file.try_lock() {
                Ok(()) if regular_file::is_at(&file, path).context("read", path)? => {
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

/// Returns the current or most recent holder of the lock at `path`; `None` if the lock has never
/// been held.
pub(crate) fn last_lock_holder(path: &Path) -> Option<LockHolder> {
    Some(read_holder(path)).filter(|holder| !holder.loop_name.is_empty())
}

/// Returns the current holder of the lock at `path`; `None` if the lock is free.
pub(crate) fn lock_holder(path: &Path) -> Option<LockHolder> {
    is_locked(path).then(|| read_holder(path))
}

/// Returns whether a process holds a lock on the file at `path`.
pub(super) fn is_locked(path: &Path) -> bool {
    regular_file::open(path, false)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Blocks, without polling, until the lock at `path` is free.
pub(crate) fn wait_until_free(path: &Path) {
    // A lock that cannot be opened has no holder to wait for.
    let Ok(file) = regular_file::open(path, false) else {
        return;
    };
    while file
        .lock_shared()
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
}

fn write_holder(file: &mut File, holder: &LockHolder) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(holder)?)
}

/// Reads the holder's entry. Returns the default value if the entry cannot be parsed, because the
/// holder may not have written it yet.
pub(super) fn read_holder(path: &Path) -> LockHolder {
    regular_file::read(path, ENTRY_MAX, false)
        .ok()
        .and_then(|(bytes, _)| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}
