//! Opens and resizes pseudoterminals for agents.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::io;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};

/// The size of a terminal, in rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScreenSize {
    pub rows: NonZeroU16,
    pub columns: NonZeroU16,
}

impl ScreenSize {
    /// Creates a size. Returns `None` if a dimension is zero: the system then does not know the
    /// size.
    pub(crate) fn new(rows: u16, columns: u16) -> Option<Self> {
        Some(Self {
            rows: NonZeroU16::new(rows)?,
            columns: NonZeroU16::new(columns)?,
        })
    }

    /// Returns the size for a terminal that no person sees.
    pub(crate) fn default_size() -> Self {
        Self::new(40, 120).expect("both are positive")
    }
}

#[cfg(target_os = "linux")]
fn open_controller() -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(openpt(flags)?)
}

/// Elsewhere, the flag is set afterwards.
#[cfg(not(target_os = "linux"))]
fn open_controller() -> io::Result<OwnedFd> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&controller, rustix::io::FdFlags::CLOEXEC)?;
    Ok(controller)
}

/// Opens a pseudoterminal. Returns the controller, which is non-blocking, and the agent's end.
pub(crate) fn open(size: ScreenSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let controller = open_controller()?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let terminal = rustix::fs::open(
        &name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    resize(&controller, size)?;
    rustix::io::ioctl_fionbio(&controller, true)?;
    Ok((controller, terminal))
}

/// Maximum length of a line that a terminal in canonical mode accepts, in bytes. The kernel drops
/// the rest of a longer line.
pub(crate) const LINE_MAX: usize = if cfg!(target_os = "linux") {
    4095
} else {
    1023
};

/// Returns the error message for a prompt with a line of `bytes` bytes, which a terminal in
/// canonical mode would cut.
pub(crate) fn line_too_long(bytes: usize) -> String {
    format!(
        "the prompt has a line of {bytes} bytes, but the agent's terminal accepts at most {LINE_MAX}: \
         break the line, or use --no-pty"
    )
}

/// Returns whether the terminal is in canonical mode, in which it buffers whole lines.
pub(crate) fn is_line_buffered(controller: impl AsFd) -> bool {
    tcgetattr(controller).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// Resizes the terminal. The kernel then sends SIGWINCH to the agent.
pub(crate) fn resize(controller: impl AsFd, size: ScreenSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows.get(),
        ws_col: size.columns.get(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(controller, size)?)
}
