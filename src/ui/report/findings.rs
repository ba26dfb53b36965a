//! Finds what a person should review first, most important first.

use super::super::{one_line, outcome_text, truncate_to_width, worktree_text};
use crate::engine::event::CheckReport;
use crate::engine::format::plural;
use crate::engine::iteration::IterationEnd;
use crate::engine::look::LookVerdict;
use crate::engine::receipt::ReceiptHistory;
use crate::engine::review::ReviewLine;
use crate::engine::touched::{FileChange, TouchedFiles, TouchedList};
use crate::engine::{Liveness, State};
use crate::lifecycle::history::LoopHistory;
use crate::lifecycle::loop_changes::{LoopChanges, LoopFileChange};
use std::collections::BTreeSet;

/// Maximum number of details of one finding.
const DETAILS_MAX: usize = 10;
/// Maximum number of turns from red to green that are listed.
const TURNS_MAX: usize = 12;
/// A check that turned green more often is named once.
const FLIPS_MAX: usize = 3;
/// Number of changed files that count as the largest.
const LARGEST_MAX: usize = 5;
/// Maximum width of a detail.
const WIDTH_MAX: usize = 200;

/// How urgent a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// The result may not be what it seems.
    Alarm,
    /// Read this before you use the result.
    Warning,
    /// Good to know.
    Notice,
}

/// Something that a person should review.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) title: String,
    pub(super) details: Vec<String>,
    /// The lines of source that it is about.
    pub(super) lines: Vec<ReviewLine>,
    /// The iteration that it is about; `None` if it is about the whole loop.
    pub(super) iteration: Option<u32>,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Alarm => "alarm",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

impl Finding {
    fn new(severity: Severity, title: impl Into<String>, details: Vec<String>) -> Self {
        Self {
            severity,
            title: title.into(),
            details: bounded(details),
            lines: Vec::new(),
            iteration: None,
        }
    }

    fn in_iteration(mut self, number: u32) -> Self {
        self.iteration = Some(number);
        self
    }
}

/// Cuts a list, and counts what was left out.
fn bounded(details: Vec<String>) -> Vec<String> {
    let left = details.len().saturating_sub(DETAILS_MAX);
    let shown = details.into_iter().take(DETAILS_MAX);
    let mut shown: Vec<String> = shown
        .map(|text| truncate_to_width(&one_line(&text), WIDTH_MAX))
        .collect();
    if left > 0 {
        shown.push(format!("… and {left} more"));
    }
    shown
}

/// Returns the findings about a loop. `foreign` names files that other processes left in the loop's
/// directory.
pub(super) fn find(
    history: &LoopHistory,
    changes: &LoopChanges,
    past: &ReceiptHistory,
    foreign: &[String],
) -> Vec<Finding> {
    let mut all = Vec::new();
    if !foreign.is_empty() {
        let title = "Another process wrote to ralph's own files";
        all.push(Finding::new(Severity::Alarm, title, foreign.to_vec()));
    }
    disputes(past, &mut all);
    let touched = history.view.state.look.touched.as_ref();
    let mut surveyed = history.iterations.iter().rev();
    let touched = touched.or_else(|| surveyed.find_map(|one| one.touched.as_ref()));
    if let Some(touched) = touched {
        touched_files(touched, &history.view.state, &mut all);
    }
    tests(history, changes, &mut all);
    lines_to_read(changes, &mut all);
    state_of_the_work(history, &mut all);
    largest(history, changes, &mut all);
    turns(history, changes, &mut all);
    all.sort_by_key(|finding| finding.severity);
    all
}

fn disputes(past: &ReceiptHistory, all: &mut Vec<Finding>) {
    // The agent may repeat what was disputed before.
    let mut repeats = past
        .disputes
        .chunk_by(|a, b| a.files == b.files && a.why == b.why);
    while let Some(same) = repeats.next_back() {
        let newest = &same[same.len() - 1];
        let mut details = newest.files.clone();
        details.extend(newest.why.iter().map(|why| format!("the agent: {why}")));
        let numbers: Vec<u32> = same.iter().map(|dispute| dispute.iteration).collect();
        let title = format!(
            "Disputed in {}: the checks are green, but not by the original tests",
            name_iterations(&numbers)
        );
        let finding = Finding::new(Severity::Alarm, title, details);
        all.push(finding.in_iteration(newest.iteration));
    }
    for accepted in past.accepted.iter().rev() {
        let title = format!(
            "You accepted changes of tests or settings ({})",
            accepted.at
        );
        all.push(Finding::new(
            Severity::Notice,
            title,
            accepted.globs.clone(),
        ));
    }
}

fn touched_files(touched: &TouchedFiles, state: &State, all: &mut Vec<Finding>) {
    let is_agreed = state.look_verdict() == LookVerdict::Agreed;
    let (guards, by) = if is_agreed {
        (
            Severity::Warning,
            "; the checks are green by the originals too",
        )
    } else {
        (Severity::Alarm, "")
    };
    let rings = [
        (
            guards,
            "Tests or settings were changed",
            by,
            &touched.guards,
        ),
        (
            Severity::Warning,
            "Files outside the workspace were changed",
            "",
            &touched.outside,
        ),
        (
            Severity::Warning,
            "The task allowed to change these tests or settings",
            "",
            &touched.allowed,
        ),
        (
            Severity::Warning,
            "New tests or settings, with no original to compare with",
            "",
            &touched.first_guards,
        ),
        (
            Severity::Notice,
            "Ignored files were changed",
            "",
            &touched.ignored,
        ),
    ];
    for (severity, title, more, ring) in rings {
        if !ring.is_empty() {
            let title = format!("{title} ({}){more}", plural(ring.total, "file"));
            all.push(Finding::new(severity, title, named(ring)));
        }
    }
    if !touched.unknown.is_empty() {
        let title = "Some originals could not be put back for the second look";
        all.push(Finding::new(
            Severity::Alarm,
            title,
            touched.unknown.clone(),
        ));
    }
}

fn named(ring: &TouchedList) -> Vec<String> {
    let name = |change: FileChange| match change {
        FileChange::New => "new",
        FileChange::Changed => "changed",
        FileChange::Deleted => "deleted",
    };
    let files = ring.files.iter();
    files
        .map(|file| format!("{} ({})", file.path, name(file.change)))
        .collect()
}

/// Deleted and weakened tests.
fn tests(history: &LoopHistory, changes: &LoopChanges, all: &mut Vec<Finding>) {
    let tests = || changes.files.iter().filter(|file| file.is_test);
    let deleted: Vec<String> = tests()
        .filter(|file| file.is_deleted)
        .map(|file| file.path.clone())
        .collect();
    if !deleted.is_empty() {
        let title = format!("{} deleted", plural(deleted.len() as u64, "test file"));
        all.push(Finding::new(Severity::Alarm, title, deleted));
    }
    let weakened: Vec<String> = tests()
        .filter(|file| !file.is_deleted && file.deletions > file.insertions)
        .map(counts)
        .collect();
    if !weakened.is_empty() {
        let title = "Tests lost lines";
        all.push(Finding::new(Severity::Warning, title, weakened));
    }
    let state = &history.view.state;
    let reports = state.checks.iter().enumerate();
    let short = reports.filter_map(|(at, report)| {
        let report = report.as_ref().filter(|report| report.is_green())?;
        let why = state.shortfall(at, report)?;
        Some(format!("{}: {why}", check_name(state, at)))
    });
    let short: Vec<String> = short.collect();
    if !short.is_empty() {
        let title = "Green checks prove less than at the start";
        all.push(Finding::new(Severity::Alarm, title, short));
    }
    let labels = state.label.labels.iter().enumerate();
    let weak = labels.filter(|(_, label)| label.label.is_weak());
    let weak: Vec<String> = weak
        .map(|(at, label)| {
            let name = check_name(state, at);
            format!("{name}: {} ({})", label.label.as_str(), label.why)
        })
        .collect();
    if !weak.is_empty() {
        let title = "Checks that prove little";
        all.push(Finding::new(Severity::Warning, title, weak));
    }
}

fn lines_to_read(changes: &LoopChanges, all: &mut Vec<Finding>) {
    let Some(review) = &changes.review else {
        return;
    };
    let lists = [
        ("suspicious line", &review.suspicious),
        ("suppression", &review.suppressions),
    ];
    for (name, list) in lists {
        if list.is_empty() {
            continue;
        }
        let details = list
            .lines
            .iter()
            .map(|line| format!("{}:{} {} · {}", line.path, line.line, line.what, line.text));
        let title = format!("{} added", plural(list.total, name));
        let mut finding = Finding::new(Severity::Warning, title, details.collect());
        finding.lines.clone_from(&list.lines);
        all.push(finding);
    }
    if let Some(why) = &review.incomplete {
        let title = format!("Not every added line was read: {why}");
        all.push(Finding::new(Severity::Warning, title, Vec::new()));
    }
}

/// Work that is not where it is expected, and iterations that did not go as they should.
fn state_of_the_work(history: &LoopHistory, all: &mut Vec<Finding>) {
    let state = &history.view.state;
    let is_live = history.liveness != Liveness::Idle;
    if let Some(unsaved) = worktree_text::unsaved(state, is_live) {
        let title = "Work that no commit contains";
        all.push(Finding::new(Severity::Warning, title, vec![unsaved]));
    }
    if let Some(better) = outcome_text::better(&history.view.header.name, state) {
        let title = "An earlier iteration had better results";
        all.push(Finding::new(Severity::Warning, title, vec![better]));
    }
    let records = || {
        history
            .iterations
            .iter()
            .filter_map(|one| Some((one, one.record.as_ref()?)))
    };
    let refused = records().filter(|(one, record)| {
        let (green, ran) = one.green_checks();
        record.claimed && green < ran
    });
    let refused: Vec<u32> = refused.map(|(one, _)| one.number).collect();
    if !refused.is_empty() {
        let title = "The agent claimed to be done while a check was red";
        let details = vec![name_iterations(&refused)];
        all.push(Finding::new(Severity::Warning, title, details));
    }
    let killed = records().filter(|(_, record)| record.end == IterationEnd::Interrupted);
    let mut killed: Vec<u32> = killed.map(|(one, _)| one.number).collect();
    // If the loop was not resumed, no event says so.
    let newest = history.iterations.last().filter(|_| !is_live);
    killed.extend(
        newest
            .filter(|one| one.record.is_none())
            .map(|one| one.number),
    );
    if !killed.is_empty() {
        let title = "ralph was killed while the agent worked";
        let details = vec![name_iterations(&killed)];
        all.push(Finding::new(Severity::Warning, title, details));
    }
    if let Some(denied) = outcome_text::denied(state) {
        let title = "The agent was denied permission";
        all.push(Finding::new(Severity::Notice, title, vec![denied]));
    }
}

/// The iterations in which checks turned from red to green.
fn turns(history: &LoopHistory, changes: &LoopChanges, all: &mut Vec<Finding>) {
    let state = &history.view.state;
    let mut listed = 0;
    for at in 0..state.plan.proof.checks.len() {
        let result = |reports: &[Option<CheckReport>]| {
            let report = reports.get(at).and_then(Option::as_ref);
            report.map(CheckReport::is_green)
        };
        let mut was_green = result(&history.preflight);
        let mut turns = Vec::new();
        for one in &history.iterations {
            let is_green = result(&one.checks);
            if is_green == Some(true) && was_green == Some(false) {
                turns.push(one.number);
            }
            was_green = is_green.or(was_green);
        }
        let name = check_name(state, at);
        if turns.len() > FLIPS_MAX {
            let count = turns.len();
            let title = format!("{name} turned green {count} times: it may be flaky");
            let details = vec![name_iterations(&turns)];
            all.push(Finding::new(Severity::Warning, title, details));
            continue;
        }
        for number in turns {
            if listed < TURNS_MAX {
                listed += 1;
                all.push(turn(history, changes, &name, number));
            }
        }
    }
}

fn turn(history: &LoopHistory, changes: &LoopChanges, name: &str, number: u32) -> Finding {
    let mut title = format!("{name} turned green in iteration {number}");
    let trees = history.trees_of(number);
    let mut files = trees
        .map(|trees| history.changes(trees))
        .unwrap_or_default();
    files.sort_by_key(|file| std::cmp::Reverse(file.insertions + file.deletions));
    let mut details: Vec<String> = files
        .iter()
        .map(|file| format!("{} +{} −{}", file.path, file.insertions, file.deletions))
        .collect();
    let tests = changes.files.iter().filter(|file| file.is_test);
    let tests: BTreeSet<&str> = tests.map(|file| file.path.as_str()).collect();
    let severity = if trees.is_some() && files.is_empty() {
        details.push("no file changed in this iteration".into());
        Severity::Warning
    } else if !files.is_empty() && files.iter().all(|file| tests.contains(&*file.path)) {
        title.push_str(", in which only tests changed");
        Severity::Alarm
    } else {
        Severity::Notice
    };
    Finding::new(severity, title, details).in_iteration(number)
}

/// The files with the most changed lines.
fn largest(history: &LoopHistory, changes: &LoopChanges, all: &mut Vec<Finding>) {
    if let Some(why) = changes
        .failure
        .as_ref()
        .filter(|_| !history.iterations.is_empty())
    {
        let title = format!("What changed is not known: {why}");
        all.push(Finding::new(Severity::Notice, title, Vec::new()));
    }
    let mut files: Vec<&LoopFileChange> = changes.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.insertions + file.deletions));
    let details: Vec<String> = files
        .iter()
        .take(LARGEST_MAX)
        .map(|file| counts(file))
        .collect();
    if !details.is_empty() {
        let title = match changes.files.len() {
            1 => "The changed file".to_owned(),
            count => format!("The largest of {}", plural(count as u64, "changed file")),
        };
        all.push(Finding::new(Severity::Notice, title, details));
    }
}

fn counts(file: &LoopFileChange) -> String {
    let deleted = if file.is_deleted { " (deleted)" } else { "" };
    format!(
        "{} +{} −{}{deleted}",
        file.path, file.insertions, file.deletions
    )
}

/// Names iterations: `iteration 5`, `iterations 5, 6`.
fn name_iterations(numbers: &[u32]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("iteration{plural} {}", numbers.join(", "))
}

/// Returns a check's command, shortened.
pub(super) fn check_name(state: &State, at: usize) -> String {
    let check = state.plan.proof.checks.get(at);
    let command = check.map_or("a check", |check| check.command.as_str());
    truncate_to_width(&one_line(command), 60)
}
