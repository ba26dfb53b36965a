//! A loop's own lock: its lock file and its journal, each locked by the process that runs the loop.
//!
//! An agent can delete the lock file or put another one in its place. The journal's lock remains,
//! so that no second runner starts and no sweep kills the running agent, and the runner creates the
//! lock file again before its next step.

use super::error::IoContext;
use super::lock::{RETRY_TIMEOUT, is_locked, read_holder, wait_until_free};
use super::{FileLock, LockHolder, LoopDir, Result, lock_holder};
use crate::os::regular_file;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// A loop's own lock, held until this value is dropped and every copy made by a fork is closed.
#[derive(Debug)]
pub(crate) struct LoopLock {
    _own: FileLock,
    /// The locked journal; `None` while the loop has none.
    journal: Option<File>,
}

impl LoopLock {
    /// Takes the lock and writes `holder` into the lock file. If the lock is taken, returns the
    /// current holder as the inner error.
    pub(crate) fn acquire(dir: &LoopDir, holder: &LockHolder) -> Result<Result<Self, LockHolder>> {
        // Lock the journal first: the entry in the lock file belongs to the holder of both.
        let Ok(journal) = lock_journal(dir)? else {
            return Ok(Err(holder_of_journal(dir)));
        };
        let taken = FileLock::acquire(&dir.lock(), holder)?;
        Ok(taken.map(|own| Self { _own: own, journal }))
    }

    /// Locks the journal of a loop that had none when the lock was acquired.
    pub(crate) fn add_journal(&mut self, dir: &LoopDir) -> Result<()> {
        if self.journal.is_none() {
            self.journal = lock_journal(dir)?.unwrap_or_default();
        }
        Ok(())
    }
}

/// Locks a loop's journal. Returns `None` if the loop has no journal, and an inner error if another
/// process holds the lock.
fn lock_journal(dir: &LoopDir) -> Result<Result<Option<File>, ()>> {
    let path = dir.journal();
    let deadline = Instant::now() + RETRY_TIMEOUT;
    loop {
        // Opened for writing, because some network file systems require it for an exclusive lock.
        let file = match regular_file::append_existing(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
            // The error is reported where the journal is read.
            Err(e) if regular_file::is_not_regular(&e) => return Ok(Ok(None)),
            Err(e) => return Err(e).context("open", &path),
        };
        match file.try_lock() {
            Ok(()) if regular_file::is_at(&file, &path).context("read", &path)? => {
                return Ok(Ok(Some(file)));
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(Err(())),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::Error(e)) => return Err(e).context("lock", &path),
        }
    }
}

/// Returns the process that holds a loop's own lock; `None` if the lock is free.
pub(crate) fn loop_holder(dir: &LoopDir) -> Option<LockHolder> {
    lock_holder(&dir.lock()).or_else(|| is_locked(&dir.journal()).then(|| holder_of_journal(dir)))
}

/// Returns what is known about the process that holds the journal's lock. If the lock file is
/// missing, only that it runs the loop.
fn holder_of_journal(dir: &LoopDir) -> LockHolder {
    let known = read_holder(&dir.lock());
    if known.loop_name.is_empty() {
        return LockHolder {
            loop_name: dir.name().to_owned(),
            since: LockHolder::UNKNOWN.to_owned(),
            ..LockHolder::default()
        };
    }
    known
}

/// Blocks, without polling, until a loop's own lock is free.
pub(crate) fn wait_until_loop_is_free(dir: &LoopDir) {
    wait_until_free(&dir.lock());
    wait_until_free(&dir.journal());
}

/// Watches the lock file of a loop that this process or its parent runs.
#[derive(Debug)]
pub(crate) struct LockFileGuard {
    dir: LoopDir,
    holder: LockHolder,
    /// The device and inode of the lock file; `None` if it was missing at the start.
    identity: Option<(u64, u64)>,
    /// The lock file that replaces a deleted one.
    restored: Option<FileLock>,
}

impl LockFileGuard {
    /// Remembers the lock file. The caller or its parent process must hold the lock.
    pub(crate) fn new(dir: &LoopDir) -> Self {
        Self {
            dir: dir.clone(),
            holder: read_holder(&dir.lock()),
            identity: identity(dir),
            restored: None,
        }
    }

    /// Creates the lock file again if it is missing or was replaced. Returns a warning about that,
    /// or an error if another process holds the lock.
    pub(crate) fn restore(&mut self) -> Result<Option<String>> {
        let current = identity(&self.dir);
        if current.is_some() && current == self.identity {
            return Ok(None);
        }
        let path = self.dir.lock();
        match FileLock::acquire(&path, &self.holder)? {
            Ok(lock) => {
                self.restored = Some(lock);
                self.identity = identity(&self.dir);
                let path = path.display();
                Ok(Some(format!(
                    "{path}: another process deleted or replaced the lock file; ralph created it again"
                )))
            }
            Err(_) => Err(io::Error::other(
                "another process replaced the lock file and holds its lock",
            ))
            .context("lock", &path),
        }
    }
}

fn identity(dir: &LoopDir) -> Option<(u64, u64)> {
    let data = std::fs::symlink_metadata(dir.lock()).ok()?;
    Some((data.dev(), data.ino()))
}
