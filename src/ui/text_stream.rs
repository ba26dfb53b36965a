//! The agent's output as people see it: line by line behind a gutter, without its controls.
//!
//! The gutter is what keeps an agent from speaking in ralph's name: no line of its own starts without.

use super::columns_of;
use crate::engine::plain_text::plain;
use memchr::memchr;

/// A longer line is shown in pieces, so that a line without an end takes no memory.
const PIECE: usize = 16 * 1024;

/// The most that a tabulator takes.
const TAB: usize = 8;

/// Turns bytes into lines that are safe to show.
pub struct Stream {
    gutter: String,
    room: usize,
    partial: Vec<u8>,
}

impl Stream {
    /// Lines behind this gutter.
    pub fn new(gutter: &str) -> Self {
        Self {
            gutter: gutter.to_owned(),
            room: usize::MAX,
            partial: Vec::new(),
        }
    }

    /// Breaks lines that take more columns than these, so that a terminal does not: where it breaks a line,
    /// the rest stands at the margin, without the gutter.
    pub fn wrap(&mut self, room: usize) {
        self.room = room;
    }

    /// Takes bytes; appends the lines that are complete by now.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        // With room for the gutters of lines of usual length.
        out.reserve(bytes.len() + bytes.len() / 8 + 256);
        while let Some(end) = memchr(b'\n', bytes) {
            let line = &bytes[..end];
            if self.partial.is_empty() && line.len() <= PIECE {
                self.show(line, out);
            } else {
                self.keep(line, out);
                self.flush(out);
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes, out);
    }

    /// Appends what is left of a line that never ended.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            self.show(&partial, out);
        }
    }

    /// The line that has not ended yet, as it would be shown.
    pub fn unfinished(&self) -> Option<String> {
        (!self.partial.is_empty()).then(|| readable(&self.partial))
    }

    fn keep(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.partial.len() + bytes.len() > PIECE {
            let (piece, rest) = bytes.split_at(PIECE - self.partial.len());
            self.partial.extend_from_slice(piece);
            self.flush(out);
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn show(&self, line: &[u8], out: &mut Vec<u8>) {
        if line.len() <= self.room && is_plain(line) {
            self.row(line, out);
            return;
        }
        let text = readable(line);
        let mut rest = text.as_str();
        loop {
            let (row, more) = split_at_column(rest, self.room);
            self.row(row.as_bytes(), out);
            rest = more;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn row(&self, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.gutter.as_bytes());
        out.extend_from_slice(text);
        out.push(b'\n');
    }
}

/// Whether a line is shown as it is. Every byte is looked at: without an early end many are looked at at once.
fn is_plain(line: &[u8]) -> bool {
    line.iter()
        .fold(true, |plain, byte| plain & (0x20..0x7f).contains(byte))
}

/// What fits into so many columns, and what is left. At least one character fits.
fn split_at_column(text: &str, room: usize) -> (&str, &str) {
    let mut column = 0;
    for (at, c) in text.char_indices() {
        column += if c == '\t' { TAB } else { columns_of(c) };
        if column > room && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// What a terminal would leave of a line: a carriage return starts it anew, controls are gone.
fn readable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let last = text
        .trim_end_matches('\r')
        .rsplit('\r')
        .next()
        .unwrap_or_default();
    plain(last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut stream = Stream::new("| ");
        let mut out = Vec::new();
        for piece in pieces {
            stream.feed(piece, &mut out);
        }
        stream.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_stands_behind_the_gutter() {
        assert_eq!(
            shown(&[b"one\ntw", b"o\n\nthree"]),
            "| one\n| two\n| \n| three\n"
        );
        assert_eq!(
            shown(&[b"[ralph] x: loop complete\n"]),
            "| [ralph] x: loop complete\n"
        );
    }

    #[test]
    fn controls_do_not_reach_the_terminal() {
        assert_eq!(shown(&[b"\x1b]0;evil\x07a\x1b[2Jb\x07\n"]), "| ab\n");
        assert_eq!(shown(&[b"10%\r50%\r100%\r\n"]), "| 100%\n");
        assert_eq!(shown(&[b"bad \xff utf\n"]), "| bad \u{fffd} utf\n");
        assert_eq!(
            shown(&[
                "split é".as_bytes().split_at(7).0,
                "split é".as_bytes().split_at(7).1
            ]),
            "| split é\n"
        );
    }

    #[test]
    fn a_line_is_broken_before_a_terminal_would_break_it() {
        let wrapped = |text: &str| {
            let mut stream = Stream::new("| ");
            stream.wrap(10);
            let mut out = Vec::new();
            stream.feed(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(wrapped("0123456789\n"), "| 0123456789\n");
        assert_eq!(
            wrapped("0123456789[ralph] x: done\n"),
            "| 0123456789\n| [ralph] x:\n|  done\n"
        );
        assert_eq!(wrapped("日本語日本語\n"), "| 日本語日本\n| 語\n");
        assert_eq!(wrapped("a\tb\tc\n"), "| a\tb\n| \tc\n");
        assert_eq!(wrapped("\n"), "| \n");
    }

    #[test]
    fn a_line_without_end_is_shown_in_pieces() {
        let long = vec![b'x'; 3 * PIECE + 5];
        let text = shown(&[&long[..10], &long[10..], b"\n"]);
        assert_eq!(text.matches('x').count(), long.len());
        assert!(
            text.lines()
                .all(|line| line.starts_with("| ") && line.len() <= PIECE + 2)
        );
    }
}
