//! Formats the keys of the console: their list, their help, and the message that is being written.

use super::key_input::KeyInput;
use super::{StyledText, TextStyle, display_width, truncate_to_width};
use crate::engine::display::char_width;

/// The keys and what they do: in one word, and in a line of the help.
const KEYS: [(&str, &str, &str); 5] = [
    (
        "p",
        "pause",
        "pause after this iteration; again: take it back",
    ),
    ("s", "say", "write a message for the agent's next prompt"),
    (
        "q",
        "stop",
        "finish this iteration, then stop; again: take it back",
    ),
    (
        "d",
        "detach",
        "continue in the background after this iteration; again: take it back",
    ),
    (
        "?",
        "help",
        "show or hide this help; Ctrl-C stops after this iteration, twice at once",
    ),
];

/// Formats the keys with one word each.
pub(super) fn key_list(keys: &KeyInput) -> StyledText {
    let mut row = StyledText::new(true);
    for (key, name, _) in shown_keys(keys) {
        if row.columns() > 0 {
            row.push("  ");
        }
        row.push_styled(key, TextStyle::Bold)
            .push_styled(&format!(" {name}"), TextStyle::Dim);
    }
    row
}

/// Formats the help, one row for each key.
pub(super) fn help_rows(keys: &KeyInput, width: usize) -> Vec<StyledText> {
    let rows = shown_keys(keys).map(|(key, _, help)| {
        let mut row = StyledText::new(true);
        row.push(" ").push_styled(key, TextStyle::Bold).push("  ");
        row.push(&truncate_to_width(help, width.saturating_sub(4)));
        row
    });
    rows.collect()
}

fn shown_keys(keys: &KeyInput) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let can_move = keys.can_move;
    KEYS.into_iter()
        .filter(move |(key, ..)| *key != "d" || can_move)
}

/// Formats the message that is being written. Its end is visible, where the cursor is.
pub(super) fn editor(text: &str, width: usize) -> StyledText {
    let mut row = StyledText::new(true);
    row.push(" ").push_styled("say", TextStyle::Bold);
    if width >= 60 {
        row.push_styled(" (Enter sends, Esc cancels)", TextStyle::Dim);
    }
    row.push_styled(" › ", TextStyle::Cyan);
    let left = width.saturating_sub(row.columns() + 1);
    let mut skipped = display_width(text).saturating_sub(left);
    let tail = text.trim_start_matches(|c: char| {
        let is_skipped = skipped > 0;
        skipped = skipped.saturating_sub(char_width(c).max(1));
        is_skipped
    });
    row.push(tail);
    row
}
