//! Sends requests to a running loop, and waits until its runner has read them.

use super::handle::is_held;
use crate::process::file_watcher::FileWatcher;
use crate::store::{InboxMessage, LoopDir, StoreError, cache, inbox};
use std::time::{Duration, Instant};

/// The maximum time for a running runner to read its inbox.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks whether the runner has exited. Changes to its journal are noticed at
/// once.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What happened to messages in a loop's inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The runner has read them.
    Read,
    /// The runner is alive and has not read them in time.
    Unread,
    /// The runner exited without reading them. They wait in the inbox for the next one.
    Exited,
}

/// Sends messages to a loop's inbox, and waits until its runner has read them. Sends them again if
/// another process deletes or cuts the inbox meanwhile.
pub(crate) fn deliver(dir: &LoopDir, messages: &[InboxMessage]) -> Result<Delivery, StoreError> {
    let send = || {
        let append = |_, message| inbox::append(dir, message);
        messages.iter().try_fold(0, append)
    };
    let (start, mut watcher) = (Instant::now(), FileWatcher::open());
    let mut end = send()?;
    watcher.watch(&dir.journal());
    loop {
        let held = is_held(dir);
        // Read the state after checking the lock, to see everything that the runner wrote before it
        // exited.
        if cache::read(dir).is_ok_and(|view| view.state.inbox_offset >= end) {
            return Ok(Delivery::Read);
        }
        if !held {
            return Ok(Delivery::Exited);
        }
        if start.elapsed() > READ_TIMEOUT {
            return Ok(Delivery::Unread);
        }
        if !inbox::still_has(dir, end) {
            end = send()?;
        }
        watcher.wait(EXIT_POLL_INTERVAL);
    }
}
