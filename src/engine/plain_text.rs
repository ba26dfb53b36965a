//! Removes terminal escape sequences and control characters from text that ralph did not write.
//!
//! Such text is cleaned once, at its source: an agent's acts when they are decoded, an excerpt for
//! a prompt when it is created, a report before it is recorded. Files with raw output are not
//! cleaned.

use std::borrow::Cow;
use vte::{Parser, Perform};

/// Cleans one line, or text that is shown on one line. Tabs are kept.
///
/// Characters that reorder text are replaced, because they could make a line look like another one.
pub(crate) fn plain(line: &str) -> Cow<'_, str> {
    if line.bytes().all(|byte| byte == b'\t' || is_printable(byte)) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(strip(line, false))
}

/// Cleans a text of several lines, each on its own. As on a terminal, text after a carriage return
/// overwrites the line.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let is_clean = |byte| matches!(byte, b'\t' | b'\n') || is_printable(byte);
    if text.bytes().all(is_clean) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(strip(text, true))
}

/// Cleans the content of a file or a diff. Removes only control characters; unlike [`clean`], keeps
/// the text before a carriage return.
pub(crate) fn plain_lines(text: &str) -> Cow<'_, str> {
    if let Cow::Borrowed(clean) = clean(text) {
        return Cow::Borrowed(clean);
    }
    let lines: Vec<_> = text.split('\n').map(plain).collect();
    lines.join("\n").into()
}

fn is_printable(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

fn strip(text: &str, has_lines: bool) -> String {
    let mut stripper = Stripper {
        out: String::with_capacity(text.len()),
        has_lines,
        after_return: false,
    };
    let text = expand_c1(text);
    if !has_lines {
        Parser::<1024>::new().advance(&mut stripper, text.as_bytes());
        return stripper.out;
    }
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            stripper.after_return = false;
            stripper.out.push('\n');
        }
        // Use a new parser for each line: an unterminated sequence must not hide later lines.
        Parser::<1024>::new().advance(&mut stripper, line.as_bytes());
    }
    stripper.out
}

/// Replaces 8-bit control characters, which the parser does not recognize in UTF-8, with their
/// 7-bit sequences.
fn expand_c1(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| matches!(c, '\u{80}'..='\u{9f}')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{80}'..='\u{9f}' => {
                out.push('\x1b');
                out.extend(char::from_u32(c as u32 - 0x40));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Collects the characters that the parser prints, without escape sequences.
struct Stripper {
    out: String,
    has_lines: bool,
    /// Whether the last character was a carriage return.
    after_return: bool,
}

impl Perform for Stripper {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.after_return) && self.has_lines {
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            self.out.truncate(line);
        }
        self.out.push(match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                '\u{fffd}'
            }
            // The parser passes DEL as a character.
            '\x7f' => return,
            c => c,
        });
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\t' => self.print('\t'),
            b'\r' => self.after_return = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_control_characters_are_removed_and_text_stays() {
        for (raw, shown) in [
            ("plain\ttext", "plain\ttext"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]0;title\x1b\\after", "after"),
            ("\u{9d}8;;evil\u{9c}link", "link"),
            ("\x1bP+q544e\x1b\\x", "x"),
            ("\u{90}dcs\u{9c}x", "x"),
            ("\u{9b}2Jx", "x"),
            ("\x1b[2J\x1b[Hspoof", "spoof"),
            ("\x1b(Bx", "x"),
            ("\x1b#8x", "x"),
            ("\x1bcreset", "reset"),
            ("bell\x07 back\x08 del\x7f", "bell back del"),
            ("over\rwritten", "overwritten"),
            ("\u{202e}txt.exe", "\u{fffd}txt.exe"),
            ("\u{2066}a\u{200f}b", "\u{fffd}a\u{fffd}b"),
            ("\x1b]0;never ends", ""),
            ("\x1b[31", ""),
            ("\x1b", ""),
            ("日本語 ✓ é", "日本語 ✓ é"),
        ] {
            assert_eq!(plain(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn an_unterminated_sequence_hides_only_the_rest_of_its_line() {
        for raw in [
            "start\n\x1b]0;oops\nERROR",
            "start\n\u{9d}oops\nERROR",
            "start\n\x1bPoops\nERROR",
            "start\nx\r\x1b[\nERROR",
        ] {
            let shown = clean(raw);
            assert!(
                shown.starts_with("start\n") && shown.ends_with("\nERROR"),
                "{raw:?}"
            );
        }
        assert_eq!(clean("10%\r20%\rdone\nx\r\n"), "done\nx\n");
    }
}
