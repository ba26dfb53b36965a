//! Formats the labels of checks: what their results can prove.

use super::TextStyle;
use super::event_line::check_command;
use crate::engine::State;

/// Returns a line for each check that proves less than its color says.
pub(super) fn labeled(state: &State) -> Vec<(String, TextStyle)> {
    state
        .weak_labels()
        .map(|(check, label)| {
            let command = check_command(state, check);
            let text = format!("check {command} is {}: {}", label.label.as_str(), label.why);
            (text, TextStyle::Yellow)
        })
        .collect()
}

/// Returns what follows a check's result if the check is weak: `, flaky`. Otherwise empty.
pub(super) fn suffix(state: &State, check: usize) -> String {
    let label = state.weak_label(check);
    label.map_or_else(String::new, |label| format!(", {}", label.label.as_str()))
}
