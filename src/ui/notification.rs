//! Builds the JSON object that a `--notify` command reads on standard input.

use crate::engine::long_rest::{LongRest, RestStage};
use crate::engine::{ExitCode, Liveness, State};
use crate::store::{JournalHeader, JournalLine, rfc3339};
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
    let payload = finished.unwrap_or_else(|| unfinished("paused", ExitCode::Resumable, state));
    with_loop(payload, header, state, Liveness::Idle, directory)
}

/// Returns the object for a runner that has to exit because of an error, which it may not be able to
/// record.
pub(crate) fn error_payload(
    header: &JournalHeader,
    state: &State,
    error: &str,
    directory: &str,
) -> Value {
    let mut payload = unfinished("error", ExitCode::Failure, state);
    payload.insert("error".to_owned(), json!(error));
    with_loop(payload, header, state, Liveness::Idle, directory)
}

/// Returns the object for the start or the end of a long rest.
pub(crate) fn rest_payload(
    header: &JournalHeader,
    state: &State,
    event: RestStage,
    rest: &LongRest,
    directory: &str,
) -> Value {
    let payload = json!({
        "event": event,
        "resting_until": rfc3339(rest.until_ms),
        "why": rest.why,
        "iterations": state.iteration,
        "cost_usd": state.reported_cost(),
        "duration_s": state.active_ms as f64 / 1000.0,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
    });
    let payload = payload.as_object().cloned().unwrap_or_default();
    with_loop(payload, header, state, Liveness::Running, directory)
}

/// Adds the loop's name, status and paths.
fn with_loop(
    mut payload: Map<String, Value>,
    header: &JournalHeader,
    state: &State,
    liveness: Liveness,
    directory: &str,
) -> Value {
    for (name, value) in [
        ("name", json!(header.name)),
        ("status", json!(state.status(liveness).as_str())),
        ("workspace", json!(state.plan.workspace)),
        ("directory", json!(directory)),
    ] {
        payload.insert(name.to_owned(), value);
    }
    Value::Object(payload)
}

/// Returns the fields of an ending for a loop that has not ended.
fn unfinished(event: &str, exit_code: ExitCode, state: &State) -> Map<String, Value> {
    let unfinished = json!({
        "event": event,
        "outcome": null,
        "stop_reason": null,
        "success": false,
        "exit_code": exit_code.code(),
        "iterations": state.iteration,
        "cost_usd": state.reported_cost(),
        "duration_s": state.active_ms as f64 / 1000.0,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
    });
    unfinished.as_object().cloned().unwrap_or_default()
}
