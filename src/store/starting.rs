//! Marks a loop as starting: from its creation, or from a resume, until its runner holds the loop's
//! lock.
//!
//! A background runner is not a child of the command that starts it and cannot inherit a lock, so
//! for a moment nothing holds the loop's own lock. The mark is a lock too: the kernel removes it if
//! the command is killed.

use super::dir::{create_file, remove_if_exists};
use super::error::IoContext;
use super::{FileLock, InboxMessage, LockHolder, LoopDir, Result, inbox, lock_holder};
use crate::os::regular_file;
use std::io::Write;
use std::time::Duration;

/// How long a runner may take to start.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum length of the saved requests, in bytes.
const REQUESTS_MAX: u64 = 64 << 20;

/// The mark of a loop that is starting, removed on drop.
#[derive(Debug)]
pub(crate) struct StartMark {
    _lock: FileLock,
}

impl StartMark {
    /// Marks the loop; `None` if another process is starting it. The caller must hold the loop's
    /// own lock, and release it before the runner starts.
    pub(crate) fn set(dir: &LoopDir, holder: &LockHolder) -> Result<Option<Self>> {
        let taken = FileLock::acquire(&dir.start_mark(), holder)?;
        Ok(taken.ok().map(|lock| Self { _lock: lock }))
    }
}

/// Returns whether a command is starting the loop's runner. A command that has not succeeded after
/// [`START_TIMEOUT`] no longer counts.
pub(crate) fn is_starting(dir: &LoopDir) -> bool {
    lock_holder(&dir.start_mark()).is_some_and(|holder| {
        // The holder has not written its entry yet, so it has only just set the mark.
        let Ok(since) = holder.since.parse::<jiff::Timestamp>() else {
            return holder.is_transient();
        };
        let age = jiff::Timestamp::now().duration_since(since);
        age.unsigned_abs() <= START_TIMEOUT
    })
}

/// Saves the requests for a runner that is about to start. They are not in the inbox yet, so that
/// the loop is unchanged if the runner cannot start.
pub(crate) fn save_start_requests(dir: &LoopDir, requests: &[InboxMessage]) -> Result<()> {
    let path = dir.start_requests();
    if requests.is_empty() {
        return discard_start_requests(dir);
    }
    let text = serde_json::to_vec(requests).expect("messages serialize");
    create_file(&path)
        .and_then(|mut file| file.write_all(&text))
        .context("write", &path)
}

/// Discards the saved requests.
pub(crate) fn discard_start_requests(dir: &LoopDir) -> Result<()> {
    let path = dir.start_requests();
    remove_if_exists(&path).context("remove", &path)
}

/// Moves the saved requests to the inbox. The caller is the runner, and holds the loop's lock.
pub(crate) fn send_start_requests(dir: &LoopDir) -> Result<()> {
    let path = dir.start_requests();
    let text = regular_file::read(&path, REQUESTS_MAX, false).map_or(vec![], |(text, _)| text);
    let requests: Vec<InboxMessage> = serde_json::from_slice(&text).unwrap_or_default();
    for request in &requests {
        inbox::append(dir, request)?;
    }
    discard_start_requests(dir)
}
