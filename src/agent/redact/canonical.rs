//! The canonical form of a text, which is the same however the text was escaped for JSON, printed on
//! a terminal or interrupted by colors. Secrets are searched for in this form.
//!
//! The form has no backslashes, escape sequences or other control characters. A line end, a tab and
//! a character in an escape such as `\u00e9` become what is left of their usual JSON escapes without
//! the backslash: `n`, `t` and the character itself.

use memchr::memchr;
use std::ops::Range;

/// Maximum length of an escape sequence that is left out, in bytes.
const SEQUENCE_MAX: usize = 32;

/// A text in canonical form, with the place of each byte in the original.
#[derive(Default)]
pub(super) struct Canonical {
    pub(super) text: Vec<u8>,
    segments: Vec<Segment>,
    /// Where an escape begins that is incomplete at the end of the original; `None` if there is
    /// none.
    pub(super) incomplete_from: Option<usize>,
}

/// A part of the original that is in the canonical form.
struct Segment {
    /// Where the segment begins in the canonical form.
    at: usize,
    original: Range<usize>,
    /// Whether the original has the same bytes. If not, they stand for one escaped character.
    is_verbatim: bool,
}

impl Canonical {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut form = Self::default();
        let mut rest = 0;
        while rest < bytes.len() {
            let plain = bytes[rest..].iter().position(|byte| is_special(*byte));
            let special = plain.map_or(bytes.len(), |plain| rest + plain);
            form.copy(bytes, rest..special);
            if special == bytes.len() {
                break;
            }
            rest = match bytes[special] {
                b'\\' => form.unescape(bytes, special),
                control => {
                    form.push_control(control, special..special + 1);
                    special + 1
                }
            };
            if form.text.last() == Some(&ESCAPE) {
                form.text.pop();
                form.segments.pop();
                if let Some(len) = sequence_len(&bytes[rest..]) {
                    rest += len;
                } else {
                    form.incomplete_from.get_or_insert(special);
                    rest = bytes.len();
                }
            }
        }
        form
    }

    /// Returns the part of the original that the bytes `range` stand for.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        self.start(range.start)..self.place(range.end - 1).end
    }

    /// Returns where the byte `at` begins in the original.
    pub(super) fn start(&self, at: usize) -> usize {
        self.place(at).start
    }

    fn place(&self, at: usize) -> Range<usize> {
        let next = self.segments.partition_point(|segment| segment.at <= at);
        let segment = &self.segments[next - 1];
        if !segment.is_verbatim {
            return segment.original.clone();
        }
        let start = segment.original.start + at - segment.at;
        start..start + 1
    }

    fn copy(&mut self, bytes: &[u8], original: Range<usize>) {
        if original.is_empty() {
            return;
        }
        self.segments.push(Segment {
            at: self.text.len(),
            original: original.clone(),
            is_verbatim: true,
        });
        self.text.extend_from_slice(&bytes[original]);
    }

    fn push(&mut self, text: &[u8], original: Range<usize>) {
        self.segments.push(Segment {
            at: self.text.len(),
            original,
            is_verbatim: false,
        });
        self.text.extend_from_slice(text);
    }

    fn push_control(&mut self, control: u8, original: Range<usize>) {
        match control {
            b'\n' => self.push(b"n", original),
            b'\t' => self.push(b"t", original),
            0x08 => self.push(b"b", original),
            0x0c => self.push(b"f", original),
            ESCAPE => self.push(&[ESCAPE], original),
            _ => {}
        }
    }

    /// Adds what the backslashes at `from` escape. Returns where the rest begins.
    fn unescape(&mut self, bytes: &[u8], from: usize) -> usize {
        let count = bytes[from..].iter().take_while(|byte| **byte == b'\\');
        let count = count.count();
        let next = from + count;
        // Backslashes in pairs stand for themselves and stay outside, so that a JSON string remains
        // valid if what follows is replaced.
        let start = next - count % 2;
        match bytes.get(next) {
            None => {
                self.incomplete_from = Some(from);
                next
            }
            Some(b'u') => match code_unit(&bytes[next..]) {
                CodeUnit::Incomplete => {
                    self.incomplete_from = Some(from);
                    bytes.len()
                }
                CodeUnit::None => {
                    self.push(b"u", start..next + 1);
                    next + 1
                }
                CodeUnit::Some(high) if (0xd800..0xdc00).contains(&high) => {
                    self.unescape_pair(bytes, high, from, start..next + 5)
                }
                CodeUnit::Some(unit) => {
                    self.push_char(u32::from(unit), start..next + 5);
                    next + 5
                }
            },
            Some(byte) if is_special(*byte) => next,
            Some(byte) => {
                self.push(&[*byte], start..next + 1);
                next + 1
            }
        }
    }

    /// Adds the character whose first half, `high`, is at `original`. Its escape begins at `from`.
    fn unescape_pair(
        &mut self,
        bytes: &[u8],
        high: u16,
        from: usize,
        original: Range<usize>,
    ) -> usize {
        let end = original.end;
        let count = bytes[end..].iter().take_while(|byte| **byte == b'\\');
        let low_at = end + count.count();
        let low = code_unit(bytes.get(low_at..).unwrap_or_default());
        match low {
            CodeUnit::Incomplete => {
                self.incomplete_from = Some(from);
                bytes.len()
            }
            CodeUnit::Some(low) if low_at > end && (0xdc00..0xe000).contains(&low) => {
                let code = 0x10000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                self.push_char(code, original.start..low_at + 5);
                low_at + 5
            }
            _ => {
                self.push_char(0xfffd, original);
                end
            }
        }
    }

    fn push_char(&mut self, code: u32, original: Range<usize>) {
        match char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER) {
            '\\' => {}
            control @ ('\0'..'\x20' | '\x7f') => self.push_control(control as u8, original),
            character => self.push(character.encode_utf8(&mut [0; 4]).as_bytes(), original),
        }
    }
}

const ESCAPE: u8 = 0x1b;

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'\\' || byte == 0x7f
}

enum CodeUnit {
    Some(u16),
    None,
    /// The text ends before the last digit.
    Incomplete,
}

/// Parses the code unit of an escape such as `u00e9` at the start of `bytes`.
fn code_unit(bytes: &[u8]) -> CodeUnit {
    let digits = bytes.get(1..).unwrap_or_default();
    let digits = &digits[..digits.len().min(4)];
    let starts_right = bytes.first().is_none_or(|byte| *byte == b'u');
    if !starts_right || !digits.iter().all(u8::is_ascii_hexdigit) {
        return CodeUnit::None;
    }
    if digits.len() < 4 {
        return CodeUnit::Incomplete;
    }
    let digits = std::str::from_utf8(digits).ok();
    match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
        Some(unit) => CodeUnit::Some(unit),
        None => CodeUnit::None,
    }
}

/// Returns the length of an escape sequence after its first byte; `None` if it is incomplete. Only
/// sequences without text of their own are known, such as colors.
fn sequence_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'[' => {
            let window = &bytes[1..bytes.len().min(SEQUENCE_MAX)];
            let end = window.iter().position(|byte| !(0x20..0x40).contains(byte));
            match end {
                Some(end) if (0x40..0x7f).contains(&window[end]) => Some(end + 2),
                None if bytes.len() < SEQUENCE_MAX => None,
                _ => Some(0),
            }
        }
        b'(' | b')' => (bytes.len() > 1).then_some(2),
        // After some of these follows a string, which may itself contain a secret.
        0x30..0x7f => Some(1),
        _ => Some(0),
    }
}

/// Returns whether `bytes` may contain an escape that splits a plain run of characters.
pub(super) fn may_split_runs(bytes: &[u8]) -> bool {
    memchr::memchr2(ESCAPE, 0, bytes).is_some()
        || (memchr(b'\\', bytes).is_some() && memchr::memmem::find(bytes, b"\\u00").is_some())
}
