//! Redacts acts right after they were decoded.

use super::{Redactor, StreamRedactor};
use crate::engine::Act;
use std::borrow::Cow;

/// Redacts the acts of one run. A secret is found even if the agent's stream spreads it over many
/// events, a few characters each.
pub(crate) struct ActRedactor {
    redactor: Redactor,
    text: StreamRedactor,
    thinking: StreamRedactor,
}

impl ActRedactor {
    /// Creates a redactor for the acts of a run; `None` if there are no secrets.
    pub(crate) fn new(redactor: &Redactor) -> Option<Self> {
        (!redactor.is_empty()).then(|| Self {
            redactor: redactor.clone(),
            text: StreamRedactor::new(redactor, false),
            thinking: StreamRedactor::new(redactor, false),
        })
    }

    /// Redacts an act and passes it on. A text that may be the start of a secret is kept back until
    /// more of it arrives.
    pub(crate) fn redact(&mut self, act: Act<'_>, emit: &mut dyn FnMut(Act<'_>)) {
        match act {
            // Even if all of it is kept back, the act shows that the agent is working.
            Act::Text(text) => emit(Act::Text(to_text(self.text.feed(text.as_bytes())))),
            Act::Thinking(text) => {
                emit(Act::Thinking(to_text(self.thinking.feed(text.as_bytes()))));
            }
            // The bytes were redacted when they were read.
            Act::TerminalOutput(_) | Act::RawOutput(_) => emit(act),
            act => {
                if ends_message(&act) {
                    self.finish(emit);
                }
                emit(
                    act.map_texts(&mut |text| match self.redactor.redact_text(&text) {
                        Cow::Borrowed(_) => text,
                        Cow::Owned(redacted) => redacted.into(),
                    }),
                );
            }
        }
    }

    /// Passes on the texts that were kept back.
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(Act<'_>)) {
        let thinking = self.thinking.finish();
        if !thinking.is_empty() {
            emit(Act::Thinking(to_text(thinking.into())));
        }
        let text = self.text.finish();
        if !text.is_empty() {
            emit(Act::Text(to_text(text.into())));
        }
    }
}

/// Returns whether the agent's message has ended before this act. Other acts may arrive in the middle
/// of a message.
fn ends_message(act: &Act<'_>) -> bool {
    matches!(
        act,
        Act::ToolStarted { .. }
            | Act::ToolFinished { .. }
            | Act::Finished(_)
            | Act::Failed { .. }
            | Act::RunEnded
    )
}

fn to_text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
