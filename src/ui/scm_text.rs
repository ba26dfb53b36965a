//! What is said of the tasks for the work of an iteration.

use super::{Paint, fit, one_line};
use crate::engine::State;
use crate::engine::format::{duration, plural};
use crate::engine::prompt::how_red;
use crate::engine::scm::{COMMIT, Skip, TaskReport};

/// A commit's name is cut to so many characters.
const SHORT: usize = 7;

/// The line for a task that is over. That nothing was left to commit in the loop's own worktree is not worth one.
pub fn line(state: &State, task: usize, report: &TaskReport) -> Option<(String, Paint)> {
    if task < state.own_task() {
        return Some(line_of_green(state, task, report));
    }
    match report.skipped {
        Some(_) => None,
        None if report.is_good() => Some((format!("{OWN}: {}", verdict(report)), Paint::Green)),
        None => {
            let words = format!(
                "{OWN}: {}; the work stays there, and is tried again",
                verdict(report)
            );
            Some((words, Paint::Yellow))
        }
    }
}

/// What the commit in a loop's own worktree is called.
pub const OWN: &str = "worktree commit";

/// The line for a task for green work that is over.
pub fn line_of_green(state: &State, task: usize, report: &TaskReport) -> (String, Paint) {
    let tasks: Vec<String> = state
        .plan
        .scm
        .tasks
        .iter()
        .skip(task)
        .map(|words| one_line(words))
        .collect();
    let (own, later) = (
        name(state, task),
        tasks.get(1..).unwrap_or_default().join(", "),
    );
    match report.skipped {
        Some(Skip::Unchanged) => (
            format!("nothing changed; skipped: {}", tasks.join(", ")),
            Paint::Dim,
        ),
        Some(Skip::Empty) => (format!("{own}: {}", verdict(report)), Paint::Dim),
        None if report.is_good() => (format!("{own}: {}", verdict(report)), Paint::Green),
        None if later.is_empty() => (format!("{own}: {}", verdict(report)), Paint::Red),
        None => (
            format!("{own}: {}; skipped: {later}", verdict(report)),
            Paint::Red,
        ),
    }
}

/// What a task is called: `commit`, or git's own words.
pub fn name(state: &State, task: usize) -> String {
    match state.task_words(task) {
        COMMIT => COMMIT.to_owned(),
        words => fit(&one_line(words), 60),
    }
}

/// `2 files (a.rs, b.rs) as 1a2b3c4 "Fix the parser" (120ms)`, `done (1.2s)`, `failed (exit 1, 20ms)`
pub fn verdict(report: &TaskReport) -> String {
    let time = duration(report.ms);
    match (report.skipped, &report.commit) {
        (Some(Skip::Unchanged), _) => "nothing changed".into(),
        (Some(Skip::Empty), _) => "nothing to commit".into(),
        _ if !report.is_good() && report.timed_out => {
            format!("failed (timeout after {time}; --check-timeout allows more)")
        }
        _ if !report.is_good() => format!("failed ({}, {time})", how_red(&report.as_check())),
        (None, Some(commit)) => {
            let id: String = commit.chars().take(SHORT).collect();
            let subject = fit(&one_line(report.subject.as_deref().unwrap_or_default()), 72);
            format!("{} as {id} \"{subject}\" ({time})", files(report))
        }
        (None, None) => format!("done ({time})"),
    }
}

fn files(report: &TaskReport) -> String {
    let count = report.files.unwrap_or(0);
    let names: Vec<String> = report
        .paths
        .iter()
        .map(|path| fit(&one_line(path), 40))
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

/// Which task keeps a loop from its end, and its last words.
pub fn owed(state: &State) -> Option<String> {
    let owed = state.keeping.owed.as_ref()?;
    let last = complaint(&owed.report)
        .map(|last| format!(": {last}"))
        .unwrap_or_default();
    let count = state.keeping.failures;
    let times = if count > 1 {
        format!(" {count} times in a row")
    } else {
        String::new()
    };
    let how = how_red(&owed.report.as_check());
    Some(format!(
        "git {} failed{times} ({how}){last}",
        name(state, owed.task)
    ))
}

/// Git's own complaint, or else its last words: advice may follow the one, and a hook says the other.
pub fn complaint(report: &TaskReport) -> Option<String> {
    let said = |line: &String| {
        ["fatal:", "error:", "! ["]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let lines = report.output.lines().map(one_line);
    let lines: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    let last = lines.iter().find(|line| said(line)).or(lines.last());
    last.map(|last| fit(last, 100))
}
