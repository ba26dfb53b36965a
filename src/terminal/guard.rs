//! A person's own terminal, lent to an agent: its keys go there, and it is given back as it was.

use crate::process::pty::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getpgid, getpgrp, getppid};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr, tcsetpgrp,
};
use std::os::fd::BorrowedFd;

/// A terminal that passes every key on while this lives.
pub(crate) struct Loan {
    before: Termios,
    group: Pid,
}

impl Loan {
    /// Takes the terminal of standard input, if this loop is what a person sees there: behind a shell's prompt the
    /// keys are meant for that.
    pub(crate) fn take() -> Option<Self> {
        let group = tcgetpgrp(stdin()).ok()?;
        let warden = getpgid(getppid()).ok();
        if Some(group) != warden && group != getpgrp() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        // Only the group in front may read.
        tcsetpgrp(stdin(), getpgrp()).ok()?;
        let loan = Self { before, group };
        let mut raw = loan.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        // What came in between was for nobody: a terminal may answer what the last agent asked when that is gone.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        Some(loan)
    }

    /// How large it is.
    pub(crate) fn size() -> Option<Size> {
        let size = tcgetwinsize(stdout()).ok()?;
        Size::new(size.ws_row, size.ws_col)
    }

    /// What to poll.
    pub(crate) fn fd() -> BorrowedFd<'static> {
        stdin()
    }

    /// The keys that were pressed since the last time; none if the terminal has gone away.
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

impl Drop for Loan {
    fn drop(&mut self) {
        // Keys that the agent did not take are not the shell's.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        let _ = tcsetpgrp(stdin(), self.group);
    }
}
