//! Removes terminal escape sequences and control characters from text that ralph did not write.
//!
//! Output of agents and checks is cleaned once, at its source: an agent's acts when they are
//! decoded, an excerpt for a prompt when it is created, a report before it is recorded. Files with
//! raw output are not cleaned. Everything that is printed passes [`visible`] or [`escape_json`] as
//! well, because names, paths and settings are not cleaned at their source.

use std::borrow::Cow;
use std::fmt::Write as _;
use vte::{Parser, Perform};

/// Returns whether a character changes how the text around it is shown, or is invisible: control
/// characters, characters that reorder text, and those without width. Line ends and tabs are not
/// hidden.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{061c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Returns whether a character joins or separates its neighbors. Emoji and the words of some
/// scripts need it.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Replaces each hidden character with U+FFFD, except for joiners between two characters that are
/// not ASCII. A line that ends in CR LF ends in LF. No text is removed, so that an escape sequence
/// can neither act nor hide what follows it.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let is_wide = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_hidden(c));
    let mut last = None;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\r' if next == Some('\n') => {}
            c if is_joiner(c) && is_wide(last) && is_wide(next) => out.push(c),
            c if is_hidden(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
        last = Some(c);
    }
    Cow::Owned(out)
}

/// Escapes hidden characters in a JSON text. A parser reads the same values as before.
pub(crate) fn escape_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c != '\r' && is_hidden(c);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Cleans one line, or text that is shown on one line. Removes escape sequences and control
/// characters except tabs, and replaces other hidden characters.
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
        return stripper.finish();
    }
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            stripper.after_return = false;
            stripper.out.push('\n');
        }
        // Use a new parser for each line: an unterminated sequence must not hide later lines.
        Parser::<1024>::new().advance(&mut stripper, line.as_bytes());
    }
    stripper.finish()
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

impl Stripper {
    fn finish(self) -> String {
        match visible(&self.out) {
            Cow::Borrowed(_) => self.out,
            Cow::Owned(visible) => visible,
        }
    }
}

impl Perform for Stripper {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.after_return) && self.has_lines {
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            self.out.truncate(line);
        }
        // The parser passes DEL as a character.
        if c != '\x7f' {
            self.out.push(c);
        }
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
    fn hidden_characters_become_visible_and_nothing_is_lost() {
        for (raw, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[2Jx", "\u{fffd}[2Jx"),
            ("\x1b]0;never ends", "\u{fffd}]0;never ends"),
            ("\u{9b}2J\x7f\0", "\u{fffd}2J\u{fffd}\u{fffd}"),
            ("a\r\nb\rc", "a\nb\u{fffd}c"),
            ("ma\u{200d}in", "ma\u{fffd}in"),
            ("\u{200d}é\u{200d}", "\u{fffd}é\u{fffd}"),
            (
                "می\u{200c}خواهم 👩\u{200d}🚀",
                "می\u{200c}خواهم 👩\u{200d}🚀",
            ),
            ("\u{feff}x\u{e0041}", "\u{fffd}x\u{fffd}"),
            ("日本語 ✓ é", "日本語 ✓ é"),
        ] {
            assert_eq!(visible(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn escaped_json_has_the_same_value_and_nothing_hidden() {
        let value = "\x1b[2J \u{9b}1m \u{202e}\u{200d}\u{e0041}\x7f\u{feff} é\r\n";
        let pretty = serde_json::to_string_pretty(&[value]).unwrap();
        let escaped = escape_json(&pretty);
        assert!(!escaped.contains(is_hidden), "{escaped:?}");
        let read: Vec<String> = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, [value]);
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
