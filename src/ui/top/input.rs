//! Decodes the bytes that a terminal sends: keys, mouse events and pasted text.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// A letter together with the control key.
    Ctrl(char),
    Enter,
    Escape,
    Backspace,
    Delete,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// What the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UserInput {
    Key(Key),
    /// The left button was pressed in this column and row, counted from 0.
    Click(u16, u16),
    /// The wheel was turned: up if `true`.
    Wheel(bool),
    /// Pasted text.
    Paste(String),
}

/// Decodes input that arrives in pieces.
#[derive(Default)]
pub(super) struct InputDecoder {
    pending: Vec<u8>,
}

/// The bytes around pasted text.
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// A sequence that is longer than this is not one: its bytes are dropped.
const SEQUENCE_MAX: usize = 32;
/// Pasted text beyond this size, in bytes, is dropped.
const PASTE_MAX: usize = 64 << 10;

/// What the beginning of the pending bytes is.
enum Decoded {
    /// Input of this many bytes; `None` if it means nothing to this program.
    Complete(usize, Option<UserInput>),
    /// The beginning of a longer input.
    Partial,
}

impl InputDecoder {
    /// Decodes `bytes`, and keeps an incomplete input for the next call.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<UserInput> {
        self.pending.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        while !self.pending.is_empty() {
            match decode(&self.pending) {
                Decoded::Complete(len, input) => {
                    inputs.extend(input);
                    self.pending.drain(..len.clamp(1, self.pending.len()));
                }
                Decoded::Partial => break,
            }
        }
        inputs
    }

    /// Returns whether an incomplete input waits for more bytes.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Decodes what is pending although no more bytes arrived: a lone escape is the key.
    pub(super) fn flush(&mut self) -> Vec<UserInput> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [0x1b] => vec![UserInput::Key(Key::Escape)],
            [0x1b, rest @ ..] if !rest.starts_with(b"[") && !rest.starts_with(b"O") => {
                self.feed(rest)
            }
            _ => Vec::new(),
        }
    }
}

fn decode(bytes: &[u8]) -> Decoded {
    let key = |len, key| Decoded::Complete(len, Some(UserInput::Key(key)));
    match bytes[0] {
        0x1b => decode_escape(bytes),
        b'\r' | b'\n' => key(1, Key::Enter),
        b'\t' => key(1, Key::Tab),
        0x7f | 0x08 => key(1, Key::Backspace),
        0 => Decoded::Complete(1, None),
        byte @ 1..0x20 => key(1, Key::Ctrl(char::from(byte - 1 + b'a'))),
        _ => decode_char(bytes),
    }
}

/// Decodes a character in UTF-8. Invalid bytes are dropped.
fn decode_char(bytes: &[u8]) -> Decoded {
    let len = match bytes[0] {
        ..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return Decoded::Complete(1, None),
    };
    let Some(char_bytes) = bytes.get(..len) else {
        return Decoded::Partial;
    };
    match std::str::from_utf8(char_bytes).map(|text| text.chars().next()) {
        Ok(Some(c)) => Decoded::Complete(len, Some(UserInput::Key(Key::Char(c)))),
        _ => Decoded::Complete(1, None),
    }
}

fn decode_escape(bytes: &[u8]) -> Decoded {
    match bytes.get(1) {
        None => Decoded::Partial,
        Some(b'[') if bytes.starts_with(PASTE_START) => decode_paste(bytes),
        Some(b'[') => decode_csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Decoded::Partial,
            Some(end) => Decoded::Complete(3, cursor_key(*end).map(UserInput::Key)),
        },
        Some(0x1b) => Decoded::Complete(1, Some(UserInput::Key(Key::Escape))),
        // A key together with Alt counts as the key alone would be surprising: it is dropped.
        Some(_) => match decode(&bytes[1..]) {
            Decoded::Complete(len, _) => Decoded::Complete(len + 1, None),
            Decoded::Partial => Decoded::Partial,
        },
    }
}

fn decode_paste(bytes: &[u8]) -> Decoded {
    let body = &bytes[PASTE_START.len()..];
    let end = memchr::memmem::find(body, PASTE_END);
    match end {
        Some(end) => {
            let text = String::from_utf8_lossy(&body[..end.min(PASTE_MAX)]).into_owned();
            let len = PASTE_START.len() + end + PASTE_END.len();
            Decoded::Complete(len, Some(UserInput::Paste(text)))
        }
        None if body.len() > PASTE_MAX => Decoded::Complete(bytes.len(), None),
        None => Decoded::Partial,
    }
}

/// Decodes a sequence that begins with `ESC [`.
fn decode_csi(bytes: &[u8]) -> Decoded {
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| (0x40..0x7f).contains(byte)) else {
        return if bytes.len() > SEQUENCE_MAX {
            Decoded::Complete(bytes.len(), None)
        } else {
            Decoded::Partial
        };
    };
    let (params, last, len) = (&body[..end], body[end], end + 3);
    let input = match (params, last) {
        ([b'<', params @ ..], b'M') => mouse(params),
        (_, b'Z') => Some(UserInput::Key(Key::BackTab)),
        (params, b'~') => tilde_key(params).map(UserInput::Key),
        (_, last) => cursor_key(last).map(UserInput::Key),
    };
    Decoded::Complete(len, input)
}

fn cursor_key(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'F' => Key::End,
        b'H' => Key::Home,
        b'M' => Key::Enter,
        _ => return None,
    })
}

fn tilde_key(params: &[u8]) -> Option<Key> {
    let number = params.split(|byte| *byte == b';').next();
    Some(match number {
        Some(b"1" | b"7") => Key::Home,
        Some(b"4" | b"8") => Key::End,
        Some(b"3") => Key::Delete,
        Some(b"5") => Key::PageUp,
        Some(b"6") => Key::PageDown,
        _ => return None,
    })
}

/// Decodes the parameters of a pressed button: `0;12;5`.
fn mouse(params: &[u8]) -> Option<UserInput> {
    let text = std::str::from_utf8(params).ok()?;
    let mut numbers = text.split(';').map(str::parse::<u16>);
    let mut next = || numbers.next()?.ok();
    let (button, column, row) = (next()?, next()?, next()?);
    match button {
        0 => Some(UserInput::Click(
            column.saturating_sub(1),
            row.saturating_sub(1),
        )),
        64 => Some(UserInput::Wheel(true)),
        65 => Some(UserInput::Wheel(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<UserInput> {
        let mut decoder = InputDecoder::default();
        let mut inputs = decoder.feed(bytes);
        inputs.extend(decoder.flush());
        inputs
    }

    #[test]
    fn keys_are_decoded_whatever_pieces_they_arrive_in() {
        let all = b"a\xc3\xa9\x1b[A\x1bOB\x1b[5~\x1b[1;5C\t\x1b[Z\r\x7f\x03\x1b[<0;12;5M\x1b[<65;1;1M\x1b[200~x\ny\x1b[201~q\x1b";
        let expected = [
            UserInput::Key(Key::Char('a')),
            UserInput::Key(Key::Char('é')),
            UserInput::Key(Key::Up),
            UserInput::Key(Key::Down),
            UserInput::Key(Key::PageUp),
            UserInput::Key(Key::Right),
            UserInput::Key(Key::Tab),
            UserInput::Key(Key::BackTab),
            UserInput::Key(Key::Enter),
            UserInput::Key(Key::Backspace),
            UserInput::Key(Key::Ctrl('c')),
            UserInput::Click(11, 4),
            UserInput::Wheel(false),
            UserInput::Paste("x\ny".into()),
            UserInput::Key(Key::Char('q')),
            UserInput::Key(Key::Escape),
        ];
        assert_eq!(keys(all), expected);
        let mut decoder = InputDecoder::default();
        let mut inputs: Vec<_> = all.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
        assert!(decoder.is_pending(), "an escape may begin a sequence");
        inputs.extend(decoder.flush());
        assert_eq!(inputs, expected);
    }

    #[test]
    fn any_bytes_are_decoded_without_a_panic_and_never_kept_for_long() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut decoder = InputDecoder::default();
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.usize(..40))
                .map(|_| match random.u8(..4) {
                    0 => 0x1b,
                    1 => b'[',
                    _ => random.u8(..),
                })
                .collect();
            decoder.feed(&bytes);
            decoder.flush();
            assert!(decoder.pending.len() < PASTE_MAX);
        }
        assert_eq!(decoder.feed(b"\x1bq"), [], "Alt and a key");
        assert_eq!(decoder.feed(b"q"), [UserInput::Key(Key::Char('q'))]);
    }
}
