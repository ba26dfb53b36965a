//! Filters the escape sequences of an agent's screen before they reach the user's terminal.

use std::collections::BTreeSet;

/// Passes on what draws, drops what would reach the clipboard or an outer terminal, and remembers
/// which terminal modes have to be restored.
#[derive(Default)]
pub(super) struct EscapeFilter {
    state: ParserState,
    /// The bytes of the sequence read so far.
    sequence: Vec<u8>,
    /// The modes that differ from their defaults: those switched on, and those of [`ON_BY_DEFAULT`]
    /// switched off.
    changed: BTreeSet<u16>,
    /// How many keyboard protocols were pushed and not popped.
    keyboard_modes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ParserState {
    #[default]
    Ground,
    /// After 0xC2, the first byte of a C1 control in UTF-8.
    C1,
    Escape,
    /// Inside a CSI sequence.
    Sequence,
    /// Inside a string (OSC, DCS and the like); `escape` is set after an ESC, which may end it.
    String {
        escape: bool,
    },
}

/// Modes that are on by default: line wrapping and the cursor.
const ON_BY_DEFAULT: [u16; 2] = [7, 25];
/// The alternate screen, in its three variants.
const ALTERNATE_SCREEN: [u16; 3] = [1049, 1047, 47];
/// OSC commands that are dropped: clipboard access and file transfer.
const BLOCKED_OSC: [u16; 4] = [52, 1337, 5113, 5522];
/// Longer sequences are dropped.
const MAX_SEQUENCE: usize = 64 * 1024;

impl EscapeFilter {
    /// Returns the bytes that may reach the terminal.
    pub(super) fn filter(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.take(byte, &mut out);
        }
        out
    }

    /// Returns the sequences that restore the terminal and start a new line.
    pub(super) fn restore(&self) -> Vec<u8> {
        let alternate = ALTERNATE_SCREEN
            .iter()
            .filter(|mode| self.changed.contains(mode))
            .take(1);
        let (default_on, others): (Vec<u16>, Vec<u16>) = self
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
        out.push_str(&"\x1b[<u".repeat(self.keyboard_modes.min(16)));
        // Reset the scroll region without moving the cursor.
        out.push_str("\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x1b>\r\n\x1b[J");
        out.into_bytes()
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            ParserState::Ground => match byte {
                0x1b => self.start(ParserState::Escape, byte),
                // C1 controls are dropped: some start a string, and none is needed.
                0xc2 => self.start(ParserState::C1, byte),
                _ => out.push(byte),
            },
            ParserState::C1 => {
                self.state = ParserState::Ground;
                if !(0x80..0xa0).contains(&byte) {
                    out.push(0xc2);
                    self.take(byte, out);
                }
            }
            ParserState::Escape => self.after_escape(byte, out),
            ParserState::Sequence => match byte {
                0x1b => self.start(ParserState::Escape, byte),
                0x18 | 0x1a => self.drop(),
                // Terminals execute a control inside a sequence at once.
                0x00..0x20 => out.push(byte),
                0x40..0x7f => {
                    self.sequence.push(byte);
                    self.track_modes();
                    self.pass(out);
                }
                0x7f => {}
                0x80.. => {
                    self.drop();
                    self.take(byte, out);
                }
                _ if self.sequence.len() > MAX_SEQUENCE => self.drop(),
                _ => self.sequence.push(byte),
            },
            ParserState::String { escape: true } if byte == b'\\' => {
                self.end_string(b"\x1b\\", out);
            }
            // An escape that does not end the string starts a new sequence: drop the string.
            ParserState::String { escape: true } => {
                self.start(ParserState::Escape, 0x1b);
                self.after_escape(byte, out);
            }
            ParserState::String { .. } => match byte {
                0x07 if self.sequence.starts_with(b"\x1b]") => self.end_string(b"\x07", out),
                0x18 | 0x1a => self.drop(),
                0x1b => self.state = ParserState::String { escape: true },
                0x00..0x20 => {}
                _ if self.sequence.len() < MAX_SEQUENCE => self.sequence.push(byte),
                _ => {}
            },
        }
    }

    fn after_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            // Another escape starts again; terminals ignore DEL and bytes beyond ASCII here.
            0x1b | 0x7f.. => {}
            0x18 | 0x1a => self.drop(),
            0x00..0x20 => out.push(byte),
            _ => {
                self.sequence.push(byte);
                match byte {
                    b'[' => self.state = ParserState::Sequence,
                    b']' | b'P' | b'X' | b'^' | b'_' => {
                        self.state = ParserState::String { escape: false }
                    }
                    // Other sequences may have further bytes, which are harmless by themselves.
                    _ => self.pass(out),
                }
            }
        }
    }

    fn end_string(&mut self, end: &[u8], out: &mut Vec<u8>) {
        if self.is_allowed_string() {
            self.sequence.extend_from_slice(end);
            self.pass(out);
        } else {
            self.drop();
        }
    }

    fn start(&mut self, state: ParserState, byte: u8) {
        self.sequence.clear();
        self.sequence.push(byte);
        self.state = state;
    }

    fn pass(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.sequence);
        self.state = ParserState::Ground;
    }

    fn drop(&mut self) {
        self.sequence.clear();
        self.state = ParserState::Ground;
    }

    /// Whether the string is an OSC command that is not blocked.
    fn is_allowed_string(&self) -> bool {
        let Some(command) = self.sequence.strip_prefix(b"\x1b]") else {
            return false;
        };
        let digits = command
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(command.len());
        // In some terminals a large number overflows, and could turn into a blocked one.
        let Ok(number) = std::str::from_utf8(&command[..digits])
            .unwrap_or_default()
            .parse::<u16>()
        else {
            return false;
        };
        // A C1 control inside could end this string and start another.
        let controls = command
            .windows(2)
            .any(|pair| pair[0] == 0xc2 && (0x80..0xa0).contains(&pair[1]));
        self.sequence.len() < MAX_SEQUENCE && !controls && !BLOCKED_OSC.contains(&number)
    }

    /// Remembers the modes that the sequence changes.
    fn track_modes(&mut self) {
        let Some((last, rest)) = self.sequence[2..].split_last() else {
            return;
        };
        match (rest.first(), last) {
            (Some(b'?'), b'h' | b'l') => {
                let on = *last == b'h';
                let modes = rest[1..].split(|byte| *byte == b';');
                for mode in modes.filter_map(|mode| std::str::from_utf8(mode).ok()?.parse().ok()) {
                    if on == ON_BY_DEFAULT.contains(&mode) {
                        self.changed.remove(&mode);
                    } else {
                        self.changed.insert(mode);
                    }
                }
            }
            (Some(b'>'), b'u') => self.keyboard_modes += 1,
            (Some(b'<'), b'u') => self.keyboard_modes = self.keyboard_modes.saturating_sub(1),
            _ => {}
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
            ("a\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\b", "a\x1b\\b"),
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
        // Some terminal understands each of these as a clipboard command: an escape starts a new
        // sequence anywhere, and controls inside a sequence are not part of it.
        for (text, shown) in [
            ("a\x1b\x1b]52;c;aGk=\x07b", "ab"),
            ("a\x1b\n]52;c;aGk=\x07b", "a\nb"),
            ("a\x1b\x7f]52;c;aGk=\x07b", "ab"),
            ("a\x1bé]52;c;aGk=\x07b", "ab"),
            ("a\x1b]0;title\x1b]52;c;aGk=\x07b", "ab"),
            ("a\x1b]0;title\x1b[m\x1b]52;c;aGk=\x07b", "a\x1b[mb"),
            ("a\x1b]052;c;aGk=\x07b", "ab"),
            ("a\x1b]4294967348;c;aGk=\x07b", "ab"),
            ("a\x1b]\x0152;c;aGk=\x07b", "ab"),
            ("a\x1b]0;x\u{9c}\u{9d}52;c;aGk=\u{9c}\x07b", "ab"),
            ("a\x1b[3\x18\u{9d}52;c;aGk=\x07b", "a52;c;aGk=\x07b"),
            ("a\x1b[3\u{9d}52;c;aGk=\x07b", "a52;c;aGk=\x07b"),
            ("a\x1bPx\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\b", "a\x1b\\b"),
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
