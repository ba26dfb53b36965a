//! What a command that is told of an ending reads: the last line of `--json`, and which loop it is about.

use super::cost::known_cost;
use crate::engine::State;
use crate::store::{Header, Line};
use serde_json::{Map, Value, json};

/// The news as one object. Without a last line the loop is paused: the same fields say so.
pub fn news(header: &Header, state: &State, finished: Option<&Line>, directory: &str) -> Value {
    let finished = finished.and_then(|line| serde_json::from_str(&line.to_json()).ok());
    let mut news: Map<String, Value> = finished.unwrap_or_else(|| paused(state));
    for (name, value) in [
        ("name", json!(header.name)),
        ("status", json!(state.status(false).word())),
        ("workspace", json!(state.plan.workspace)),
        ("directory", json!(directory)),
    ] {
        news.insert(name.to_owned(), value);
    }
    Value::Object(news)
}

fn paused(state: &State) -> Map<String, Value> {
    let paused = json!({
        "event": "paused",
        "outcome": null,
        "stop_reason": null,
        "success": false,
        "exit_code": 3,
        "iterations": state.iteration,
        "cost_usd": known_cost(state),
        "duration_s": state.active_ms as f64 / 1000.0,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
    });
    paused.as_object().cloned().unwrap_or_default()
}
