//! Reads the user's keys for the console while no agent has the terminal.

use super::input::Input;
use crate::terminal::guard::TerminalGuard;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The interval at which to check whether the loop is in the terminal's foreground again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The user's terminal as a source of keys.
#[derive(Default)]
pub(super) struct ConsoleKeys {
    guard: Option<TerminalGuard>,
    /// When the terminal was last found to be used by another process; `None` if it was not.
    refused_at: Option<Instant>,
    /// Whether the runner knows that keys are available.
    is_reported: bool,
    /// Whether the terminal was closed.
    is_closed: bool,
}

impl ConsoleKeys {
    /// Takes the terminal if it is free.
    pub(super) fn acquire(&mut self) {
        let is_late = |at: Instant| at.elapsed() >= RETRY_INTERVAL;
        if self.is_closed || self.guard.is_some() || !self.refused_at.is_none_or(is_late) {
            return;
        }
        self.guard = TerminalGuard::take_keys();
        self.refused_at = self.guard.is_none().then(Instant::now);
    }

    /// Gives the terminal back.
    pub(super) fn release(&mut self) {
        (self.guard, self.refused_at) = (None, None);
    }

    /// Returns a descriptor that becomes readable when a key is pressed; `None` if another process
    /// uses the terminal.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.guard.as_ref().map(|_| TerminalGuard::fd())
    }

    /// Returns the keys pressed since the last call, and whether keys have become available or
    /// unavailable.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Vec<Input> {
        if let Some(guard) = self.guard.take_if(|_| !TerminalGuard::is_held()) {
            drop(guard);
            self.refused_at = Some(Instant::now());
        }
        let mut inputs = Vec::new();
        let keys = match &self.guard {
            Some(guard) => TerminalGuard::read(buffer).map(|keys| guard.send_signals(keys)),
            None => Some(Vec::new()),
        };
        self.is_closed |= keys.is_none();
        if self.is_closed {
            self.guard = None;
        }
        if self.is_reported != self.guard.is_some() {
            self.is_reported = self.guard.is_some();
            inputs.push(Input::KeysAvailable(self.is_reported));
        }
        inputs.extend(keys.filter(|keys| !keys.is_empty()).map(Input::Keys));
        inputs
    }
}
