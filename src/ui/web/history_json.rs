//! What the API returns about the past of a loop: its events, and what its agent and its user wrote.

use super::super::report::timeline::{Timeline, TimelineLine};
use super::super::{TextStyle, loop_notes::LoopNotes};
use crate::engine::Liveness;
use crate::lifecycle::history::LoopHistory;
use crate::store::{LoopDir, StoreError};
use serde_json::{Value, json};

/// Returns the lines of a loop's timeline and its notes, each in order.
pub(super) fn history(dir: &LoopDir) -> Result<Value, StoreError> {
    let mut timeline = Timeline::default();
    let mut notes = LoopNotes::default();
    LoopHistory::read(dir, Liveness::Idle, &mut |line, state| {
        timeline.add(line, state);
        notes.add(line, state);
    })?;
    let lines = timeline.first.iter().chain(&timeline.last);
    let notes_shown = notes.shown.iter().map(|note| {
        json!({
            "at_ms": note.at_ms,
            "author": note.author.as_str(),
            "iteration": note.iteration,
            "text": note.text,
        })
    });
    Ok(json!({
        "events": lines.map(event).collect::<Vec<_>>(),
        "events_omitted": timeline.dropped,
        "notes": notes_shown.collect::<Vec<_>>(),
        "notes_omitted": notes.dropped,
    }))
}

fn event(line: &TimelineLine) -> Value {
    let kind = match line.style {
        TextStyle::Green => "good",
        TextStyle::Red => "bad",
        TextStyle::Yellow => "ask",
        TextStyle::Dim => "soft",
        _ => "plain",
    };
    json!({"at_ms": line.at_ms, "text": line.text, "kind": kind})
}
