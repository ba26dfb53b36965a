//! Prints untrusted output line by line behind a gutter, without control characters.
//!
//! Every line of an agent's output starts with the gutter, so it cannot imitate ralph's own lines.

use crate::engine::display::char_width;
use crate::engine::plain_text::plain;
use memchr::memchr_iter;

/// The maximum length of a line in bytes. Longer lines are split, so that a line without an end
/// uses bounded memory.
pub(super) const MAX_LINE: usize = 16 * 1024;

/// The maximum number of columns that a tab occupies.
const TAB: usize = 8;

/// Splits bytes into lines that are safe to print.
pub(crate) struct GutterWriter {
    gutter: String,
    width: usize,
    /// The start of a line whose newline has not been read yet.
    partial: Vec<u8>,
}

impl GutterWriter {
    pub(crate) fn new(gutter: &str) -> Self {
        Self {
            gutter: gutter.to_owned(),
            width: usize::MAX,
            partial: Vec::new(),
        }
    }

    /// Sets the number of columns, gutter excluded, at which lines are wrapped. If the terminal
    /// wrapped them, the rest of a line would start without the gutter.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Appends to `out` the lines that `bytes` complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // Also reserve space for the gutters, assuming lines of usual length.
        out.reserve(bytes.len() + bytes.len() / 8 + 256);
        let is_text = is_plain_text(bytes);
        let mut start = 0;
        for end in memchr_iter(b'\n', bytes) {
            let line = &bytes[start..end];
            if !self.partial.is_empty() || line.len() > MAX_LINE {
                self.buffer(line, out);
                self.flush(out);
            } else if is_text && line.len() <= self.width {
                out.extend_from_slice(self.gutter.as_bytes());
                out.extend_from_slice(&bytes[start..=end]);
            } else {
                self.show(line, out);
            }
            start = end + 1;
        }
        self.buffer(&bytes[start..], out);
    }

    /// Appends the unfinished last line to `out`, if there is one.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            self.show(&partial, out);
        }
    }

    /// Returns the line whose newline has not been read yet. `None` if there is none.
    pub(crate) fn unfinished(&self) -> Option<String> {
        (!self.partial.is_empty()).then(|| readable(&self.partial))
    }

    fn buffer(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.partial.len() + bytes.len() > MAX_LINE {
            let (piece, rest) = bytes.split_at(MAX_LINE - self.partial.len());
            self.partial.extend_from_slice(piece);
            self.flush(out);
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn show(&self, line: &[u8], out: &mut Vec<u8>) {
        if line.len() <= self.width && is_plain(line) {
            self.row(line, out);
            return;
        }
        let text = readable(line);
        let mut rest = text.as_str();
        loop {
            let (row, more) = split_at_column(rest, self.width);
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

/// Returns whether a line is printable ASCII. `fold` never exits early, so it can be vectorized.
fn is_plain(line: &[u8]) -> bool {
    line.iter()
        .fold(true, |plain, byte| plain & (0x20..0x7f).contains(byte))
}

/// Returns whether all lines are printable ASCII. One scan of the whole text is several times
/// faster than one per line.
fn is_plain_text(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, byte| {
        plain & matches!(byte, b'\n' | 0x20..0x7f)
    })
}

/// Splits `text` after at most `width` columns, but always after at least one character.
fn split_at_column(text: &str, width: usize) -> (&str, &str) {
    let mut column = 0;
    for (at, c) in text.char_indices() {
        column += if c == '\t' { TAB } else { char_width(c) };
        if column > width && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// Returns the line as a terminal would finally show it: the text after the last carriage return,
/// without control characters.
pub(super) fn readable(line: &[u8]) -> String {
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
        let mut stream = GutterWriter::new("| ");
        let mut out = Vec::new();
        for piece in pieces {
            stream.feed(piece, &mut out);
        }
        stream.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_starts_with_the_gutter() {
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
    fn control_characters_are_removed() {
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
    fn long_lines_are_wrapped_at_the_width() {
        let wrapped = |text: &str| {
            let mut stream = GutterWriter::new("| ");
            stream.set_width(10);
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
    fn a_line_that_never_ends_is_split() {
        let long = vec![b'x'; 3 * MAX_LINE + 5];
        let text = shown(&[&long[..10], &long[10..], b"\n"]);
        assert_eq!(text.matches('x').count(), long.len());
        assert!(
            text.lines()
                .all(|line| line.starts_with("| ") && line.len() <= MAX_LINE + 2)
        );
    }
}
