//! What a loop will be as soon as its runner reads what was said to it.

use super::{LoopDir, Message, Result, View, cache, inbox};
use crate::engine::event::Door;
use crate::engine::{Event, Now};

/// What has happened and what was asked for since, so that a pause shows before the runner has noticed it.
pub fn view_with_inbox(dir: &LoopDir) -> Result<View> {
    let mut view = cache::read(dir)?;
    let wall_ms = jiff::Timestamp::now().as_millisecond();
    for (message, offset) in inbox::read(dir, view.state.inbox_offset)? {
        if let Some(event) = event_of(message, offset) {
            view.state.step(
                Now {
                    wall_ms,
                    delta_ms: 0,
                },
                &event,
            );
        }
    }
    Ok(view)
}

/// The event that a message is, once the inbox is read up to `offset`. What cannot be understood is none.
pub fn event_of(message: Message, offset: u64) -> Option<Event> {
    let inbox = Some(offset);
    match message {
        Message::Asked { wish } => Some(Event::Asked {
            wish,
            by: Door::Inbox,
            inbox,
        }),
        Message::Answered { text } => Some(Event::Answered { text, inbox }),
        Message::Changed { limit } => Some(Event::Changed { limit, inbox }),
        Message::Hurried => Some(Event::Hurried { inbox }),
        Message::Unknown => None,
    }
}
