//! Says why an agent's claim to be done does not count, when it happens.

use super::TextStyle;
use crate::engine::State;
use crate::engine::event::{CheckReport, TextSignals};

/// Returns the line for a promise inside a sentence; `None` if there was none.
pub(super) fn in_sentence(signals: &TextSignals) -> Option<(String, TextStyle)> {
    let text = "the agent's promise does not count: it is inside a sentence, not alone on a line";
    let text = (text.to_owned(), TextStyle::Yellow);
    signals.promise_in_sentence.then_some(text)
}

/// Returns the line for a claim that red checks refuse; `None` if there was no claim, or if every
/// check is green.
pub(super) fn refused(state: &State) -> Option<(String, TextStyle)> {
    let ran = state.checks.iter().flatten();
    let red = ran.filter(|report| !CheckReport::is_green(report)).count();
    let checks = match red {
        0 => return None,
        1 => "a check is red".to_owned(),
        _ => format!("{red} checks are red"),
    };
    let text = format!("the agent claimed to be done, but {checks}");
    state.is_claimed().then_some((text, TextStyle::Yellow))
}
