//! The signals that people and the system send, as bytes on pipes that can be polled.

use crate::os;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH};
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A signal that means something to a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A child changed its state.
    Child,
    /// Ctrl-C.
    Interrupt,
    /// Asked to go away.
    Terminate,
    /// The terminal, or the warden, is gone.
    HangUp,
    /// The terminal has another size.
    Resized,
}

/// What a supervisor hears when its warden dies; a hang-up of its own kind, because `nohup` silences HUP.
pub const WARDEN_GONE: i32 = SIGUSR1;

/// Open ears: one pipe a signal, so that two of a kind are heard as two.
pub struct Signals {
    pipes: Vec<(Heard, UnixStream)>,
}

impl Signals {
    /// Listens from now on, in place of the default dispositions.
    pub fn listen() -> io::Result<Self> {
        Self::listen_unless(0)
    }

    /// Listens, but not to what the parent wanted ignored, as `nohup` does.
    pub fn listen_unless_ignored() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self::listen_unless(
            ignored
                .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .unwrap_or(0),
        )
    }

    fn listen_unless(ignored: u64) -> io::Result<Self> {
        let mut pipes = Vec::new();
        for (heard, signal) in [
            (Heard::Child, SIGCHLD),
            (Heard::Interrupt, SIGINT),
            (Heard::Terminate, SIGTERM),
            (Heard::HangUp, SIGHUP),
            (Heard::HangUp, WARDEN_GONE),
            (Heard::Resized, SIGWINCH),
        ] {
            if heard != Heard::Child && ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            pipe::register(signal, write)?;
            pipes.push((heard, read));
        }
        os::release_signals();
        Ok(Self { pipes })
    }

    /// What to poll.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.iter().map(|(_, pipe)| pipe.as_fd())
    }

    /// What came since the last time; children only once.
    pub fn take(&mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        for (heard, pipe) in &mut self.pipes {
            let mut bytes = [0; 64];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                all.extend(std::iter::repeat_n(
                    *heard,
                    if *heard == Heard::Child { 1 } else { count },
                ));
            }
        }
        all
    }
}
