//! Who may step a loop: whoever holds its lock, and for as long as they live.
//!
//! The kernel frees the lock when the last process that shares the open file is gone, so a free lock is
//! proof and a pid in a file is not. The file itself is never deleted: two would then hold "the" lock.

use super::Result;
use super::error::Doing;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Readers probe with a shared lock for an instant; this many of those instants fit in.
const PATIENCE: Duration = Duration::from_millis(200);

/// Who holds a lock; for people, never as proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// Their process; 0 is not known.
    pub pid: u32,
    /// The kernel's start time of that process.
    pub start_time: u64,
    /// The loop that they run.
    pub loop_name: String,
    /// The directory that it works in.
    pub workspace: PathBuf,
    /// When they took the lock.
    pub since: String,
    /// Whether they live in the background: whatever sweeps around them leaves them alone.
    pub background: bool,
    /// The process that holds their window, and its start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<(u32, u64)>,
}

impl Holder {
    /// Whether they are not known to run the loop: who clears up after a crash signs without a time, and who has only
    /// just taken the lock has not signed yet.
    pub fn is_passing(&self) -> bool {
        self.since.is_empty()
    }
}

/// A lock that is held until this, and every copy that a fork made of it, is closed.
#[derive(Debug)]
pub struct Lock {
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "it holds the lock by being open; closing frees it"
        )
    )]
    pub(super) file: File,
}

impl Lock {
    /// Takes the lock at `path`, or says who holds it.
    pub fn take(path: &Path, holder: &Holder) -> Result<Result<Self, Holder>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut file = open(path).doing("open", path)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, path).doing("read", path)? => {
                    sign(&mut file, holder).doing("write", path)?;
                    return Ok(Ok(Self { file }));
                }
                // The directory was archived between opening and locking: this lock guards nothing.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Ok(Err(signature(path)));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::Error(e)) => return Err(e).doing("lock", path),
            }
        }
    }
}

/// Who held it last, or holds it now; none if nobody ever did.
pub fn last_holder(path: &Path) -> Option<Holder> {
    Some(signature(path)).filter(|holder| !holder.loop_name.is_empty())
}

/// Who holds the lock at `path`, if anybody does.
pub fn holder(path: &Path) -> Option<Holder> {
    let file = File::open(path).ok()?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| signature(path))
}

/// Sleeps until nobody holds the lock at `path`, and costs nothing meanwhile: the kernel wakes whoever waits.
pub fn await_free(path: &Path) {
    // One that is not there, or may not be read, is held by nobody that could be waited for.
    let Ok(file) = File::open(path) else { return };
    while file
        .lock_shared()
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
}

fn open(path: &Path) -> io::Result<File> {
    // Not emptied here: another may hold it and have signed it.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn sign(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(holder)?)
}

/// A holder may be between locking and signing: an unreadable signature is an unknown holder.
fn signature(path: &Path) -> Holder {
    fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}
