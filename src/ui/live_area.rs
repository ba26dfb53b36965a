//! Draws the live rows at the bottom of the terminal, and prints text above them.

use super::StyledText;
use super::output_queue::OutputQueue;
use super::tty::width;

/// Standard output with live rows at its end.
pub(super) struct LiveArea {
    output: OutputQueue,
    /// The live rows that were drawn last.
    drawn: Vec<StyledText>,
    /// The widths, in columns, of the live rows that are on the screen now.
    drawn_widths: Vec<usize>,
}

impl LiveArea {
    pub(super) fn new(output: OutputQueue) -> Self {
        Self {
            output,
            drawn: Vec::new(),
            drawn_widths: Vec::new(),
        }
    }

    /// Returns whether the reader of standard output has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.output.is_closed()
    }

    /// Returns whether these rows are on the screen.
    pub(super) fn shows(&self, rows: &[StyledText]) -> bool {
        self.drawn == rows
    }

    /// Prints `text` above the live rows, and replaces them with `rows`.
    pub(super) fn draw(&mut self, text: &[u8], rows: Vec<StyledText>) {
        let texts: Vec<&str> = rows.iter().map(StyledText::as_str).collect();
        if self
            .output
            .write(&self.erase_sequence(), text, &texts.join("\n"))
        {
            self.drawn_widths = rows.iter().map(StyledText::columns).collect();
            self.drawn = rows;
        }
    }

    /// Writes bytes while no live rows are shown, or that do not move the cursor.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.output.write("", bytes, "");
    }

    /// Makes the terminal mark pasted text, or not, so that it is not taken for keys.
    pub(super) fn mark_pastes(&mut self, marked: bool) {
        self.write(if marked {
            b"\x1b[?2004h"
        } else {
            b"\x1b[?2004l"
        });
    }

    /// Forgets the live rows, because another process has the terminal.
    pub(super) fn forget(&mut self) {
        self.drawn_widths.clear();
    }

    /// Waits until everything is written.
    pub(super) fn close(&mut self) {
        self.output.close();
    }

    /// Returns the escape sequences that erase the live rows. Accounts for rows that the terminal
    /// wrapped because it became narrower.
    fn erase_sequence(&self) -> String {
        if self.drawn_widths.is_empty() {
            return String::new();
        }
        let width = width().unwrap_or(80);
        let rows: usize = self
            .drawn_widths
            .iter()
            .map(|columns| columns.div_ceil(width).max(1))
            .sum();
        format!("\r\x1b[2K{}", "\x1b[1A\r\x1b[2K".repeat(rows - 1))
    }
}
