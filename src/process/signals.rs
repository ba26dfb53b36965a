//! Delivers the signals that a runner reacts to through one pipe, which can be polled.

use crate::os;
use rustix::io::ioctl_fionbio;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH};
use signal_hook::low_level::pipe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A signal that a runner reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalEvent {
    ChildExited,
    /// Ctrl-C, which sends SIGINT.
    Interrupt,
    Terminate,
    /// The terminal was closed, or the warden has exited.
    HangUp,
    /// The terminal was resized, or another process has written to the loop's inbox.
    Resized,
}

/// The signal that a supervisor receives when its warden dies. It is not SIGHUP, because `nohup`
/// makes processes ignore SIGHUP.
pub(crate) const WARDEN_DIED: i32 = SIGUSR1;

const SIGNALS: [(SignalEvent, i32); 6] = [
    (SignalEvent::ChildExited, SIGCHLD),
    (SignalEvent::Interrupt, SIGINT),
    (SignalEvent::Terminate, SIGTERM),
    (SignalEvent::HangUp, SIGHUP),
    (SignalEvent::HangUp, WARDEN_DIED),
    (SignalEvent::Resized, SIGWINCH),
];

/// Counts the signals that arrive (two Ctrl-C count as two), and makes a pipe readable.
pub(crate) struct SignalListener {
    pipe: OwnedFd,
    counts: Vec<(SignalEvent, Arc<AtomicUsize>)>,
}

impl SignalListener {
    /// Starts listening. Replaces the signals' default dispositions.
    pub(crate) fn listen() -> io::Result<Self> {
        Self::listen_except(0)
    }

    /// Starts listening to all signals except those that the parent process has set to be ignored,
    /// as `nohup` does.
    pub(crate) fn listen_unless_ignored() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self::listen_except(
            ignored
                .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .unwrap_or(0),
        )
    }

    fn listen_except(ignored: u64) -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
        ioctl_fionbio(&read, true)?;
        let mut counts = Vec::new();
        for (event, signal) in SIGNALS {
            if event != SignalEvent::ChildExited && ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let count = Arc::new(AtomicUsize::new(0));
            // Register the counter before the pipe, so that a reader of the pipe always finds the
            // signal counted.
            os::count_signal(signal, Arc::clone(&count))?;
            pipe::register(signal, write.try_clone()?)?;
            counts.push((event, count));
        }
        os::unblock_signals();
        Ok(Self { pipe: read, counts })
    }

    /// Returns a descriptor that becomes readable when a signal arrives.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns the signals that arrived since the last call. Exits of several children count as one
    /// event.
    pub(crate) fn take(&mut self) -> Vec<SignalEvent> {
        let mut bytes = [0; 64];
        // The pipe only wakes the reader. The counts tell which signals arrived, even if a handler
        // could not write to the pipe.
        while rustix::io::read(&self.pipe, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let mut events = Vec::new();
        for (event, count) in &self.counts {
            let count = count.swap(0, Ordering::Relaxed);
            let count = if *event == SignalEvent::ChildExited {
                count.min(1)
            } else {
                count
            };
            events.extend(std::iter::repeat_n(*event, count));
        }
        events
    }
}
