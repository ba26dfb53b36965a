//! Reads keys from the user's own terminal, for an agent or for the console, and restores the
//! terminal afterward.

use crate::process::pty::ScreenSize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid, kill_process_group};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr, tcsetpgrp,
};
use std::os::fd::BorrowedFd;

/// Keeps the terminal in another mode, with this process group in the foreground. Dropping the guard
/// restores both.
pub(crate) struct TerminalGuard {
    before: Termios,
    group: Pid,
}

impl TerminalGuard {
    /// Takes over the terminal on standard input for an agent, in raw mode. Returns `None` if
    /// standard input is not a terminal, or if this loop is not in the foreground and keys are meant
    /// for a shell.
    pub(crate) fn take() -> Option<Self> {
        Self::take_with(Termios::make_raw)
    }

    /// Like [`TerminalGuard::take`], for the console: keys arrive one by one and are not echoed. The
    /// terminal sends no signals, because they would also reach the programs that the runner has
    /// started in its own process group; [`TerminalGuard::send_signals`] does instead.
    pub(crate) fn take_keys() -> Option<Self> {
        Self::take_with(|termios| {
            let line_editing =
                LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
            termios.local_modes.remove(line_editing);
            termios.special_codes[SpecialCodeIndex::VMIN] = 1;
            termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        })
    }

    fn take_with(change: impl FnOnce(&mut Termios)) -> Option<Self> {
        let group = tcgetpgrp(stdin()).ok()?;
        let warden = getpgid(getppid()).ok();
        if Some(group) != warden && group != getpgrp() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        // Only the foreground process group may read from the terminal.
        tcsetpgrp(stdin(), getpgrp()).ok()?;
        let guard = Self { before, group };
        let mut changed = guard.before.clone();
        change(&mut changed);
        tcsetattr(stdin(), OptionalActions::Now, &changed).ok()?;
        // Discard the terminal's late answers to queries from the previous agent.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        Some(guard)
    }

    /// Returns whether this process group is still in the foreground. A shell takes the terminal back
    /// when its job stops.
    pub(crate) fn is_held() -> bool {
        tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
    }

    /// Sends the signals of Ctrl-C and Ctrl-\ to the process group that was in the foreground before,
    /// as the terminal would, and returns the other keys.
    pub(crate) fn send_signals(&self, keys: &[u8]) -> Vec<u8> {
        let codes = &self.before.special_codes;
        let signals = [
            (codes[SpecialCodeIndex::VINTR], Signal::INT),
            (codes[SpecialCodeIndex::VQUIT], Signal::QUIT),
        ];
        let mut rest = Vec::with_capacity(keys.len());
        for key in keys {
            match signals.iter().find(|(code, _)| code == key && *key != 0) {
                Some((_, signal)) => {
                    let _ = kill_process_group(self.group, *signal);
                }
                None => rest.push(*key),
            }
        }
        rest
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
        if !Self::is_held() {
            return;
        }
        // Keys that the agent did not read are not meant for the shell.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        let _ = tcsetpgrp(stdin(), self.group);
    }
}
