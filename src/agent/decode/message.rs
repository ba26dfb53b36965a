//! What an agent says comes in pieces: which of them are one message, and which message is the last.

use super::Tell;
use crate::engine::Act;

/// Of a longer message the end is kept.
const MESSAGE_MAX: usize = 1 << 20;

/// An agent's newest message.
#[derive(Default)]
pub struct Message {
    id: String,
    text: String,
    /// Whether the last piece ended in the middle of a line.
    torn: bool,
}

impl Message {
    /// A piece of the message of this name; another name is another message.
    pub fn piece(&mut self, id: &str, text: &str, tell: &mut Tell<'_>) {
        if self.id != id {
            self.forget(tell);
            id.clone_into(&mut self.id);
        }
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        if let Some(excess) = self
            .text
            .len()
            .checked_sub(MESSAGE_MAX)
            .filter(|excess| *excess > 0)
        {
            let cut = (excess..=self.text.len()).find(|cut| self.text.is_char_boundary(*cut));
            self.text.drain(..cut.unwrap_or(0));
        }
        self.torn = !text.ends_with('\n');
        tell(Act::Said(text.into()));
    }

    /// The whole message of this name: what did not come in pieces is said now.
    pub fn whole(&mut self, id: &str, text: &str, tell: &mut Tell<'_>) {
        if self.id != id || self.text.is_empty() {
            self.forget(tell);
            self.piece(id, text, tell);
        } else {
            text.clone_into(&mut self.text);
        }
        self.end(tell);
    }

    /// Ends the line.
    pub fn end(&mut self, tell: &mut Tell<'_>) {
        if std::mem::take(&mut self.torn) {
            tell(Act::Said("\n".into()));
        }
    }

    /// Something else came: what was said is not the last word any more.
    pub fn forget(&mut self, tell: &mut Tell<'_>) {
        self.end(tell);
        self.id.clear();
        self.text.clear();
    }

    /// What it says so far.
    pub fn text(&self) -> &str {
        self.text.trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_name_are_one_message() {
        let mut message = Message::default();
        let mut said = String::new();
        let mut tell = |act: Act<'_>| match act {
            Act::Said(text) => said.push_str(&text),
            other => panic!("{other:?}"),
        };
        message.piece("1", "fir", &mut tell);
        message.piece("1", "st", &mut tell);
        message.whole("1", "first", &mut tell);
        assert_eq!(message.text(), "first");
        message.whole("2", "second", &mut tell);
        message.piece("3", "third\n", &mut tell);
        assert_eq!(message.text(), "third");
        message.forget(&mut tell);
        assert_eq!(message.text(), "");
        assert_eq!(said, "first\nsecond\nthird\n");
    }

    #[test]
    fn of_a_message_without_end_the_end_is_kept() {
        let mut message = Message::default();
        for _ in 0..5 {
            message.piece("1", &"é".repeat(300_000), &mut |_| {});
        }
        message.piece("1", "end", &mut |_| {});
        assert!(message.text().len() <= MESSAGE_MAX && message.text().ends_with("éend"));
    }
}
