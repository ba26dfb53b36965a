//! An agent's screen as a person may see it: every byte but those that reach beyond it, and a clean end.

use std::collections::BTreeSet;

/// Lets through what paints, keeps back what would reach the clipboard or the terminal around this one, and knows
/// what has to be put back.
#[derive(Default)]
pub struct Glass {
    state: State,
    /// The sequence that has begun.
    sequence: Vec<u8>,
    /// The modes that are not as they were: those that are on, and those of [`USUAL`] that are off.
    changed: BTreeSet<u16>,
    /// How often the way in which keys are told was changed.
    keyboards: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Ground,
    /// After the first byte of a control in two bytes.
    Control,
    Escape,
    /// A sequence up to its last letter.
    Sequence,
    /// A string up to its terminator, and whether the escape of that has come.
    String {
        escape: bool,
    },
}

/// Modes that are on by themselves: lines that wrap, and the cursor.
const USUAL: [u16; 2] = [7, 25];
/// The second screen, in its three spellings.
const SECOND: [u16; 3] = [1049, 1047, 47];
/// Commands to the terminal itself that are not passed on: the clipboard, and files.
const KEPT_BACK: [u16; 4] = [52, 1337, 5113, 5522];
/// A longer sequence is none.
const SEQUENCE_MAX: usize = 64 * 1024;

impl Glass {
    /// What may be shown of these bytes.
    pub fn through(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.take(byte, &mut out);
        }
        out
    }

    /// What puts a terminal back to where it was, on a line of its own.
    pub fn close(&self) -> Vec<u8> {
        let second = SECOND
            .iter()
            .filter(|mode| self.changed.contains(mode))
            .take(1);
        let (usual, others): (Vec<u16>, Vec<u16>) = self
            .changed
            .iter()
            .filter(|mode| !SECOND.contains(mode))
            .partition(|mode| USUAL.contains(mode));
        let off = second.chain(&others).map(|mode| format!("\x1b[?{mode}l"));
        let mut out: String = off
            .chain(usual.iter().map(|mode| format!("\x1b[?{mode}h")))
            .collect();
        out.push_str(&"\x1b[<u".repeat(self.keyboards.min(16)));
        // The whole screen scrolls again, and the cursor stays.
        out.push_str("\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x1b>\r\n\x1b[J");
        out.into_bytes()
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground => match byte {
                0x1b => self.begin(State::Escape, byte),
                // Controls beyond ASCII, some of which begin a string: nobody needs them.
                0xc2 => self.begin(State::Control, byte),
                _ => out.push(byte),
            },
            State::Control => {
                self.state = State::Ground;
                if !(0x80..0xa0).contains(&byte) {
                    out.push(0xc2);
                    self.take(byte, out);
                }
            }
            State::Escape => self.after_escape(byte, out),
            State::Sequence => match byte {
                0x1b => self.begin(State::Escape, byte),
                0x18 | 0x1a => self.drop(),
                // It does what it does elsewhere, and is no part of the sequence.
                0x00..0x20 => out.push(byte),
                0x40..0x7f => {
                    self.sequence.push(byte);
                    self.note();
                    self.pass(out);
                }
                0x7f => {}
                0x80.. => {
                    self.drop();
                    self.take(byte, out);
                }
                _ if self.sequence.len() > SEQUENCE_MAX => self.drop(),
                _ => self.sequence.push(byte),
            },
            State::String { escape: true } if byte == b'\\' => self.end_string(b"\x1b\\", out),
            // Whatever the terminal makes of a string that is cut short: it is not shown, and what comes is looked at.
            State::String { escape: true } => {
                self.begin(State::Escape, 0x1b);
                self.after_escape(byte, out);
            }
            State::String { .. } => match byte {
                0x07 if self.sequence.starts_with(b"\x1b]") => self.end_string(b"\x07", out),
                0x18 | 0x1a => self.drop(),
                0x1b => self.state = State::String { escape: true },
                0x00..0x20 => {}
                _ if self.sequence.len() < SEQUENCE_MAX => self.sequence.push(byte),
                _ => {}
            },
        }
    }

    fn after_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            // Another escape begins anew. What comes in between terminals do, or leave out, and go on.
            0x1b | 0x7f.. => {}
            0x18 | 0x1a => self.drop(),
            0x00..0x20 => out.push(byte),
            _ => {
                self.sequence.push(byte);
                match byte {
                    b'[' => self.state = State::Sequence,
                    b']' | b'P' | b'X' | b'^' | b'_' => {
                        self.state = State::String { escape: false }
                    }
                    // Others have further bytes, which paint nothing and are passed on as they come.
                    _ => self.pass(out),
                }
            }
        }
    }

    fn end_string(&mut self, end: &[u8], out: &mut Vec<u8>) {
        if self.is_harmless() {
            self.sequence.extend_from_slice(end);
            self.pass(out);
        } else {
            self.drop();
        }
    }

    fn begin(&mut self, state: State, byte: u8) {
        self.sequence.clear();
        self.sequence.push(byte);
        self.state = state;
    }

    fn pass(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.sequence);
        self.state = State::Ground;
    }

    fn drop(&mut self) {
        self.sequence.clear();
        self.state = State::Ground;
    }

    /// Whether a string is a command to the terminal itself, and none of those that are kept back.
    fn is_harmless(&self) -> bool {
        let Some(command) = self.sequence.strip_prefix(b"\x1b]") else {
            return false;
        };
        let digits = command
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(command.len());
        // Some terminals count round and round: what is too large for a command's number may become any of them.
        let Ok(number) = std::str::from_utf8(&command[..digits])
            .unwrap_or_default()
            .parse::<u16>()
        else {
            return false;
        };
        // Controls beyond ASCII may end it, and begin another.
        let controls = command
            .windows(2)
            .any(|pair| pair[0] == 0xc2 && (0x80..0xa0).contains(&pair[1]));
        self.sequence.len() < SEQUENCE_MAX && !controls && !KEPT_BACK.contains(&number)
    }

    /// Notes what a sequence changes that outlives the agent.
    fn note(&mut self) {
        let Some((last, rest)) = self.sequence[2..].split_last() else {
            return;
        };
        match (rest.first(), last) {
            (Some(b'?'), b'h' | b'l') => {
                let on = *last == b'h';
                let modes = rest[1..].split(|byte| *byte == b';');
                for mode in modes.filter_map(|mode| std::str::from_utf8(mode).ok()?.parse().ok()) {
                    if on == USUAL.contains(&mode) {
                        self.changed.remove(&mode);
                    } else {
                        self.changed.insert(mode);
                    }
                }
            }
            (Some(b'>'), b'u') => self.keyboards += 1,
            (Some(b'<'), b'u') => self.keyboards = self.keyboards.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(text: &str) -> String {
        let whole = Glass::default().through(text.as_bytes());
        for size in 1..text.len() {
            let mut glass = Glass::default();
            let pieces: Vec<u8> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| glass.through(piece))
                .collect();
            assert_eq!(pieces, whole, "{text:?} in pieces of {size}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn what_paints_goes_through_and_what_reaches_further_does_not() {
        for same in [
            "plain é日\r\n",
            "\x1b[31mred\x1b[0m \x1b[2J\x1b[1;1H",
            "\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            "\x1b(B\x1b7\x1b8\x1bM",
        ] {
            assert_eq!(through(same), same);
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
            assert_eq!(through(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_command_does_not_get_through_in_the_shadow_of_another() {
        // Each is what some terminal takes for the clipboard's: an escape begins anew wherever it stands, and
        // controls in the middle of a sequence are none of it.
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
            assert_eq!(through(text), shown, "{text:?}");
        }
        assert_eq!(
            through("\x1b[3\n1mred"),
            "\n\x1b[31mred",
            "a control there does what it does elsewhere"
        );
    }

    #[test]
    fn at_the_end_everything_is_as_it_was() {
        let end = |text: &str| {
            let mut glass = Glass::default();
            glass.through(text.as_bytes());
            String::from_utf8(glass.close()).unwrap()
        };
        let plain = "\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x1b>\r\n\x1b[J";
        assert_eq!(end("hello"), plain);
        assert_eq!(end("\x1b[?1049h\x1b[?25l\x1b[?1049l\x1b[?25h"), plain);
        let left = "\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[>1u";
        let back = "\x1b[?1049l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[<u";
        assert_eq!(end(left), format!("{back}{plain}"));
    }
}
