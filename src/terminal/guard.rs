//! Lets an agent use the user's own terminal: keys go to the agent, and the terminal is restored
//! afterward.

use crate::process::pty::ScreenSize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getpgid, getpgrp, getppid};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr, tcsetpgrp,
};
use std::os::fd::BorrowedFd;

/// Keeps the terminal in raw mode, with this process group in the foreground. Dropping the guard
/// restores both.
pub(crate) struct TerminalGuard {
    before: Termios,
    group: Pid,
}

impl TerminalGuard {
    /// Takes over the terminal on standard input. Returns `None` if standard input is not a
    /// terminal, or if this loop is not in the foreground and keys are meant for a shell.
    pub(crate) fn take() -> Option<Self> {
        let group = tcgetpgrp(stdin()).ok()?;
        let warden = getpgid(getppid()).ok();
        if Some(group) != warden && group != getpgrp() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        // Only the foreground process group may read from the terminal.
        tcsetpgrp(stdin(), getpgrp()).ok()?;
        let guard = Self { before, group };
        let mut raw = guard.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        // Discard the terminal's late answers to queries from the previous agent.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        Some(guard)
    }

    pub(crate) fn size() -> Option<ScreenSize> {
        let size = tcgetwinsize(stdout()).ok()?;
        ScreenSize::new(size.ws_row, size.ws_col)
    }

    /// Returns a descriptor that becomes readable when a key is pressed.
    pub(crate) fn fd() -> BorrowedFd<'static> {
        stdin()
    }

    /// Reads the keys pressed since the last call into `buffer`. Returns `None` if the terminal was
    /// closed.
    pub(crate) fn read(buffer: &mut [u8]) -> Option<&[u8]> {
        let mut fds = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if !matches!(poll(&mut fds, Some(&now)), Ok(1..)) {
            return Some(&[]);
        }
        match rustix::io::read(stdin(), &mut *buffer) {
            Ok(0) => None,
            Ok(count) => Some(&buffer[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Some(&[]),
            Err(_) => None,
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // Keys that the agent did not read are not meant for the shell.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        let _ = tcsetpgrp(stdin(), self.group);
    }
}
