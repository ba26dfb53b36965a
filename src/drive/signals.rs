//! The signals that people and the system send, as bytes on pipes that can be polled.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
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
}

/// Open ears: one pipe a signal, so that two of a kind are heard as two.
pub struct Signals {
    pipes: Vec<(Heard, UnixStream)>,
}

impl Signals {
    /// Listens from now on, in place of the default dispositions.
    pub fn listen() -> io::Result<Self> {
        let mut pipes = Vec::new();
        for (heard, signal) in [
            (Heard::Child, SIGCHLD),
            (Heard::Interrupt, SIGINT),
            (Heard::Terminate, SIGTERM),
            (Heard::HangUp, SIGHUP),
        ] {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            pipe::register(signal, write)?;
            pipes.push((heard, read));
        }
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
                all.extend(std::iter::repeat_n(*heard, if *heard == Heard::Child { 1 } else { count }));
            }
        }
        all
    }
}
