//! The short facts of a report: the verdict, the numbers, the receipt, and the commands that undo or
//! merge the work.

use super::super::{event_line, one_line, outcome_text, summary, truncate_to_width, worktree_text};
use super::findings::Severity;
use super::{LoopReport, clock};
use crate::engine::event::CheckReport;
use crate::engine::format::{dollars, duration, iteration_count, plural, shell_quote, thousands};
use crate::engine::iteration::describe_end;
use crate::engine::plan::Task;
use crate::engine::receipt::{Receipt, RecordedResult};
use crate::engine::task_text::{SHORT_ID, task_verdict};
use crate::engine::{Liveness, Phase, Status};
use crate::lifecycle::history::PastIteration;

/// Maximum width of the task.
const TASK_WIDTH: usize = 300;

/// How good a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Open,
}

impl Tone {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Open => "open",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Good => "✔",
            Self::Bad => "✘",
            Self::Open => "■",
        }
    }
}

/// A number with its name and a note.
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

impl LoopReport {
    pub(super) fn tone(&self) -> Tone {
        match self.status() {
            Status::Done => Tone::Good,
            Status::Failed | Status::Crashed => Tone::Bad,
            _ => Tone::Open,
        }
    }

    /// Formats how many findings there are: `1 alarm, 2 warnings`.
    pub(super) fn finding_counts(&self) -> String {
        let counts = [Severity::Alarm, Severity::Warning].map(|severity| {
            let same = self.findings.iter();
            let count = same.filter(|one| one.severity == severity).count() as u64;
            (count > 0).then(|| plural(count, severity.as_str()))
        });
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        counts.join(", ")
    }

    /// Returns how the loop ended, or what it does, in one line.
    pub(super) fn verdict(&self) -> String {
        let state = self.state();
        let number = state.iteration;
        match self.status() {
            Status::Running => match state.phase {
                Phase::Resting { .. } => format!("running: resting after iteration {number}"),
                _ => format!("running: iteration {number}"),
            },
            Status::Starting => "starting".into(),
            Status::Paused => format!("paused after iteration {number}"),
            Status::Crashed => format!("crashed: ralph was killed in iteration {number}"),
            _ => {
                let (text, _) = summary::headline(state, None);
                let text = text.split_once(' ').map_or("", |(_, text)| text);
                text.to_owned()
            }
        }
    }

    /// Returns the numbers that come first.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let state = self.state();
        let limits = &state.plan.limits;
        let of = |max: Option<String>| max.map(|max| format!("of {max}")).unwrap_or_default();
        let number = |name, value: String, note: String| Number { name, value, note };
        let mut all = vec![
            number(
                "Iterations",
                state.iteration.to_string(),
                of(limits.iterations.map(|max| max.to_string())),
            ),
            number(
                "Time",
                duration(state.active_ms),
                of(limits.time_ms.map(duration)),
            ),
            number(
                "Cost",
                state.cost_text().unwrap_or_else(|| "unknown".into()),
                of(limits.cost_usd.map(dollars)),
            ),
        ];
        let tokens = state.tokens.total();
        if tokens > 0 {
            all.push(number(
                "Tokens",
                thousands(tokens),
                of(limits.tokens.map(thousands)),
            ));
        }
        let checks = state.plan.proof.checks.len();
        if checks > 0 {
            let green = state.results().0;
            all.push(number(
                "Checks",
                format!("{green} of {checks}"),
                "green".into(),
            ));
        }
        let files = &self.changes.files;
        if self.changes.failure.is_none() {
            let insertions: u64 = files.iter().map(|file| file.insertions).sum();
            let deletions: u64 = files.iter().map(|file| file.deletions).sum();
            all.push(number(
                "Changed",
                plural(files.len() as u64, "file"),
                format!("+{insertions} −{deletions}"),
            ));
        }
        all
    }

    /// Returns where and when the loop ran, and with which agent.
    pub(super) fn circumstances(&self) -> Vec<(&'static str, String)> {
        let (header, state) = (&self.history.view.header, self.state());
        let plan = &state.plan;
        let agents: Vec<String> = plan
            .agents()
            .map(|agent| match &agent.model {
                Some(model) => format!("{} ({model})", agent.name),
                None => agent.name.clone(),
            })
            .collect();
        let end = match self.history.liveness {
            Liveness::Idle => clock(self.history.last_event_ms),
            _ => "now".into(),
        };
        let mut all = vec![
            ("task", task(&plan.task)),
            ("agent", agents.join(", ")),
            ("from", format!("{} to {end}", clock(header.created_ms))),
            ("in", plan.workspace.display().to_string()),
        ];
        if let Some(worktree) = &plan.worktree {
            all.push(("worktree", worktree_text::location(worktree, state)));
        }
        all.push(("files", self.history.dir.path().display().to_string()));
        all.retain(|(_, value)| !value.is_empty());
        all
    }

    /// Returns the commands that inspect, merge, undo and continue the work. An archived loop has
    /// none: its name may belong to another loop.
    pub(super) fn commands(&self) -> Vec<(&'static str, String)> {
        if self.is_archived {
            return Vec::new();
        }
        let (name, state) = (self.name(), self.state());
        let is_live = self.history.liveness != Liveness::Idle;
        let mut all = vec![("see all changes", format!("ralph diff {name}"))];
        let has_start = self.history.start_tree.is_some();
        if let Some(worktree) = &state.plan.worktree {
            all.extend(worktree_text::commands(worktree, state, name, is_live));
        } else if let Some((base, commit)) = self.own_commits() {
            let range = format!("{base}..{commit}");
            let range = shell_quote(&range);
            all.push(("see its commits", format!("git log --oneline {range}")));
            all.push(("undo its commits", format!("git revert --no-edit {range}")));
        }
        if has_start && !is_live {
            all.push(("undo all changes", format!("ralph rewind {name} 0")));
            all.push(("undo the undoing", format!("ralph rewind {name} undo")));
        }
        let next = outcome_text::advice(&self.history.view.header, state, self.history.liveness);
        for next in next.iter().flat_map(|next| next.split(" · ")) {
            all.push(("continue", next.to_owned()));
        }
        if self.receipt.is_some() {
            all.push(("prove it again", format!("ralph verify {name}")));
        }
        all
    }

    /// Returns the commit before the loop's first and the newest; `None` if it made none.
    fn own_commits(&self) -> Option<(String, String)> {
        let receipt = self.receipt.as_ref()?;
        let (base, commit) = (receipt.base.as_deref()?, receipt.commit.as_deref()?);
        let made = self.iterations().iter().flat_map(|one| &one.commits);
        let has_made = made.clone().any(|(_, report)| report.commit.is_some());
        (has_made && base != commit).then(|| (short(base), short(commit)))
    }
}

/// Returns the task's title, or else the beginning of its text or the name of its file.
fn task(task: &Task) -> String {
    let text = task.title.as_deref().or(task.text.as_deref());
    let file = task.file.as_ref().map(|file| file.display().to_string());
    let text = text.map(one_line).or(file).unwrap_or_default();
    truncate_to_width(&text, TASK_WIDTH)
}

fn short(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// Returns the rows of a receipt.
pub(super) fn receipt_rows(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let look = &receipt.second_look;
    let agreed = match look.verdict.as_str() {
        "agreed" => "the checks are green by the original tests and settings too",
        "untouched" => "nothing was touched that can turn a check green",
        "disputed" => "the original tests and settings disagree",
        "skipped" => "skipped: no view could be made",
        _ => "there was none",
    };
    let mut rows = vec![("second look", agreed.to_owned())];
    rows.extend(look.weaknesses.iter().map(|why| ("weakness", why.clone())));
    rows.extend(look.failure.iter().map(|why| ("failure", why.clone())));
    let mut row = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    row("started from", receipt.base.clone());
    row(
        "commit",
        receipt.commit.as_ref().map(|commit| {
            let note = if receipt.is_committed {
                "contains exactly the graded files"
            } else {
                "does not contain the graded files as they are"
            };
            format!("{commit}: {note}")
        }),
    );
    row(
        "graded files",
        receipt
            .graded
            .as_ref()
            .map(|graded| match &graded.reference {
                Some(reference) => format!("tree {} ({reference})", graded.tree),
                None => format!("tree {}", graded.tree),
            }),
    );
    let guards = &receipt.guards;
    row(
        "guards",
        guards.failure.clone().or_else(|| {
            let count = plural(guards.total, "test or settings file");
            (guards.total > 0).then(|| format!("{count}, SHA-256 {}", guards.digest))
        }),
    );
    row(
        "allowed",
        Some(receipt.allow.join(", ")).filter(|globs| !globs.is_empty()),
    );
    row(
        "agent",
        Some(receipt.agent.command.join(" ")).filter(|command| !command.is_empty()),
    );
    row(
        "versions",
        receipt.versions.as_ref().map(|versions| {
            let git = versions.git.as_ref();
            let git = git.map(|git| format!(", git {git}")).unwrap_or_default();
            format!("ralph {}{git}, {}", versions.ralph, versions.os)
        }),
    );
    rows
}

/// Formats a recorded result: `green (2.3s, 12 passed)`.
pub(super) fn result_text(result: &RecordedResult) -> String {
    let report = CheckReport {
        exit: result.exit,
        timed_out: result.timed_out,
        ms: (result.duration_s * 1000.0) as u64,
        ..CheckReport::default()
    };
    let word = if result.green { "green" } else { "red" };
    let tests = result.tests.map(|tests| {
        let failed = (tests.failed > 0).then(|| format!(", {} failed", tests.failed));
        format!(", {} passed{}", tests.passed, failed.unwrap_or_default())
    });
    let exit = match result.exit.code {
        _ if result.timed_out => "timeout, ".to_owned(),
        Some(code) if code != 0 => format!("exit {code}, "),
        _ => String::new(),
    };
    let time = duration(report.ms);
    format!("{word} ({exit}{time}{})", tests.unwrap_or_default())
}

/// Formats how an iteration's agent ended: `completed`, `timed out`.
pub(super) fn end_text(one: &PastIteration, liveness: Liveness) -> String {
    match &one.record {
        None if liveness == Liveness::Idle => "ralph was killed".into(),
        None => "running".into(),
        Some(record) if record.refunded => "not counted".into(),
        Some(record) => match record.reason {
            Some(reason) if record.is_failure() => reason.kind.describe().to_owned(),
            _ if record.is_failure() => "failed".into(),
            _ => describe_end(record),
        },
    }
}

/// Formats the results of an iteration's checks: `2 of 3 green`.
pub(super) fn checks_text(one: &PastIteration) -> String {
    match one.green_checks() {
        (_, 0) => String::new(),
        (green, ran) => format!("{green}/{ran} green"),
    }
}

/// Returns the commits of an iteration, formatted for people.
pub(super) fn commit_texts(one: &PastIteration) -> Vec<String> {
    let commits = one.commits.iter();
    let done = commits.filter(|(_, report)| report.skipped.is_none());
    done.map(|(_, report)| task_verdict(report)).collect()
}

/// Returns the verdict on a check: `green (210ms)`.
pub(super) fn check_text(report: &CheckReport) -> String {
    event_line::verdict(report)
}

/// Formats the effort of a loop on one line.
pub(super) fn effort(report: &LoopReport) -> String {
    let state = report.state();
    let cost = state.cost_text().unwrap_or_else(|| "cost unknown".into());
    let count = iteration_count(state.iteration);
    format!("{count}, {}, {cost}", duration(state.active_ms))
}
