//! Saves the settings and foreground group of the user's terminal, for the warden to restore.

use rustix::process::Pid;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The state of the user's terminal before an agent used it. The warden restores this state if the
/// supervisor is killed.
pub(crate) struct SavedTermios {
    before: Termios,
    group: Pid,
}

/// Escape sequences that leave the alternate screen, show the cursor, and turn off colors, mouse
/// reporting and bracketed paste.
const RESET: &[u8] =
    b"\x1b[?1049l\x1b[m\x1b[?25h\x1b[?1000;1002;1003;1004;1006;2004l\x1b>\r\n\x1b[J";

impl SavedTermios {
    /// Saves the state of the terminal on standard input. Returns `None` if standard input is not a
    /// terminal.
    pub(crate) fn save() -> Option<Self> {
        Some(Self {
            before: tcgetattr(stdin()).ok()?,
            group: tcgetpgrp(stdin()).ok()?,
        })
    }

    /// Restores the terminal if the supervisor, which has exited, is still its foreground group.
    pub(crate) fn restore(&self, supervisor: Pid) {
        if tcgetpgrp(stdin()) == Ok(supervisor) {
            let _ = rustix::io::write(stdout(), RESET);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
            let _ = tcsetpgrp(stdin(), self.group);
        }
    }
}
