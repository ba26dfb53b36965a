//! Describes SCM tasks and their reports for people: the console, `status` and `progress.md` use
//! the same text.

use super::State;
use super::display::{one_line, truncate_to_width};
use super::format::{duration, plural};
use super::scm::{COMMIT, ScmTaskReport, SkipReason};

/// Length of an abbreviated commit ID, in characters. Git uses the same length.
pub(crate) const SHORT_ID: usize = 7;

/// Returns a task's name: `commit`, or the arguments of its git command.
pub(crate) fn task_name(state: &State, task: usize) -> String {
    match state.scm_task_args(task) {
        COMMIT => COMMIT.to_owned(),
        args => truncate_to_width(&one_line(args), 60),
    }
}

/// Returns a task's result: `2 files (a.rs, b.rs) as 1a2b3c4 "Fix the parser" (120ms)`, `done
/// (1.2s)` or `failed (exit 1, 20ms)`.
pub(crate) fn task_verdict(report: &ScmTaskReport) -> String {
    let time = duration(report.ms);
    match (report.skipped, &report.commit) {
        (Some(SkipReason::Unchanged), _) => "nothing changed".into(),
        (Some(SkipReason::Empty), _) => "nothing to commit".into(),
        _ if !report.is_success() && report.timed_out => {
            format!("failed (timeout after {time}; --check-timeout sets the limit)")
        }
        _ if !report.is_success() => format!("failed ({}, {time})", report.describe_failure()),
        (None, Some(commit)) => {
            let id: String = commit.chars().take(SHORT_ID).collect();
            let subject = one_line(report.subject.as_deref().unwrap_or_default());
            let subject = truncate_to_width(&subject, 72);
            format!("{} as {id} \"{subject}\" ({time})", files(report))
        }
        (None, None) => format!("done ({time})"),
    }
}

fn files(report: &ScmTaskReport) -> String {
    let count = report.files.unwrap_or(0);
    let names: Vec<String> = report
        .paths
        .iter()
        .map(|path| truncate_to_width(&one_line(path), 40))
        .collect();
    let more = if count as usize > names.len() {
        ", …"
    } else {
        ""
    };
    let names = if names.is_empty() {
        String::new()
    } else {
        format!(" ({}{more})", names.join(", "))
    };
    format!("{}{names}", plural(u64::from(count), "file"))
}
