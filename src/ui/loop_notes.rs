//! Collects the notes of a loop: what its agent noted at the end of each iteration, what it asked,
//! and what the user told it.

use crate::engine::plain_text::clean;
use crate::engine::{Event, Outcome, State};
use crate::store::JournalLine;
use std::collections::VecDeque;

/// Notes that are kept; older ones are counted.
const NOTES_MAX: usize = 500;
/// The longest note, in bytes.
const NOTE_MAX: usize = 8 << 10;

/// The writer of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteAuthor {
    Agent,
    /// The agent, which waits for an answer.
    Question,
    User,
}

impl NoteAuthor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Question => "question",
            Self::User => "user",
        }
    }
}

/// A note.
pub(super) struct LoopNote {
    /// The time of its event, in milliseconds since 1970.
    pub(super) at_ms: i64,
    pub(super) author: NoteAuthor,
    pub(super) iteration: u32,
    pub(super) text: String,
}

/// The notes of a loop, in order.
#[derive(Default)]
pub(super) struct LoopNotes {
    pub(super) shown: VecDeque<LoopNote>,
    /// Number of older notes.
    pub(super) dropped: usize,
    asked: Option<String>,
}

impl LoopNotes {
    /// Adds an event that was just applied to the state.
    pub(super) fn add(&mut self, line: &JournalLine, state: &State) {
        if let Event::Answered { text, .. } = &line.event {
            self.push(line.at_ms, NoteAuthor::User, state.iteration, text);
        }
        if let Event::Ended { .. } = &line.event
            && let Some(newest) = state.recent.back()
            && let Some(text) = &newest.note
        {
            self.push(line.at_ms, NoteAuthor::Agent, newest.number, text);
        }
        let asked = match state.outcome() {
            Some(Outcome::Blocked { why }) => Some(why.clone()),
            _ => None,
        };
        if asked != self.asked {
            if let Some(text) = &asked {
                self.push(line.at_ms, NoteAuthor::Question, state.iteration, text);
            }
            self.asked = asked;
        }
    }

    fn push(&mut self, at_ms: i64, author: NoteAuthor, iteration: u32, text: &str) {
        let mut end = NOTE_MAX.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.shown.push_back(LoopNote {
            at_ms,
            author,
            iteration,
            text: clean(&text[..end]).trim().to_owned(),
        });
        if self.shown.len() > NOTES_MAX {
            self.shown.pop_front();
            self.dropped += 1;
        }
    }
}
