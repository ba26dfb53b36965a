//! Formats a loop's past as JSON for `ralph show --json`.

use super::show::read_text;
use super::status;
use crate::engine::act::ChangedLines;
use crate::engine::event::CheckReport;
use crate::engine::{Act, State};
use crate::lifecycle::history::{IterationActivity, LoopHistory, PastIteration};
use crate::store::rfc3339;
use serde_json::{Value, json};

/// Returns a loop with all its iterations.
pub(crate) fn all(history: &LoopHistory) -> Value {
    let directory = history.dir.path().display().to_string();
    let mut object = status::object(&history.view, history.liveness, &directory);
    let state = &history.view.state;
    object["task"] = json!(state.plan.task.text);
    object["last_event"] = json!(rfc3339(history.last_event_ms));
    object["preflight"] = checks(state, &history.preflight);
    history.read_changes(&history.iterations);
    let iterations = history.iterations.iter();
    object["history"] = iterations.map(|one| summary(history, one)).collect();
    object
}

/// Returns everything about one iteration.
pub(crate) fn one(history: &LoopHistory, past: &PastIteration) -> Value {
    let mut object = summary(history, past);
    let dir = &history.dir;
    object["loop"] = json!(history.view.header.name);
    object["prompt"] = json!(read_text(&dir.iteration_dir(past.number).join("prompt.md")));
    let activity = IterationActivity::read(dir, past.number);
    let acts = activity.acts.iter();
    object["activity"] = acts.filter_map(|(at, act)| act_object(*at, act)).collect();
    let plan = &history.view.state.plan.proof.checks;
    let logs = plan.iter().zip(&past.checks).map(|(check, report)| {
        report
            .as_ref()
            .map(|_| read_text(&dir.check_log(past.number, &check.slug)))
    });
    object["check_output"] = logs.collect();
    let patch = history
        .trees_of(past.number)
        .map(|trees| history.patch(trees));
    object["patch"] = json!(patch.and_then(Result::ok));
    object
}

fn summary(history: &LoopHistory, past: &PastIteration) -> Value {
    let (state, record) = (&history.view.state, past.record.as_ref());
    let changes = history
        .trees_of(past.number)
        .map(|trees| history.changes(trees));
    let files = changes.map(|changes| {
        let files = changes.iter().map(|file| {
            json!({
                "path": file.path,
                "insertions": file.insertions,
                "deletions": file.deletions,
            })
        });
        files.collect::<Vec<_>>()
    });
    let commits = past.commits.iter().filter_map(|(_, report)| {
        let commit = report.commit.as_ref()?;
        Some(json!({"commit": commit, "subject": report.subject}))
    });
    let activity = IterationActivity::read(&history.dir, past.number);
    let tools = activity.acts.iter().filter_map(|(_, act)| match act {
        Act::ToolFinished {
            name,
            about,
            ok,
            lines,
            ..
        } => {
            let mut tool = json!({"tool": name, "about": about, "ok": ok});
            add_lines(&mut tool, *lines);
            Some(tool)
        }
        _ => None,
    });
    let touched = past
        .touched
        .as_ref()
        .filter(|touched| !touched.is_sources_only());
    json!({
        "iteration": past.number,
        "agent": past.agent,
        "model": past.model,
        "started": rfc3339(past.started_ms),
        "ended": past.ended_ms.map(rfc3339),
        "duration_s": record.map(|record| record.ms as f64 / 1000.0),
        "end": record.map(|record| record.end.as_str()),
        "counted": record.map(|record| !record.refunded),
        "failed": record.map(crate::engine::iteration::Iteration::is_failure),
        "reason": record.and_then(|record| record.reason),
        "error": record.and_then(|record| record.error.as_deref()),
        "claimed": record.map(|record| record.claimed),
        "cost_usd": record.and_then(|record| record.cost_usd),
        "tokens": record.and_then(|record| record.tokens),
        "checks": checks(state, &past.checks),
        "second_look": checks(state, &past.second_look),
        "touched": touched,
        "files": files,
        "commits": commits.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "last_words": activity.last_words(),
    })
}

fn checks(state: &State, reports: &[Option<CheckReport>]) -> Value {
    let checks = state.plan.proof.checks.iter().zip(reports);
    checks
        .map(|(check, report)| {
            json!({
                "command": check.command,
                "green": report.as_ref().map(CheckReport::is_green),
                "duration_s": report.as_ref().map(|report| report.ms as f64 / 1000.0),
                "line": report.as_ref().and_then(|report| report.line.as_deref()),
            })
        })
        .collect()
}

/// Adds the lines that a tool call changed, if they are known.
fn add_lines(object: &mut Value, lines: Option<ChangedLines>) {
    if let Some(lines) = lines {
        object["added"] = json!(lines.added);
        object["removed"] = json!(lines.removed);
    }
}

/// Returns an act that people want to see; `None` for any other.
pub(crate) fn act_object(at_ms: i64, act: &Act<'_>) -> Option<Value> {
    let mut object = match act {
        Act::Text(text) => json!({"act": "text", "text": text}),
        Act::ToolStarted { name, about } => {
            json!({"act": "tool-started", "tool": name, "about": about})
        }
        Act::ToolFinished {
            name,
            about,
            ok,
            error,
            lines,
            ms,
        } => {
            let mut object = json!({"act": "tool-finished", "tool": name, "about": about, "ok": ok, "error": error});
            add_lines(&mut object, *lines);
            if let Some(ms) = ms {
                object["ms"] = json!(ms);
            }
            object
        }
        Act::Finished(text) => json!({"act": "finished", "text": text}),
        Act::Failed { why, reason } => json!({"act": "failed", "text": why, "reason": reason}),
        Act::Retrying(why) => json!({"act": "retrying", "text": why}),
        Act::SideOutput(text) => json!({"act": "side-output", "text": text}),
        Act::Cost(usd) => json!({"act": "cost", "usd": usd}),
        _ => return None,
    };
    object["at"] = json!(rfc3339(at_ms));
    Some(object)
}
