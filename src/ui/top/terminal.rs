//! Draws on the user's terminal, and restores it on exit, error and panic. A terminal that reads
//! slowly, or not at all, never blocks this program.

use crate::ui::tty;
use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Alternate screen, no cursor, mouse clicks and the wheel, marked pastes.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l";

/// The settings of the terminal before the first key was read; `None` while it is not in use. A
/// panic in any thread restores it.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// How long the last bytes may take before this program gives up and exits.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

fn saved() -> MutexGuard<'static, Option<Termios>> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Uses the terminal until it is dropped.
pub(super) struct TerminalSession {
    _private: (),
}

impl TerminalSession {
    /// Switches to the alternate screen and reads single keys.
    pub(super) fn open() -> io::Result<Self> {
        restore_on_panic();
        let session = Self { _private: () };
        session.enter()?;
        Ok(session)
    }

    /// Uses the terminal again after [`TerminalSession::leave`].
    #[expect(
        clippy::unused_self,
        reason = "the terminal is left when it is dropped"
    )]
    pub(super) fn enter(&self) -> io::Result<()> {
        let mut saved = saved();
        if saved.is_none() {
            let before = tcgetattr(io::stdin())?;
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
            *saved = Some(before);
        }
        drop(saved);
        write_until(ENTER.as_bytes(), Instant::now() + LEAVE_TIMEOUT);
        Ok(())
    }

    /// Returns the terminal to its state before.
    #[expect(clippy::unused_self, reason = "only an open session can be left")]
    pub(super) fn leave(&self) {
        restore();
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some(before) = saved().take() {
        write_until(LEAVE.as_bytes(), Instant::now() + LEAVE_TIMEOUT);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// Restores the terminal before a panic's message is printed.
fn restore_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            previous(info);
        }));
    });
}

/// Writes bytes until the deadline.
fn write_until(bytes: &[u8], deadline: Instant) {
    let Some(terminal) = tty::open_nonblocking() else {
        let _ = tty::write_terminal(bytes);
        return;
    };
    let mut rest = bytes;
    while !rest.is_empty() && Instant::now() < deadline {
        match rustix::io::write(&terminal, rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::AGAIN) => {
                let timeout = deadline.saturating_duration_since(Instant::now());
                let timeout = Timespec::try_from(timeout).ok();
                let mut fds = [PollFd::new(&terminal, PollFlags::OUT)];
                let _ = poll(&mut fds, timeout.as_ref());
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Writes cells to the terminal as escape sequences.
#[derive(Default)]
pub(super) struct AnsiBackend {
    out: String,
    /// The terminal, opened so that writing never blocks; `None` if that is not possible.
    terminal: Option<OwnedFd>,
    /// What the terminal has not taken yet: at most one frame, because no other one is drawn.
    pending: Vec<u8>,
}

impl AnsiBackend {
    /// Creates a backend for the terminal on standard output.
    pub(super) fn open() -> Self {
        Self {
            terminal: tty::open_nonblocking(),
            ..Self::default()
        }
    }

    /// Returns the terminal if it has not taken everything yet.
    pub(super) fn blocked(&self) -> Option<BorrowedFd<'_>> {
        let terminal = self.terminal.as_ref()?;
        (!self.pending.is_empty()).then(|| terminal.as_fd())
    }

    /// Writes what the terminal takes now.
    pub(super) fn write_pending(&mut self) -> io::Result<()> {
        let Some(terminal) = &self.terminal else {
            return tty::write_terminal(&std::mem::take(&mut self.pending));
        };
        let mut written = 0;
        while written < self.pending.len() {
            match rustix::io::write(terminal, &self.pending[written..]) {
                Ok(count) => written += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.pending.drain(..written);
        Ok(())
    }

    /// Writes the rest of a frame before another program uses the terminal.
    pub(super) fn finish(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        write_until(&pending, Instant::now() + LEAVE_TIMEOUT);
    }

    fn style(&mut self, cell: &Cell) {
        self.out.push_str("\x1b[0");
        for (modifier, code) in [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::UNDERLINED, 4),
            (Modifier::REVERSED, 7),
        ] {
            if cell.modifier.contains(modifier) {
                let _ = write!(self.out, ";{code}");
            }
        }
        for (color, base) in [(cell.fg, 30), (cell.bg, 40)] {
            let _ = match color {
                Color::Indexed(index) => write!(self.out, ";{};5;{index}", base + 8),
                Color::Red => write!(self.out, ";{}", base + 1),
                Color::Magenta => write!(self.out, ";{}", base + 5),
                Color::Cyan => write!(self.out, ";{}", base + 6),
                _ => Ok(()),
            };
        }
        self.out.push('m');
    }
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut last: Option<(u16, u16, &Cell)> = None;
        for (column, row, cell) in content {
            if last.is_none_or(|(x, y, before)| {
                // A wide character moves the cursor by two columns.
                y != row || x + 1 != column || before.symbol().len() > 1
            }) {
                let _ = write!(self.out, "\x1b[{};{}H", row + 1, column + 1);
            }
            let same = last.is_some_and(|(.., before)| {
                (before.fg, before.bg, before.modifier) == (cell.fg, cell.bg, cell.modifier)
            });
            if !same {
                self.style(cell);
            }
            self.out.push_str(cell.symbol());
            last = Some((column, row, cell));
        }
        self.out.push_str("\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.out.push_str("\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let (columns, rows) = tty::size();
        Ok(Size::new(columns, rows))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pending
            .append(&mut std::mem::take(&mut self.out).into_bytes());
        self.write_pending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    #[test]
    fn cells_are_written_where_they_belong_with_as_few_sequences_as_needed() {
        let mut backend = AnsiBackend::default();
        let cell = |symbol: &'static str, style: Style| {
            let mut cell = Cell::new(symbol);
            cell.set_style(style);
            cell
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let cells = [
            cell("a", bold),
            cell("b", bold),
            cell("日", Style::new().fg(Color::Indexed(32))),
            cell("c", Style::new()),
        ];
        let places = [(0, 0), (1, 0), (2, 0), (4, 0)];
        let content = places.iter().zip(&cells);
        backend
            .draw(content.map(|((x, y), cell)| (*x, *y, cell)))
            .unwrap();
        assert_eq!(
            backend.out,
            "\x1b[1;1H\x1b[0;1mab\x1b[0;38;5;32m日\x1b[1;5H\x1b[0mc\x1b[0m"
        );
    }
}
