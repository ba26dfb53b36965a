//! What the API returns about one loop: its history, one iteration, and its changes.

use super::activity_rows::ActivityRows;
use super::overview::row;
use super::patch;
use crate::engine::event::CheckReport;
use crate::engine::plain_text::clean;
use crate::engine::{Liveness, State};
use crate::lifecycle::handle::read_loop;
use crate::lifecycle::history::{IterationActivity, LoopHistory, PastIteration};
use crate::lifecycle::live_view::live;
use crate::os::regular_file;
use crate::store::activity::ActivityReader;
use crate::store::{LoopDir, StateDir, StoreError};
use crate::ui::{outcome_text, status};
use serde_json::{Value, json};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Iterations that are returned; older ones are left out.
const ITERATIONS_MAX: usize = 1000;
/// The longest prompt that is returned, in bytes.
const PROMPT_MAX: u64 = 256 << 10;
/// The last bytes of a log that are returned.
const LOG_MAX: u64 = 32 << 10;
/// An activity file that is larger, in bytes, was not written by ralph, and is not read.
const ACTIVITY_MAX: u64 = 8 << 20;
/// Children that are returned.
const CHILDREN_MAX: usize = 500;

/// Finds a loop by its name, or an archived one by the name of its directory.
pub(super) fn find(state_dir: &StateDir, name: &str) -> Result<LoopDir, StoreError> {
    state_dir.find_loop(name).or_else(|error| {
        let mut archived = state_dir.archived_loops().into_iter();
        archived.find(|dir| dir.name() == name).ok_or(error)
    })
}

/// Returns the rows of the archived loops.
pub(super) fn archived(state_dir: &StateDir) -> Vec<Value> {
    let dirs = state_dir.archived_loops().into_iter();
    dirs.filter_map(|dir| {
        let (view, liveness) = read_loop(&dir).ok()?;
        let mut row = row(&dir, &view, liveness);
        row["archived"] = json!(true);
        Some(row)
    })
    .collect()
}

/// Returns the row of a loop, with its live numbers.
pub(super) fn summary(dir: &LoopDir) -> Result<Value, StoreError> {
    let (view, liveness) = read_loop(dir)?;
    Ok(row(dir, &live(dir, view, liveness), liveness))
}

/// Returns everything about a loop except its texts.
pub(super) fn detail(state_dir: &StateDir, dir: &LoopDir) -> Result<Value, StoreError> {
    let (view, liveness) = read_loop(dir)?;
    let view = live(dir, view, liveness);
    let history = LoopHistory::read(dir, liveness, &mut |_, _| {})?;
    let (header, state) = (&view.header, &view.state);
    let first = history.iterations.len().saturating_sub(ITERATIONS_MAX);
    let iterations = history.iterations[first..].iter();
    let children = state_dir.children(&header.name, header.created_ms);
    let children = children.into_iter().take(CHILDREN_MAX);
    Ok(json!({
        "summary": row(dir, &view, liveness),
        "status": status::object(&view, liveness, &dir.path().display().to_string()),
        "line": status::line(state, liveness),
        "missing": outcome_text::missing(state),
        "better": outcome_text::better(&header.name, state),
        "review": outcome_text::review(state),
        "next": outcome_text::next_step(header, state, liveness),
        "task": state.plan.task.text.as_deref().map(|text| cut(text, PROMPT_MAX as usize)),
        "checks": checks(state),
        "preflight": history.preflight.iter().map(|report| check(report.as_ref())).collect::<Vec<_>>(),
        "iterations": iterations.map(|one| iteration(one, state)).collect::<Vec<_>>(),
        "iterations_omitted": first,
        "has_diff": history.trees_of_all().is_some(),
        "children": children.map(|(dir, _)| dir.name().to_owned()).collect::<Vec<_>>(),
    }))
}

fn checks(state: &State) -> Vec<Value> {
    let checks = state.plan.proof.checks.iter().enumerate();
    checks
        .map(|(at, check)| {
            let label = state.weak_label(at);
            json!({
                "command": check.command,
                "label": label.map(|label| label.label.as_str()),
                "label_why": label.map(|label| &label.why),
            })
        })
        .collect()
}

fn check(report: Option<&CheckReport>) -> Value {
    let Some(report) = report else {
        return Value::Null;
    };
    json!({
        "green": report.is_green(),
        "ms": report.ms,
        "exit_code": report.exit.code,
        "signal": report.exit.signal,
        "timed_out": report.timed_out,
        "tests": report.tests,
        "line": report.line,
    })
}

fn iteration(one: &PastIteration, state: &State) -> Value {
    let record = one.record.as_ref();
    let commits = one.commits.iter().map(|(_, report)| {
        json!({
            "ok": report.is_success(),
            "commit": report.commit,
            "subject": report.subject,
            "files": report.files,
        })
    });
    json!({
        "number": one.number,
        "agent": one.agent,
        "model": one.model,
        "started_ms": one.started_ms,
        "ended_ms": one.ended_ms,
        "ms": record.map(|record| record.ms),
        "end": record.map(|record| record.end.as_str()),
        "exit_code": record.and_then(|record| record.exit.code),
        "signal": record.and_then(|record| record.exit.signal),
        "failed": record.is_some_and(|record| state.has_failed(record)),
        "counted": record.is_none_or(|record| !record.refunded),
        "reason": record.and_then(|record| record.reason).map(|reason| reason.kind.as_str()),
        "error": record.and_then(|record| record.error.as_deref()),
        "cost_usd": record.and_then(|record| record.cost_usd),
        "tokens": record.and_then(|record| record.tokens).map(|tokens| tokens.total()),
        "steps": record.and_then(|record| record.steps),
        "denied": record.map_or(0, |record| record.denied),
        "claimed": record.is_some_and(|record| record.claimed),
        "note": record.and_then(|record| record.note.as_deref()).map(|note| cut(note, 2000)),
        "checks": one.checks.iter().map(|report| check(report.as_ref())).collect::<Vec<_>>(),
        "second_look": one.second_look.iter().map(|report| check(report.as_ref())).collect::<Vec<_>>(),
        "touched": one.touched.as_ref().filter(|touched| !touched.is_sources_only()).map(|touched| cut(&touched.describe(), 2000)),
        "commits": commits.collect::<Vec<_>>(),
        "has_diff": one.tree.is_some(),
    })
}

/// Returns the texts of one iteration: prompt, activity and the ends of its checks' logs. Iteration 0
/// is preflight.
pub(super) fn one_iteration(dir: &LoopDir, number: u32) -> Result<Option<Value>, StoreError> {
    let history = LoopHistory::read(dir, Liveness::Idle, &mut |_, _| {})?;
    let past = history.iteration(number);
    let reports = match past {
        Some(past) => &past.checks,
        None if number == 0 => &history.preflight,
        None => return Ok(None),
    };
    let state = &history.view.state;
    let logs = state.plan.proof.checks.iter().zip(reports);
    let logs = logs.map(|(plan, report)| {
        let (output, is_cut) = end_of(&dir.check_log(number, &plan.slug), LOG_MAX);
        let mut object = json!({"command": plan.command, "output": output, "cut": is_cut});
        object["result"] = check(report.as_ref());
        object
    });
    let mut rows = read_activity(dir, number);
    let last_words = IterationActivity::read(dir, number).last_words();
    Ok(Some(json!({
        "number": number,
        "iteration": past.map(|past| iteration(past, state)),
        "prompt": prompt(dir, number),
        "activity": rows.take_changed(),
        "dropped": rows.dropped(),
        "output": rows.is_empty().then(|| end_of(&dir.output_log(number), LOG_MAX).0),
        "last_words": cut(&clean(&last_words), 16 << 10),
        "checks": logs.collect::<Vec<_>>(),
    })))
}

fn prompt(dir: &LoopDir, number: u32) -> Value {
    let path = dir.iteration_dir(number).join("prompt.md");
    let Ok((bytes, is_cut)) = regular_file::read(&path, PROMPT_MAX, false) else {
        return Value::Null;
    };
    json!({"text": clean(&String::from_utf8_lossy(&bytes)), "cut": is_cut})
}

/// Opens an iteration's activity; `None` if there is none, or if it is too large.
pub(super) fn open_activity(dir: &LoopDir, number: u32) -> Option<ActivityReader> {
    let path = dir.activity(number);
    let len = std::fs::symlink_metadata(&path).ok()?.len();
    ActivityReader::open(&path).filter(|_| len <= ACTIVITY_MAX)
}

fn read_activity(dir: &LoopDir, number: u32) -> ActivityRows {
    let mut rows = ActivityRows::default();
    if let Some(mut reader) = open_activity(dir, number) {
        let _ = reader.read(&mut |item| rows.add(item));
    }
    rows
}

/// Returns the changes of an iteration, or of the whole loop, file by file.
pub(super) fn diff(dir: &LoopDir, number: Option<u32>) -> Result<Value, StoreError> {
    let history = LoopHistory::read(dir, Liveness::Idle, &mut |_, _| {})?;
    let trees = match number {
        Some(number) => history.trees_of(number),
        None => history.trees_of_all(),
    };
    let Some(trees) = trees else {
        return Ok(
            json!({"files": [], "omitted": 0, "error": "there is no checkpoint to compare"}),
        );
    };
    Ok(match history.patch(trees) {
        Ok(patch) => {
            let (files, omitted) = patch::files(&patch);
            json!({"files": files, "omitted": omitted, "error": null})
        }
        // The patch is too long: list the files alone.
        Err(error) => {
            let changes = history.changes(trees).into_iter();
            let files = changes.map(|change| {
                json!({
                    "path": change.path,
                    "added": change.insertions,
                    "removed": change.deletions,
                    "patch": "",
                    "cut": true,
                })
            });
            json!({"files": files.collect::<Vec<_>>(), "omitted": 0, "error": error})
        }
    })
}

/// Returns the end of a log as clean text, and whether its beginning is missing.
fn end_of(path: &Path, max: u64) -> (String, bool) {
    let read = || -> io::Result<(Vec<u8>, bool)> {
        let mut file = regular_file::open(path, false)?;
        let before = file.metadata()?.len().saturating_sub(max);
        file.seek(SeekFrom::Start(before))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok((bytes, before > 0))
    };
    let (bytes, is_cut) = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    (clean(&text).into_owned(), is_cut)
}

/// Cuts a text to at most `max` bytes.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
