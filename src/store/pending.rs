//! Applies unread inbox messages to a loop's view, as the runner will do.

use super::{InboxMessage, LoopDir, LoopView, Result, cache, inbox};
use crate::engine::event::{Request, RequestSource};
use crate::engine::plain_text::plain_lines;
use crate::engine::{Event, Now};

/// Reads a loop's state and applies the unread messages in its inbox. A pause, for example, is
/// visible before the runner has read the request.
pub(crate) fn view_with_inbox(dir: &LoopDir) -> Result<LoopView> {
    let mut view = cache::read(dir)?;
    let wall_ms = jiff::Timestamp::now().as_millisecond();
    for (message, offset) in inbox::read(dir, view.state.inbox_offset)? {
        if let Some(event) = event_from_message(message, offset) {
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

/// Returns the event for a message that ends at `offset` in the inbox; `None` for an unknown
/// message.
pub(crate) fn event_from_message(message: InboxMessage, offset: u64) -> Option<Event> {
    let inbox = Some(offset);
    match message {
        InboxMessage::Asked { request } => Some(Event::Asked {
            request,
            by: RequestSource::Inbox,
            inbox,
        }),
        InboxMessage::ParentEnded => Some(Event::Asked {
            request: Request::StopNow,
            by: RequestSource::Parent,
            inbox,
        }),
        InboxMessage::Answered { text } => Some(Event::Answered {
            text: plain_lines(&text).into_owned(),
            inbox,
        }),
        InboxMessage::Changed { limit } => Some(Event::Changed { limit, inbox }),
        InboxMessage::Accepted { globs } => Some(Event::Accepted { globs, inbox }),
        InboxMessage::Rewound { to } => Some(Event::Rewound { to, inbox }),
        InboxMessage::Hurried => Some(Event::Hurried { inbox }),
        InboxMessage::Unknown => None,
    }
}
