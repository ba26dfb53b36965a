//! Formats bus messages.

use super::one_line;
use crate::store::BusMessage;

/// Formats a message as one line with its local time: `2026-11-16 01:05:10 note auth#3: the text`.
pub(crate) fn line(post: &BusMessage) -> String {
    let time = post.time.parse::<jiff::Timestamp>().map(|at| {
        at.to_zoned(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string()
    });
    let time = time.unwrap_or_else(|_| one_line(&post.time));
    format!(
        "{time} {} {}: {}",
        one_line(&post.kind),
        one_line(&post.sender()),
        one_line(&post.text)
    )
}
