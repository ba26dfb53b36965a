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
    /// A string up to its terminator, and whether an escape has come.
    String {
        escape: bool,
    },
}

/// Modes that are on by themselves: lines that wrap, and the cursor.
const USUAL: [u16; 2] = [7, 25];
/// The second screen, in its three spellings.
const SECOND: [u16; 3] = [1049, 1047, 47];
/// Commands to the terminal itself that are not passed on: the clipboard, and files.
const KEPT_BACK: [&[u8]; 2] = [b"52", b"1337"];
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
        let second = SECOND.iter().filter(|mode| self.changed.contains(mode)).take(1);
        let (usual, others): (Vec<u16>, Vec<u16>) =
            self.changed.iter().filter(|mode| !SECOND.contains(mode)).partition(|mode| USUAL.contains(mode));
        let off = second.chain(&others).map(|mode| format!("\x1b[?{mode}l"));
        let mut out: String = off.chain(usual.iter().map(|mode| format!("\x1b[?{mode}h"))).collect();
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
            State::Escape => {
                self.sequence.push(byte);
                match byte {
                    b'[' => self.state = State::Sequence,
                    b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::String { escape: false },
                    // Others have further bytes, which paint nothing and are passed on as they come.
                    _ => self.pass(out),
                }
            }
            State::Sequence => {
                self.sequence.push(byte);
                match byte {
                    0x40..=0x7e => {
                        self.note();
                        self.pass(out);
                    }
                    0x1b => self.begin(State::Escape, byte),
                    _ if self.sequence.len() > SEQUENCE_MAX => self.drop(),
                    _ => {}
                }
            }
            State::String { escape } => {
                self.sequence.push(byte);
                let ends = byte == 0x07 || (escape && byte == b'\\');
                if ends {
                    if self.is_harmless() { self.pass(out) } else { self.drop() }
                } else if byte == 0x18 || byte == 0x1a {
                    self.drop();
                } else {
                    self.sequence.truncate(SEQUENCE_MAX);
                    self.state = State::String { escape: byte == 0x1b };
                }
            }
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
        let Some(command) = self.sequence.strip_prefix(b"\x1b]") else { return false };
        let number: Vec<u8> = command.iter().copied().take_while(u8::is_ascii_digit).collect();
        self.sequence.len() < SEQUENCE_MAX && !KEPT_BACK.contains(&&number[..])
    }

    /// Notes what a sequence changes that outlives the agent.
    fn note(&mut self) {
        let Some((last, rest)) = self.sequence[2..].split_last() else { return };
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
            let pieces: Vec<u8> =
                text.as_bytes().chunks(size).flat_map(|piece| glass.through(piece)).collect();
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
            ("a\x1b_Gi=1\x1b\\b", "ab"),
            ("a\u{9d}52;c;aGk=\u{9c}b", "a52;c;aGk=b"),
        ] {
            assert_eq!(through(text), shown, "{text:?}");
        }
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
