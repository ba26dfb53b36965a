//! Formats console and status text about SCM tasks.

use super::{TextStyle, one_line, truncate_to_width};
use crate::engine::State;
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::task_text::{task_name, task_verdict};

/// The name of the automatic commit in a loop's own worktree.
const WORKTREE_COMMIT: &str = "worktree commit";

/// Returns the console line for a finished task. `None` for a worktree commit with nothing to
/// commit.
pub(super) fn line(
    state: &State,
    task: usize,
    report: &ScmTaskReport,
) -> Option<(String, TextStyle)> {
    let elsewhere = elsewhere(state, report);
    let (line, style) = match (commit_line(state, task, report), &elsewhere) {
        (Some((line, style)), None) => (line, style),
        (Some((line, _)), Some(elsewhere)) => (format!("{line}; {elsewhere}"), TextStyle::Yellow),
        (None, Some(elsewhere)) => (elsewhere.clone(), TextStyle::Yellow),
        (None, None) => return None,
    };
    Some((line, style))
}

/// Says which work a commit does not contain, or which branch it is on instead. `None` if the work
/// is where it is expected.
fn elsewhere(state: &State, report: &ScmTaskReport) -> Option<String> {
    let branch = state
        .plan
        .worktree
        .as_ref()
        .map(|worktree| &worktree.branch);
    let moved = branch.and_then(|branch| report.elsewhere.moved(branch));
    let parts = [moved, report.elsewhere.not_committed()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn commit_line(state: &State, task: usize, report: &ScmTaskReport) -> Option<(String, TextStyle)> {
    if task < state.worktree_task() {
        return Some(task_line(state, task, report));
    }
    let verdict = task_verdict(report);
    match report.skipped {
        Some(_) => None,
        None if report.is_success() => {
            Some((format!("{WORKTREE_COMMIT}: {verdict}"), TextStyle::Green))
        }
        None => {
            let text = format!(
                "{WORKTREE_COMMIT}: {verdict}; \
                 the work stays uncommitted, and ralph tries again after the next iteration"
            );
            Some((text, TextStyle::Yellow))
        }
    }
}

/// Returns the line for a finished `--scm` task.
pub(super) fn task_line(state: &State, task: usize, report: &ScmTaskReport) -> (String, TextStyle) {
    let tasks: Vec<String> = state
        .plan
        .scm
        .tasks
        .iter()
        .skip(task)
        .map(|args| one_line(args))
        .collect();
    let later = tasks.get(1..).unwrap_or_default().join(", ");
    let text = format!("{}: {}", task_name(state, task), task_verdict(report));
    match report.skipped {
        Some(SkipReason::Unchanged) => (
            format!("nothing changed; skipped: {}", tasks.join(", ")),
            TextStyle::Dim,
        ),
        Some(SkipReason::Empty) => (text, TextStyle::Dim),
        None if report.is_success() => (text, TextStyle::Green),
        None if later.is_empty() => (text, TextStyle::Red),
        None => (format!("{text}; skipped: {later}"), TextStyle::Red),
    }
}

/// Describes the SCM task that keeps the loop from being done, and its error. Returns `None` if no
/// task does.
pub(super) fn pending_task(state: &State) -> Option<String> {
    let pending = state.scm.pending.as_ref()?;
    let error = error_line(&pending.report)
        .map(|line| format!(": {line}"))
        .unwrap_or_default();
    let count = state.scm.failures;
    let times = if count > 1 {
        format!(" {count} times in a row")
    } else {
        String::new()
    };
    let how = pending.report.describe_failure();
    Some(format!(
        "git {} failed{times} ({how}){error}",
        task_name(state, pending.task)
    ))
}

/// Returns git's error message: the first line that git marks as an error, because hints may follow
/// it. If there is none, returns the last line, which a hook may have printed.
pub(super) fn error_line(report: &ScmTaskReport) -> Option<String> {
    let is_error = |line: &String| {
        ["fatal:", "error:", "! ["]
            .iter()
            .any(|prefix| line.starts_with(prefix))
    };
    let lines = report.output.lines().map(one_line);
    let lines: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    let found = lines.iter().find(|line| is_error(line)).or(lines.last());
    found.map(|line| truncate_to_width(line, 100))
}
