//! Describes an iteration in one row: when, how long, how much, its checks, its files, and what came of it.

use super::age::clock;
use super::table::{TableCell, TableColumn, TextTable};
use super::tool_line::line_counts;
use super::{TextStyle, one_line};
use crate::engine::act::ChangedLines;
use crate::engine::format::{dollars, duration};
use crate::engine::iteration::{IterationEnd, describe_end};
use crate::engine::touched::TouchedFiles;
use crate::engine::{Act, Liveness, Tally};
use crate::git::checkpoint::FileDiffStat;
use crate::lifecycle::history::{IterationActivity, LoopHistory, PastIteration};
use std::fmt::Write as _;

/// Returns a table for [`push`].
pub(super) fn table() -> TextTable {
    TextTable::new(&[
        ("#", TableColumn::Right),
        ("START", TableColumn::Left),
        ("TOOK", TableColumn::Right),
        ("COST", TableColumn::Right),
        ("CHECKS", TableColumn::Left),
        ("FILES", TableColumn::Left),
        ("RESULT", TableColumn::Rest),
    ])
}

/// Returns the width of the first column.
pub(super) fn number_width(history: &LoopHistory) -> usize {
    let newest = history.iterations.last();
    newest.map_or(1, |one| one.number.to_string().len())
}

/// Adds an iteration's row.
pub(super) fn push(table: &mut TextTable, history: &LoopHistory, one: &PastIteration) {
    let changes = history
        .trees_of(one.number)
        .map(|trees| history.changes(trees));
    let took = match (&one.record, history.is_running(one)) {
        (Some(record), _) => duration(record.ms),
        (None, true) => duration(history.view.state.wall_ms.abs_diff(one.started_ms)),
        (None, false) => String::new(),
    };
    let cost = match &one.record {
        Some(record) => record.cost_usd,
        None => cost_so_far(history, one),
    };
    table.push(vec![
        TableCell::new(&one.number.to_string(), Some(TextStyle::Bold)),
        TableCell::new(&clock(one.started_ms), Some(TextStyle::Dim)),
        took.into(),
        cost.map(dollars).unwrap_or_default().into(),
        check_marks(one),
        files(changes.as_deref().unwrap_or_default()),
        result(history, one),
    ]);
}

/// Returns what an iteration without a record has spent, as far as its activity tells.
fn cost_so_far(history: &LoopHistory, one: &PastIteration) -> Option<f64> {
    let mut tally = Tally::default();
    for (_, act) in &IterationActivity::read(&history.dir, one.number).acts {
        tally.add(act);
    }
    let model = one.model.as_deref().unwrap_or_default();
    tally.cost(&history.view.state.plan.prices, model)
}

/// Returns a mark for each check.
fn check_marks(one: &PastIteration) -> TableCell {
    one.checks
        .iter()
        .fold(TableCell::default(), |cell, report| {
            let (mark, style) = mark(
                report
                    .as_ref()
                    .map(crate::engine::event::CheckReport::is_green),
            );
            cell.and(mark, Some(style))
        })
}

/// Returns the mark of a check; `None` for one that did not run.
pub(super) fn mark(green: Option<bool>) -> (&'static str, TextStyle) {
    match green {
        Some(true) => ("✔", TextStyle::Green),
        Some(false) => ("✘", TextStyle::Red),
        None => ("·", TextStyle::Dim),
    }
}

/// Formats how many files and lines changed: `3 +12 −4`.
fn files(changes: &[FileDiffStat]) -> TableCell {
    if changes.is_empty() {
        return TableCell::default();
    }
    let (added, removed) = lines(changes);
    TableCell::from(changes.len().to_string())
        .and(&format!(" +{added}"), Some(TextStyle::Green))
        .and(&format!(" −{removed}"), Some(TextStyle::Red))
}

/// Returns how many lines were added and removed.
pub(super) fn lines(changes: &[FileDiffStat]) -> (u64, u64) {
    let added = changes.iter().map(|change| change.insertions).sum();
    (added, changes.iter().map(|change| change.deletions).sum())
}

/// Says what came of an iteration: the first thing that a person would ask.
fn result(history: &LoopHistory, one: &PastIteration) -> TableCell {
    let (text, style) = result_text(history, one);
    TableCell::new(&text, style)
}

/// Returns what came of an iteration, and its style.
pub(super) fn result_text(
    history: &LoopHistory,
    one: &PastIteration,
) -> (String, Option<TextStyle>) {
    let Some(record) = &one.record else {
        return if history.is_running(one) {
            ("running".into(), Some(TextStyle::Bold))
        } else if history.liveness == Liveness::Idle {
            ("interrupted: ralph was killed".into(), Some(TextStyle::Red))
        } else {
            (String::new(), None)
        };
    };
    if record.refunded {
        let why = record
            .reason
            .map_or("stopped", |reason| reason.kind.describe());
        let mut text = format!("not counted: {why}");
        if let Some(ms) = history.rest_after(one) {
            let _ = write!(text, "; rested {}", duration(ms));
        }
        return (text, Some(TextStyle::Yellow));
    }
    if record.is_failure() {
        let error = record.error.as_deref().and_then(last_line);
        let reason = record
            .reason
            .map(|reason| reason.kind.describe().to_owned());
        let text = error.or(reason).unwrap_or_else(|| describe_end(record));
        return (format!("failed: {text}"), Some(TextStyle::Red));
    }
    if let Some(text) = look_result(one) {
        return (text, Some(TextStyle::Red));
    }
    let claim = claim(one)
        .map(|claim| format!("{claim}; "))
        .unwrap_or_default();
    if let Some(line) = one.first_failing_line() {
        return (format!("{claim}{line}"), None);
    }
    if record.end != IterationEnd::Exited {
        return (describe_end(record), Some(TextStyle::Yellow));
    }
    let (green, ran) = one.green_checks();
    let commit = one.commits.iter().rev().find_map(|(_, report)| {
        let id = report.commit.as_deref()?;
        let subject = report.subject.as_deref().unwrap_or_default();
        Some(format!("commit {} {subject}", id.get(..7)?))
    });
    let text = match commit {
        Some(commit) => commit,
        None if ran > 0 && green == ran && record.claimed => "done: every check is green".into(),
        None if ran > 0 && green == ran => "every check is green".into(),
        None if ran > 0 => "a check is red".into(),
        None => String::new(),
    };
    let style = (ran > 0 && green == ran).then_some(TextStyle::Green);
    (format!("{claim}{text}"), style)
}

/// Says that the original tests disagree; `None` if they do not.
fn look_result(one: &PastIteration) -> Option<String> {
    let mut looks = one.second_look.iter().flatten();
    looks.find(|report| !report.is_green())?;
    let names: Vec<&str> = one.touched.iter().flat_map(TouchedFiles::names).collect();
    Some(format!(
        "disputed: changed {}; red by the original tests",
        names.join(", ")
    ))
}

/// Says why a claim to be done did not count; `None` if there was none, or if it did.
pub(super) fn claim(one: &PastIteration) -> Option<&'static str> {
    let claimed = one.record.as_ref().is_some_and(|record| record.claimed);
    let (green, ran) = one.green_checks();
    if claimed && green < ran {
        Some("claimed to be done")
    } else if one.promise_in_sentence {
        Some("promise inside a sentence")
    } else {
        None
    }
}

fn last_line(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(one_line);
    lines.find(|line| !line.trim().is_empty())
}

/// What a tool was used on, and whether it succeeded.
type UsedOn<'a> = Vec<(&'a str, bool)>;

/// Summarizes the tools that an agent used: `Read ×2, Edit lib/a.sh +12 −3, Bash make ✘`.
pub(super) fn tools(activity: &IterationActivity) -> String {
    let mut used: Vec<(&str, UsedOn<'_>, ChangedLines)> = Vec::new();
    for (_, act) in &activity.acts {
        if let Act::ToolFinished {
            name,
            about,
            ok,
            lines,
            ..
        } = act
        {
            let lines = lines.unwrap_or_default();
            match used.iter_mut().find(|(known, ..)| known == name) {
                Some((_, calls, sum)) => {
                    calls.push((about, *ok));
                    sum.added = sum.added.saturating_add(lines.added);
                    sum.removed = sum.removed.saturating_add(lines.removed);
                }
                None => used.push((name, vec![(about, *ok)], lines)),
            }
        }
    }
    let texts = used.iter().map(|(name, calls, lines)| {
        let lines = line_counts(*lines).map(|(text, _)| text).concat();
        let failed = if calls.iter().any(|(_, ok)| !ok) {
            " ✘"
        } else {
            ""
        };
        match &calls[..] {
            [(about, _)] => one_line(&format!("{name} {about}{lines}{failed}")),
            calls => one_line(&format!("{name} ×{}{lines}{failed}", calls.len())),
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}
