//! Builds the JSON object that a `--notify` command reads on standard input.

use crate::engine::{ExitCode, Liveness, State};
use crate::store::{JournalHeader, JournalLine};
use serde_json::{Map, Value, json};

/// Returns the `finished` line of `--json`, extended with the loop's name, status and paths. If
/// `finished` is `None`, the loop is paused, and the same fields describe the pause.
pub(crate) fn payload(
    header: &JournalHeader,
    state: &State,
    finished: Option<&JournalLine>,
    directory: &str,
) -> Value {
    let finished = finished.and_then(|line| serde_json::from_str(&line.to_json()).ok());
    let mut payload: Map<String, Value> = finished.unwrap_or_else(|| paused(state));
    for (name, value) in [
        ("name", json!(header.name)),
        ("status", json!(state.status(Liveness::Idle).as_str())),
        ("workspace", json!(state.plan.workspace)),
        ("directory", json!(directory)),
    ] {
        payload.insert(name.to_owned(), value);
    }
    Value::Object(payload)
}

fn paused(state: &State) -> Map<String, Value> {
    let paused = json!({
        "event": "paused",
        "outcome": null,
        "stop_reason": null,
        "success": false,
        "exit_code": ExitCode::Resumable.code(),
        "iterations": state.iteration,
        "cost_usd": state.reported_cost(),
        "duration_s": state.active_ms as f64 / 1000.0,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
    });
    paused.as_object().cloned().unwrap_or_default()
}
