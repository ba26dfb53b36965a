//! Lists what happened to a loop, one line for each event, with the words of the console.

use super::super::{TextStyle, event_line, one_line, truncate_to_width};
use crate::engine::iteration::IterationEnd;
use crate::engine::long_rest::RestStage;
use crate::engine::{Event, State};
use crate::store::JournalLine;
use std::collections::VecDeque;

/// Maximum number of lines at the start and at the end. Lines between them are counted.
const FIRST_MAX: usize = 100;
const LAST_MAX: usize = 1500;
/// Maximum width of a line.
const WIDTH_MAX: usize = 240;

/// A line of the timeline.
pub(in crate::ui) struct TimelineLine {
    /// The time of the event, in milliseconds since 1970.
    pub(in crate::ui) at_ms: i64,
    pub(in crate::ui) text: String,
    pub(in crate::ui) style: TextStyle,
}

/// The events of a loop.
#[derive(Default)]
pub(in crate::ui) struct Timeline {
    pub(in crate::ui) first: Vec<TimelineLine>,
    pub(in crate::ui) last: VecDeque<TimelineLine>,
    /// Number of lines between the first and the last.
    pub(in crate::ui) dropped: usize,
}

impl Timeline {
    /// Adds an event that was just applied to the state.
    pub(in crate::ui) fn add(&mut self, line: &JournalLine, state: &State) {
        let own = own_line(&line.event, state);
        for (text, style) in own.into_iter().chain(event_line::lines(&line.event, state)) {
            self.push(TimelineLine {
                at_ms: line.at_ms,
                text: truncate_to_width(&one_line(&text), WIDTH_MAX),
                style,
            });
        }
    }

    fn push(&mut self, line: TimelineLine) {
        if self.first.len() < FIRST_MAX {
            self.first.push(line);
            return;
        }
        self.last.push_back(line);
        if self.last.len() > LAST_MAX {
            self.last.pop_front();
            self.dropped += 1;
        }
    }
}

/// Returns the line for an event that the console does not show, because a person who watches it
/// knows.
fn own_line(event: &Event, state: &State) -> Option<(String, TextStyle)> {
    match event {
        Event::Opened { version, .. } if state.iteration == 0 => {
            Some((format!("ralph {version} starts the loop"), TextStyle::Dim))
        }
        Event::Opened { .. } => {
            let newest = state.recent.back();
            let newest = newest.filter(|last| last.end == IterationEnd::Interrupted);
            Some(match newest {
                Some(last) if last.number == state.iteration => (
                    format!(
                        "ralph was killed during iteration {}; the loop continues",
                        last.number
                    ),
                    TextStyle::Red,
                ),
                _ => ("the loop continues".to_owned(), TextStyle::Dim),
            })
        }
        Event::Notified { stage, rest } => Some(match stage {
            RestStage::Started => (format!("resting: {}", rest.why), TextStyle::Yellow),
            RestStage::Ended => ("the rest is over".to_owned(), TextStyle::Dim),
        }),
        Event::Checkpointed {
            failure: Some(why), ..
        } => Some((format!("no checkpoint: {why}"), TextStyle::Yellow)),
        _ => None,
    }
}
