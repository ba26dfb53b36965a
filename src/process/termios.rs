//! The settings and foreground group of the user's terminal, saved so that the warden can restore them.

use rustix::process::Pid;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// How a terminal was before anything was lent: what a warden gives back for a supervisor that cannot any more.
pub(crate) struct Pledge {
    before: Termios,
    group: Pid,
}

/// What a screen is taken back with: from its second page, its colours, its hidden cursor, its mouse and its pastes.
const PLAIN: &[u8] =
    b"\x1b[?1049l\x1b[m\x1b[?25h\x1b[?1000;1002;1003;1004;1006;2004l\x1b>\r\n\x1b[J";

impl Pledge {
    /// Notes how the terminal of standard input is now, if there is one.
    pub(crate) fn note() -> Option<Self> {
        Some(Self {
            before: tcgetattr(stdin()).ok()?,
            group: tcgetpgrp(stdin()).ok()?,
        })
    }

    /// Gives back what a supervisor that is gone had still lent.
    pub(crate) fn redeem(&self, supervisor: Pid) {
        if tcgetpgrp(stdin()) == Ok(supervisor) {
            let _ = rustix::io::write(stdout(), PLAIN);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
            let _ = tcsetpgrp(stdin(), self.group);
        }
    }
}
