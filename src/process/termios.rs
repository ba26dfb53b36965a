//! The settings and foreground group of the user's terminal, saved so that the warden can restore them.

use rustix::process::Pid;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The state of the user's terminal before an agent got it. The warden restores it if the supervisor was killed.
pub(crate) struct SavedTermios {
    before: Termios,
    group: Pid,
}

/// Leaves the alternate screen, and turns off colors, the hidden cursor, mouse reporting and bracketed paste.
const RESET: &[u8] =
    b"\x1b[?1049l\x1b[m\x1b[?25h\x1b[?1000;1002;1003;1004;1006;2004l\x1b>\r\n\x1b[J";

impl SavedTermios {
    /// Saves the state of the terminal on standard input, if there is one.
    pub(crate) fn save() -> Option<Self> {
        Some(Self {
            before: tcgetattr(stdin()).ok()?,
            group: tcgetpgrp(stdin()).ok()?,
        })
    }

    /// Restores the terminal if the dead supervisor still owned it.
    pub(crate) fn restore(&self, supervisor: Pid) {
        if tcgetpgrp(stdin()) == Ok(supervisor) {
            let _ = rustix::io::write(stdout(), RESET);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
            let _ = tcsetpgrp(stdin(), self.group);
        }
    }
}
