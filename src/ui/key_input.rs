//! Turns the keys that a user presses at the console into requests to the loop, and edits a message.

use crate::engine::State;
use crate::engine::event::Request;

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyRequest {
    /// Pause after this iteration.
    Pause,
    /// Finish this iteration, then stop.
    Stop,
    /// Continue in the background after this iteration.
    MoveToBackground,
    /// Revoke a pause, a stop or a move to the background.
    TakeBack,
    /// Add a message to the next prompt.
    Say(String),
}

/// What the keys act on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum KeyMode {
    #[default]
    Commands,
    /// The help is shown.
    Help,
    /// A message is being written.
    Message(String),
}

/// The keys of a console.
#[derive(Default)]
pub(super) struct KeyInput {
    pub(super) mode: KeyMode,
    /// Whether the loop can move to the background.
    pub(super) can_move: bool,
    /// Whether the loop moves to the background after this iteration.
    pub(super) is_moving: bool,
    /// Bytes of a character or an escape sequence that is not complete.
    pending: Vec<u8>,
    in_paste: bool,
}

/// The maximum length of a message, in bytes.
const MESSAGE_MAX: usize = 8 * 1024;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// One key.
#[derive(Debug, PartialEq)]
enum PanelKey {
    Char(char),
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U, which deletes the line.
    DeleteLine,
    /// Ctrl-W, which deletes a word.
    DeleteWord,
    /// A character that was pasted. It is never a command.
    Pasted(char),
    Other,
}

impl KeyInput {
    pub(super) fn new(can_move: bool) -> Self {
        Self {
            can_move,
            ..Self::default()
        }
    }

    /// Handles keys, and returns what they ask for.
    pub(super) fn press(&mut self, bytes: &[u8], state: &State) -> Vec<KeyRequest> {
        let keys = self.decode(bytes);
        // Requests of this call are not in the state yet.
        let mut asked = state.request;
        let mut requests = Vec::new();
        for key in keys {
            if let Some(request) = self.handle(&key, &mut asked) {
                requests.push(request);
            }
        }
        requests
    }

    /// Forgets the pending input when keys become unavailable.
    pub(super) fn reset(&mut self) {
        self.mode = KeyMode::Commands;
        self.pending.clear();
        self.in_paste = false;
    }

    fn handle(&mut self, key: &PanelKey, asked: &mut Request) -> Option<KeyRequest> {
        let KeyMode::Message(text) = &mut self.mode else {
            return self.command(key, asked);
        };
        match key {
            PanelKey::Char(c) | PanelKey::Pasted(c) if text.len() < MESSAGE_MAX => text.push(*c),
            PanelKey::Backspace => drop(text.pop()),
            PanelKey::DeleteLine => text.clear(),
            PanelKey::DeleteWord => {
                let kept = text.trim_end();
                let kept = kept.rfind(' ').map_or(0, |space| space + 1);
                text.truncate(kept);
            }
            PanelKey::Escape => self.mode = KeyMode::Commands,
            PanelKey::Enter => {
                let text = text.trim().to_owned();
                self.mode = KeyMode::Commands;
                return (!text.is_empty()).then_some(KeyRequest::Say(text));
            }
            _ => {}
        }
        None
    }

    fn command(&mut self, key: &PanelKey, asked: &mut Request) -> Option<KeyRequest> {
        let is_help = std::mem::take(&mut self.mode) == KeyMode::Help;
        let (request, next) = match key {
            PanelKey::Char('p') if *asked == Request::Pause && !self.is_moving => {
                (KeyRequest::TakeBack, Request::Go)
            }
            PanelKey::Char('p') if *asked == Request::Go || self.is_moving => {
                (KeyRequest::Pause, Request::Pause)
            }
            PanelKey::Char('q') if *asked == Request::Stop => (KeyRequest::TakeBack, Request::Go),
            PanelKey::Char('q') if !asked.is_stop() => (KeyRequest::Stop, Request::Stop),
            PanelKey::Char('d') if self.is_moving => (KeyRequest::TakeBack, Request::Go),
            PanelKey::Char('d') if self.can_move && !asked.is_stop() => {
                (KeyRequest::MoveToBackground, Request::Pause)
            }
            PanelKey::Char('s') => {
                self.mode = KeyMode::Message(String::new());
                return None;
            }
            PanelKey::Char('?' | 'h') if !is_help => {
                self.mode = KeyMode::Help;
                return None;
            }
            _ => return None,
        };
        self.is_moving = request == KeyRequest::MoveToBackground;
        *asked = next;
        Some(request)
    }

    /// Splits bytes into keys. Keeps what is incomplete for the next call, except for an escape
    /// character at the end, which is the Esc key.
    fn decode(&mut self, bytes: &[u8]) -> Vec<PanelKey> {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let (mut rest, mut keys) = (all.as_slice(), Vec::new());
        while let Some(&first) = rest.first() {
            let length = match first {
                0x1b => sequence_length(rest),
                byte => char_length(byte),
            };
            let Some((one, after)) = rest.split_at_checked(length) else {
                self.pending = rest.to_vec();
                break;
            };
            rest = after;
            if one == PASTE_START || one == PASTE_END {
                self.in_paste = one == PASTE_START;
            } else {
                keys.push(if self.in_paste { pasted(one) } else { key(one) });
            }
        }
        keys
    }
}

/// Returns the length of the escape sequence at the start of `bytes`; more than there are bytes if
/// it is incomplete.
fn sequence_length(bytes: &[u8]) -> usize {
    match bytes {
        [_, b'[', parameters @ ..] => {
            let end = parameters
                .iter()
                .position(|byte| (0x40..0x7f).contains(byte));
            end.map_or(usize::from(bytes.len() < 32) + bytes.len(), |end| end + 3)
        }
        [_, b'O', ..] => 3,
        // Esc, or a key with Alt, which no command uses.
        [_, _, ..] => 2,
        _ => 1,
    }
}

fn char_length(byte: u8) -> usize {
    match byte {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => 1,
    }
}

fn key(bytes: &[u8]) -> PanelKey {
    match bytes {
        b"\r" | b"\n" => PanelKey::Enter,
        b"\x1b" => PanelKey::Escape,
        b"\x7f" | b"\x08" => PanelKey::Backspace,
        b"\x15" => PanelKey::DeleteLine,
        b"\x17" => PanelKey::DeleteWord,
        bytes => printable(bytes).map_or(PanelKey::Other, PanelKey::Char),
    }
}

/// Returns a pasted character. Line ends become spaces: a paste never sends a message.
fn pasted(bytes: &[u8]) -> PanelKey {
    match bytes {
        b"\r" | b"\n" | b"\t" => PanelKey::Pasted(' '),
        bytes => printable(bytes).map_or(PanelKey::Other, PanelKey::Pasted),
    }
}

fn printable(bytes: &[u8]) -> Option<char> {
    let c = std::str::from_utf8(bytes).ok()?.chars().next()?;
    (!c.is_control() && bytes.len() == c.len_utf8()).then_some(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::live_line::tests::plan;

    fn press(keys: &mut KeyInput, bytes: &[u8], request: Request) -> Vec<KeyRequest> {
        let mut state = State::new(plan());
        state.request = request;
        keys.press(bytes, &state)
    }

    #[test]
    fn keys_ask_and_take_back() {
        let mut keys = KeyInput {
            can_move: true,
            ..KeyInput::default()
        };
        let mut one = |bytes: &[u8], request| press(&mut keys, bytes, request);
        assert_eq!(one(b"p", Request::Go), [KeyRequest::Pause]);
        assert_eq!(one(b"p", Request::Pause), [KeyRequest::TakeBack]);
        assert_eq!(
            one(b"pp", Request::Go),
            [KeyRequest::Pause, KeyRequest::TakeBack]
        );
        assert_eq!(one(b"q", Request::Go), [KeyRequest::Stop]);
        assert_eq!(one(b"q", Request::Stop), [KeyRequest::TakeBack]);
        assert_eq!(one(b"d", Request::Go), [KeyRequest::MoveToBackground]);
        assert_eq!(one(b"d", Request::Pause), [KeyRequest::TakeBack]);
        assert_eq!(one(b"d", Request::Go), [KeyRequest::MoveToBackground]);
        assert_eq!(one(b"p", Request::Pause), [KeyRequest::Pause]);
        assert_eq!(one(b"q", Request::StopNow), []);
        assert_eq!(one(b"xyz\x1b[A\x1bOP\t\xff", Request::Go), []);
    }

    #[test]
    fn a_message_is_edited_and_sent() {
        let mut keys = KeyInput::default();
        let mut one = |bytes: &[u8]| press(&mut keys, bytes, Request::Go);
        assert_eq!(
            one("suse  dq\x17é x\x7f日\n".as_bytes()),
            [KeyRequest::Say("use  é 日".into())]
        );
        assert_eq!(one(b"sgone\x1b"), []);
        assert_eq!(one(b"s\x15 \n"), []);
        assert_eq!(one(b"s\xc3"), []);
        assert_eq!(one(b"\xa9\r"), [KeyRequest::Say("é".into())]);
    }

    #[test]
    fn pasted_text_is_no_command_and_sends_nothing() {
        let mut keys = KeyInput {
            can_move: true,
            ..KeyInput::default()
        };
        let mut one = |bytes: &[u8]| press(&mut keys, bytes, Request::Go);
        assert_eq!(one(b"\x1b[200~pqd\n\x1b[201~"), []);
        assert_eq!(one(b"s\x1b[20"), []);
        assert_eq!(one(b"0~one\r\ntwo\x1b[201~"), []);
        assert_eq!(one(b"\n"), [KeyRequest::Say("one  two".into())]);
    }

    #[test]
    fn the_next_key_closes_the_help() {
        let mut keys = KeyInput::default();
        press(&mut keys, b"?", Request::Go);
        assert_eq!(keys.mode, KeyMode::Help);
        press(&mut keys, b"?", Request::Go);
        assert_eq!(keys.mode, KeyMode::Commands);
    }
}
