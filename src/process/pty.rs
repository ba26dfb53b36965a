//! A pair of ends that is a terminal: one for the agent, the other for whoever plays the person at it.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::io;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};

/// How large a screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From top to bottom.
    pub rows: NonZeroU16,
    /// From left to right.
    pub columns: NonZeroU16,
}

impl Size {
    /// A screen of this size; none if a side is missing.
    pub fn new(rows: u16, columns: u16) -> Option<Self> {
        Some(Self {
            rows: NonZeroU16::new(rows)?,
            columns: NonZeroU16::new(columns)?,
        })
    }

    /// The screen that nobody looks at.
    pub fn unseen() -> Self {
        Self::new(40, 120).expect("it has both sides")
    }
}

/// The near end, which never blocks, and the far end, which is for the agent.
pub(crate) fn open(size: Size) -> io::Result<(OwnedFd, OwnedFd)> {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&near)?;
    unlockpt(&near)?;
    let name = ptsname(&near, Vec::new())?;
    let far = rustix::fs::open(
        &name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    resize(&near, size)?;
    rustix::io::ioctl_fionbio(&near, true)?;
    Ok((near, far))
}

/// So many bytes of a line are taken by a terminal that gathers whole lines for its program. The rest is lost.
pub(crate) const LINE_MAX: usize = if cfg!(target_os = "linux") {
    4095
} else {
    1023
};

/// That a line of so many bytes is too long, and what helps.
pub fn too_long(bytes: usize) -> String {
    format!(
        "the prompt has a line of {bytes} bytes, and the agent's terminal loses what is beyond {LINE_MAX}: \
         break it into shorter ones, or use --no-pty"
    )
}

/// Whether the terminal gathers whole lines for its program.
pub(crate) fn gathers_lines(near: impl AsFd) -> bool {
    tcgetattr(near).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// Makes the screen as large as this; the agent is told by a signal.
pub(crate) fn resize(near: impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows.get(),
        ws_col: size.columns.get(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(near, size)?)
}
