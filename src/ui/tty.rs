//! Detects the properties of the terminals on standard output and standard error.

use rustix::fs::{Mode, OFlags};
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::os::fd::{AsFd, OwnedFd};

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Returns whether standard output is the null device.
pub(super) fn is_null_device() -> bool {
    let files = (rustix::fs::fstat(stdout()), rustix::fs::stat("/dev/null"));
    matches!(files, (Ok(file), Ok(null)) if file.st_rdev == null.st_rdev && null.st_rdev != 0)
}

/// Returns whether output on standard output should be colored.
pub(crate) fn use_color() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal() && !no_color && !is_dumb()
}

/// Returns whether the terminal is unable to move the cursor.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Returns the terminal's width in columns. `None` if standard output is not a terminal.
pub(crate) fn width() -> Option<usize> {
    width_of(stdout())
}

/// Returns the terminal's height in rows. `None` if it is unknown.
pub(super) fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    (size.ws_row > 0).then(|| usize::from(size.ws_row))
}

/// Returns the width of the terminal on standard error. `None` if it is not a terminal.
pub(crate) fn error_width() -> Option<usize> {
    width_of(stderr())
}

/// Returns the height of the terminal on standard error. `None` if it is unknown.
pub(super) fn error_height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stderr()).ok()?;
    (size.ws_row > 0).then(|| usize::from(size.ws_row))
}

/// Returns the columns and rows of the terminal on standard output, or of a usual one.
pub(super) fn size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// Writes the escape sequences and the cleaned text of a full-screen program to the terminal.
pub(super) fn write_terminal(bytes: &[u8]) -> io::Result<()> {
    let mut terminal = stdout().lock();
    terminal.write_all(bytes)?;
    terminal.flush()
}

/// Opens the terminal on standard output again, because the file that a shell has opened must keep
/// blocking; `None` if it cannot be opened.
pub(super) fn open_nonblocking() -> Option<OwnedFd> {
    let name = rustix::termios::ttyname(stdout(), Vec::new()).ok()?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty()).ok()
}

fn width_of(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(if size.ws_col == 0 {
        80
    } else {
        usize::from(size.ws_col).max(2)
    })
}

/// Returns whether this runner may draw on the terminal. The runner has its own process group,
/// while the shell's job is its parent, the warden. Either group may be in the foreground. If the
/// foreground group cannot be read, the runner may draw.
pub(super) fn in_foreground() -> bool {
    // After the warden was killed, the parent may be an init whose group rustix cannot represent.
    let warden = rustix::process::getppid().filter(|parent| !parent.is_init());
    let warden = warden.and_then(|warden| rustix::process::getpgid(Some(warden)).ok());
    match (rustix::termios::tcgetpgrp(stdout()), warden) {
        (Ok(foreground), Some(warden)) => {
            foreground == warden || foreground == rustix::process::getpgrp()
        }
        _ => true,
    }
}
