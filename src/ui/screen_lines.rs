//! Turns the output of an agent that draws on a terminal into lines of text, without redrawn ones.

use crate::engine::display::char_width;
use std::collections::VecDeque;
use vte::{Params, Parser, Perform};

/// A line that was printed among this many last ones is not printed again: the agent has redrawn it.
const REMEMBERED: usize = 200;
/// The longest line, in characters.
const LINE_MAX: usize = 4096;

/// Extracts lines from what was written to a terminal.
#[derive(Default)]
pub(crate) struct ScreenLines {
    parser: Parser,
    lines: Lines,
}

/// The line that is being written, and the last ones that were printed.
#[derive(Default)]
struct Lines {
    line: String,
    /// The cursor's column; it can be to the left of the line's end.
    column: usize,
    printed: VecDeque<String>,
    out: String,
}

impl ScreenLines {
    /// Appends to `out` the lines that `bytes` complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.parser.advance(&mut self.lines, bytes);
        out.extend_from_slice(std::mem::take(&mut self.lines.out).as_bytes());
    }

    /// Appends the unfinished last line to `out`.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        self.lines.end_line();
        out.extend_from_slice(std::mem::take(&mut self.lines.out).as_bytes());
    }
}

impl Lines {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.column = 0;
        let text = line.trim_end();
        let is_frame = |c: char| c.is_whitespace() || ('─'..='╿').contains(&c);
        if text.chars().all(is_frame) || self.printed.iter().any(|known| known == text) {
            return;
        }
        self.out.push_str(text);
        self.out.push('\n');
        self.printed.push_back(text.to_owned());
        if self.printed.len() > REMEMBERED {
            self.printed.pop_front();
        }
    }

    /// Moves the cursor to a column of this line.
    fn move_to(&mut self, column: usize) {
        let width: usize = self.line.chars().map(char_width).sum();
        if column > width && column < LINE_MAX {
            self.line.push_str(&" ".repeat(column - width));
        }
        self.column = column;
    }
}

impl Perform for Lines {
    fn print(&mut self, c: char) {
        let width: usize = self.line.chars().map(char_width).sum();
        if self.column < width {
            // Text from here on is overwritten.
            let mut at = 0;
            let keep = self.line.chars().take_while(|c| {
                at += char_width(*c);
                at <= self.column
            });
            self.line = keep.collect();
        }
        if !c.is_control() && self.line.len() < LINE_MAX {
            self.line.push(c);
        }
        self.column += char_width(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0b | 0x0c => self.end_line(),
            b'\r' => self.column = 0,
            b'\t' => self.move_to((self.column / 8 + 1) * 8),
            0x08 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|param| param.first());
        let count = usize::from(first.copied().unwrap_or(0)).max(1);
        match action {
            'C' => self.move_to(self.column + count),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.move_to(count - 1),
            // The cursor moves to another row.
            'A' | 'B' | 'E' | 'F' | 'H' | 'f' | 'd' | 'J' => self.end_line(),
            'K' if first.copied().unwrap_or(0) == 2 => self.line.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &str) -> String {
        let (mut lines, mut out) = (ScreenLines::default(), Vec::new());
        for piece in bytes.as_bytes().chunks(3) {
            lines.feed(piece, &mut out);
        }
        lines.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn moves_of_the_cursor_become_spaces_and_lines() {
        assert_eq!(
            text("\x1b[1mone\x1b[0m\x1b[2Ctwo\r\nthree"),
            "one  two\nthree\n"
        );
        assert_eq!(text("\x1b[2J\x1b[Hfirst\x1b[5;3Hsecond"), "first\nsecond\n");
        assert_eq!(text("50%\r100%\n"), "100%\n");
        assert_eq!(text("a\tb"), "a       b\n");
    }

    #[test]
    fn redrawn_lines_and_frames_are_left_out() {
        let frame = "╭────╮\r\n│ hi │\r\n╰────╯\r\n";
        assert_eq!(
            text(&format!("{frame}\x1b[3A{frame}bye\r\n")),
            "│ hi │\nbye\n"
        );
    }
}
