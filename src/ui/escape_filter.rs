//! Filters the escape sequences of an agent's screen before they reach the user's terminal.
//!
//! `vte` finds the sequences. Their bytes are passed on unchanged, except for bytes that terminals
//! interpret differently, such as controls inside a sequence. A blocked sequence therefore cannot
//! hide inside another.

use std::collections::BTreeSet;
use vte::{Params, Parser, Perform};

/// Passes on drawing sequences, drops those that reach the clipboard or an outer terminal, and
/// records which terminal modes have to be restored.
#[derive(Default)]
pub(super) struct EscapeFilter {
    parser: Parser,
    screen: FilteredScreen,
}

/// The output of the filter, and the resulting state of the terminal.
#[derive(Default)]
struct FilteredScreen {
    out: Vec<u8>,
    /// The bytes of the sequence read so far, beginning with ESC.
    sequence: Vec<u8>,
    /// The private modes that differ from their defaults: those in [`ON_BY_DEFAULT`] that were
    /// switched off, and all others that were switched on.
    changed: BTreeSet<u16>,
    /// The number of keyboard protocols that were pushed and not popped.
    keyboard_modes: usize,
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
/// The control character that aborts a sequence, as [`SUBSTITUTE`] does.
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// The private modes that are on by default: line wrapping and the cursor.
const ON_BY_DEFAULT: [u16; 2] = [7, 25];
/// The private modes that switch to the alternate screen.
const ALTERNATE_SCREEN: [u16; 3] = [1049, 1047, 47];
/// The OSC commands that are dropped: clipboard access and file transfer.
const BLOCKED_OSC: [u16; 4] = [52, 1337, 5113, 5522];
/// The length in bytes from which a sequence is dropped.
const MAX_SEQUENCE: usize = 64 * 1024;

impl EscapeFilter {
    /// Returns the bytes that may reach the terminal.
    pub(super) fn filter(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.screen.out.reserve(bytes.len());
        for &byte in bytes {
            self.take(byte);
        }
        std::mem::take(&mut self.screen.out)
    }

    fn take(&mut self, byte: u8) {
        let Self { parser, screen } = self;
        if screen.is_string() && screen.is_overlong() {
            // The parser would buffer the whole string. Skip the rest of the string, then cancel
            // it.
            if !matches!(byte, ESCAPE | BELL | CANCEL | SUBSTITUTE) {
                return;
            }
            screen.sequence.clear();
            parser.advance(screen, &[CANCEL]);
            if byte != ESCAPE {
                return;
            }
        }
        screen.extend_sequence(byte);
        parser.advance(screen, &[byte]);
        if byte == ESCAPE {
            // Clear after the parser has run, because the escape may have ended a string.
            screen.sequence.clear();
            screen.sequence.push(ESCAPE);
        }
    }

    /// Returns the sequences that restore the terminal and start a new line.
    pub(super) fn restore(&self) -> Vec<u8> {
        let alternate = ALTERNATE_SCREEN
            .iter()
            .filter(|mode| self.screen.changed.contains(mode))
            .take(1);
        let (default_on, others): (Vec<u16>, Vec<u16>) = self
            .screen
            .changed
            .iter()
            .filter(|mode| !ALTERNATE_SCREEN.contains(mode))
            .partition(|mode| ON_BY_DEFAULT.contains(mode));
        let off = alternate
            .chain(&others)
            .map(|mode| format!("\x1b[?{mode}l"));
        let mut out: String = off
            .chain(default_on.iter().map(|mode| format!("\x1b[?{mode}h")))
            .collect();
        out.push_str(&"\x1b[<u".repeat(self.screen.keyboard_modes.min(16)));
        // Reset the scroll region without moving the cursor.
        out.push_str("\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x1b>\r\n\x1b[J");
        out.into_bytes()
    }
}

impl FilteredScreen {
    /// Returns whether an OSC string is being read.
    fn is_string(&self) -> bool {
        self.sequence.get(1) == Some(&b']')
    }

    fn is_overlong(&self) -> bool {
        self.sequence.len() >= MAX_SEQUENCE
    }

    /// Adds `byte` to the current sequence, unless no sequence has begun or `byte` is not part of it.
    fn extend_sequence(&mut self, byte: u8) {
        let is_part = match self.sequence.get(1) {
            _ if self.sequence.is_empty() || self.is_overlong() => false,
            // Strings other than OSC are dropped.
            Some(b'P' | b'X' | b'^' | b'_') => false,
            Some(b']') => byte >= 0x20 && byte != 0x7f,
            _ => (0x20..0x7f).contains(&byte),
        };
        if is_part {
            self.sequence.push(byte);
        }
    }

    /// Passes on the sequence, followed by `end`, unless it is too long.
    fn pass(&mut self, end: &[u8]) {
        if !self.is_overlong() {
            self.out.append(&mut self.sequence);
            self.out.extend_from_slice(end);
        }
        self.sequence.clear();
    }

    /// Returns whether the OSC string may be passed on.
    fn is_allowed_string(&self) -> bool {
        let Some(command) = self.sequence.strip_prefix(b"\x1b]") else {
            return false;
        };
        let digits = command
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(command.len());
        // In some terminals a large number overflows and could become a blocked one.
        let Ok(number) = std::str::from_utf8(&command[..digits])
            .unwrap_or_default()
            .parse::<u16>()
        else {
            return false;
        };
        // A C1 control inside the string could end it and start another.
        let controls = command
            .windows(2)
            .any(|pair| pair[0] == 0xc2 && (0x80..0xa0).contains(&pair[1]));
        !controls && !BLOCKED_OSC.contains(&number)
    }
}

impl Perform for FilteredScreen {
    fn print(&mut self, c: char) {
        self.sequence.clear();
        // C1 controls are dropped: some start a string, and none is needed.
        if !matches!(c, '\u{80}'..='\u{9f}') {
            self.out
                .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte < 0x80 && !matches!(byte, CANCEL | SUBSTITUTE) {
            self.out.push(byte);
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        match (intermediates, action) {
            (b"?", 'h' | 'l') => {
                for mode in params.iter().filter_map(|param| param.first().copied()) {
                    if (action == 'h') == ON_BY_DEFAULT.contains(&mode) {
                        self.changed.remove(&mode);
                    } else {
                        self.changed.insert(mode);
                    }
                }
            }
            (b">", 'u') => self.keyboard_modes += 1,
            (b"<", 'u') => self.keyboard_modes = self.keyboard_modes.saturating_sub(1),
            _ => {}
        }
        self.pass(b"");
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        // `osc_dispatch` has already passed on the end of the string.
        if intermediates.is_empty() && byte == b'\\' {
            self.sequence.clear();
        } else {
            self.pass(b"");
        }
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], ends_with_bell: bool) {
        if self.is_allowed_string() {
            self.pass(if ends_with_bell { b"\x07" } else { b"\x1b\\" });
        } else {
            self.sequence.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(text: &str) -> String {
        let whole = EscapeFilter::default().filter(text.as_bytes());
        for size in 1..text.len() {
            let mut filter = EscapeFilter::default();
            let pieces: Vec<u8> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| filter.filter(piece))
                .collect();
            assert_eq!(pieces, whole, "{text:?} in pieces of {size}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn drawing_passes_and_clipboard_commands_are_dropped() {
        for same in [
            "plain é日\r\n",
            "\x1b[31mred\x1b[0m \x1b[2J\x1b[1;1H",
            "\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            "\x1b(B\x1b7\x1b8\x1bM",
        ] {
            assert_eq!(filtered(same), same);
        }
        for (text, shown) in [
            ("a\x1b]52;c;aGk=\x07b", "ab"),
            ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
            ("a\x1b]1337;File=x\x07b", "ab"),
            ("a\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\b", "ab"),
            ("a\x1bPq#0;\x07#1\x1b\\b", "ab"),
            ("a\x1b_Gi=1\x1b\\b", "ab"),
            ("a\u{9d}52;c;aGk=\u{9c}b", "a52;c;aGk=b"),
            ("a\x1b]5522;type=read\x1b\\b", "ab"),
        ] {
            assert_eq!(filtered(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_blocked_command_cannot_hide_inside_another_sequence() {
        // At least one terminal understands each of these as a clipboard command: an escape starts
        // a new sequence anywhere, and controls inside a sequence are not part of it.
        for (text, shown) in [
            ("a\x1b\x1b]52;c;aGk=\x07b", "ab"),
            ("a\x1b\n]52;c;aGk=\x07b", "a\nb"),
            ("a\x1b\x7f]52;c;aGk=\x07b", "ab"),
            ("a\x1bé]52;c;aGk=\x07b", "ab"),
            ("a\x1b]0;title\x1b]52;c;aGk=\x07b", "a\x1b]0;title\x1b\\b"),
            (
                "a\x1b]0;t\x1b[m\x1b]52;c;aGk=\x07b",
                "a\x1b]0;t\x1b\\\x1b[mb",
            ),
            ("a\x1b]052;c;aGk=\x07b", "ab"),
            ("a\x1b]4294967348;c;aGk=\x07b", "ab"),
            ("a\x1b]\x0152;c;aGk=\x07b", "ab"),
            ("a\x1b]0;x\u{9c}\u{9d}52;c;aGk=\u{9c}\x07b", "ab"),
            ("a\x1b[3\x18\u{9d}52;c;aGk=\x07b", "a52;c;aGk=\x07b"),
            ("a\x1b[3\u{9d}52;c;aGk=\x07b", "a\x1b[352;c;aGk=\x07b"),
            ("a\x1bPx\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\b", "ab"),
        ] {
            assert_eq!(filtered(text), shown, "{text:?}");
        }
        assert_eq!(
            filtered("\x1b[3\n1mred"),
            "\n\x1b[31mred",
            "a control inside a sequence is executed at once"
        );
    }

    #[test]
    fn an_endless_sequence_is_dropped() {
        let long = "x".repeat(2 * MAX_SEQUENCE);
        let mut filter = EscapeFilter::default();
        for (text, shown) in [
            (format!("a\x1b]0;{long}\x07b"), "ab"),
            (format!("a\x1b]0;{long}\x1b\\b\x1b[m"), "ab\x1b[m"),
            (format!("a\x1bP{long}\x07\x1b\\b"), "ab"),
            (format!("a\x1b[{}mb", "1;".repeat(MAX_SEQUENCE)), "ab"),
        ] {
            assert_eq!(filter.filter(text.as_bytes()), shown.as_bytes());
            assert!(filter.screen.sequence.is_empty());
        }
    }

    #[test]
    fn restoring_resets_every_changed_mode() {
        let end = |text: &str| {
            let mut filter = EscapeFilter::default();
            filter.filter(text.as_bytes());
            String::from_utf8(filter.restore()).unwrap()
        };
        let plain = "\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x1b>\r\n\x1b[J";
        assert_eq!(end("hello"), plain);
        assert_eq!(end("\x1b[?1049h\x1b[?25l\x1b[?1049l\x1b[?25h"), plain);
        let left = "\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[>1u";
        let back = "\x1b[?1049l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[<u";
        assert_eq!(end(left), format!("{back}{plain}"));
    }
}
