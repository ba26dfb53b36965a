//! Console and status text about SCM tasks.

use super::{TextStyle, one_line, truncate_to_width};
use crate::engine::State;
use crate::engine::prompt::describe_red_check;
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::task_text::{task_name, task_verdict};

/// The name of the automatic commit in a loop's own worktree.
const WORKTREE_COMMIT: &str = "worktree commit";

/// The console line for a finished task. A worktree commit that had nothing to commit has none.
pub(super) fn line(
    state: &State,
    task: usize,
    report: &ScmTaskReport,
) -> Option<(String, TextStyle)> {
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
                 the work stays uncommitted, and the next iteration retries"
            );
            Some((text, TextStyle::Yellow))
        }
    }
}

/// The line for a finished SCM task of the plan.
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

/// The task that keeps the loop from being done, and why it failed.
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
    let how = describe_red_check(&pending.report.as_check());
    Some(format!(
        "git {} failed{times} ({how}){error}",
        task_name(state, pending.task)
    ))
}

/// git's own error message, which hints may follow; else the last line, which a hook may have
/// printed.
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
