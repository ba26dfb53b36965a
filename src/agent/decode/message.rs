//! Assembles an agent's messages from pieces, and keeps the latest message.

use super::ActSink;
use crate::engine::Act;

/// Maximum size of a message, in bytes. Only the end of a longer message is kept.
const MESSAGE_MAX: usize = 1 << 20;

/// The agent's latest message. It becomes the final message unless the agent continues after it.
#[derive(Default)]
pub(super) struct MessageBuffer {
    id: String,
    text: String,
    /// Whether the last piece ended in the middle of a line.
    mid_line: bool,
}

impl MessageBuffer {
    /// Appends a piece to the message `id`. A new ID starts a new message.
    pub(super) fn append(&mut self, id: &str, text: &str, emit: &mut ActSink<'_>) {
        if self.id != id {
            self.clear(emit);
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
        self.mid_line = !text.ends_with('\n');
        emit(Act::Text(text.into()));
    }

    /// Sets the complete text of the message `id`. Emits the text only if none of its pieces was
    /// emitted.
    pub(super) fn complete(&mut self, id: &str, text: &str, emit: &mut ActSink<'_>) {
        if self.id != id || self.text.is_empty() {
            self.clear(emit);
            self.append(id, text, emit);
        } else {
            text.clone_into(&mut self.text);
        }
        self.end_line(emit);
    }

    /// Emits a newline if the last piece did not end with one.
    pub(super) fn end_line(&mut self, emit: &mut ActSink<'_>) {
        if std::mem::take(&mut self.mid_line) {
            emit(Act::Text("\n".into()));
        }
    }

    /// Discards the message, because the agent continued after it, for example with a tool call.
    pub(super) fn clear(&mut self, emit: &mut ActSink<'_>) {
        self.end_line(emit);
        self.id.clear();
        self.text.clear();
    }

    /// Returns the text of the message so far.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_with_the_same_id_form_one_message() {
        let mut message = MessageBuffer::default();
        let mut said = String::new();
        let mut emit = |act: Act<'_>| match act {
            Act::Text(text) => said.push_str(&text),
            other => panic!("{other:?}"),
        };
        message.append("1", "fir", &mut emit);
        message.append("1", "st", &mut emit);
        message.complete("1", "first", &mut emit);
        assert_eq!(message.text(), "first");
        message.complete("2", "second", &mut emit);
        message.append("3", "third\n", &mut emit);
        assert_eq!(message.text(), "third");
        message.clear(&mut emit);
        assert_eq!(message.text(), "");
        assert_eq!(said, "first\nsecond\nthird\n");
    }

    #[test]
    fn an_endless_message_keeps_only_its_end() {
        let mut message = MessageBuffer::default();
        for _ in 0..5 {
            message.append("1", &"é".repeat(300_000), &mut |_| {});
        }
        message.append("1", "end", &mut |_| {});
        assert!(message.text().len() <= MESSAGE_MAX && message.text().ends_with("éend"));
    }
}
