//! What becomes of green work: when the tasks of an iteration are due, and what their ends mean.

use super::event::{CheckReport, Exit, is_false};
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// The task that ralph carries out itself; any other is words for git.
pub const COMMIT: &str = "commit";

/// How one task for green work went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskReport {
    /// How its process ended.
    #[serde(default)]
    pub exit: Exit,
    /// Whether it was killed for taking too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// Why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skip>,
    /// The commit that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first line of that commit's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How many files are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// The first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The end of what it printed, if it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// Why a task had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Skip {
    /// The iteration changed nothing: neither this task nor those after it are for it.
    Unchanged,
    /// Everything is committed already; the tasks after it may have something to do.
    Empty,
}

impl TaskReport {
    /// Whether it did what was asked, or had nothing to do.
    pub fn is_good(&self) -> bool {
        self.skipped.is_some() || (self.exit.is_good() && !self.timed_out)
    }

    /// Its end, as a check's is told.
    pub fn as_check(&self) -> CheckReport {
        CheckReport { exit: self.exit, timed_out: self.timed_out, ms: self.ms }
    }
}

/// What became of green work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keeping {
    /// The tasks of the newest iteration that are over, in the plan's order.
    pub reports: Vec<TaskReport>,
    /// Failures since the tasks last ran to their end.
    pub failures: u32,
    /// The newest failure, until the tasks have run to their end: what it left undone is still to be done.
    pub owed: Option<Owed>,
    /// Whether the tasks have begun and not run to their end, be it that a person or a crash came in between.
    #[serde(default)]
    pub open: bool,
}

/// A task that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owed {
    /// In this iteration.
    pub iteration: u32,
    /// Its place in the plan.
    pub task: usize,
    /// How it went.
    pub report: TaskReport,
    /// What the commit was to say, if it is the one that failed.
    #[serde(default)]
    pub message: Option<String>,
}

impl State {
    /// The task to be done next: there is one only while every check of an iteration is green, and none
    /// after one that failed.
    pub(super) fn task_due(&self) -> Option<usize> {
        let reports = &self.keeping.reports;
        let earned = self.iteration > 0 && !self.checks.is_empty() && self.all_green();
        let over = |last: &TaskReport| last.skipped == Some(Skip::Unchanged) || !last.is_good();
        let next = reports.len();
        let due = earned && !reports.last().is_some_and(over) && next < self.plan.scm.tasks.len();
        due.then_some(next)
    }

    /// Whether nothing is left to be done with the work of the newest iteration.
    pub fn is_kept(&self) -> bool {
        self.task_due().is_none() && self.keeping.reports.iter().all(TaskReport::is_good)
    }

    /// The words of a task.
    pub fn task_words(&self, task: usize) -> &str {
        self.plan.scm.tasks.get(task).map_or("", String::as_str)
    }

    /// What the agent would write over the commit; one that mends an earlier commit may leave that to the one before.
    pub fn commit_words(&self) -> Option<&str> {
        let earlier = self.keeping.owed.as_ref().and_then(|owed| owed.message.as_deref());
        self.claims.said.commit.as_deref().or(earlier)
    }

    /// Does what is due with green work, or else goes on.
    pub(super) fn keep_or_proceed(&mut self) {
        if self.task_due().is_some() {
            self.phase = Phase::Committing;
        } else {
            self.proceed();
        }
    }

    pub(super) fn committed(&mut self, iteration: u32, task: usize, report: &TaskReport) {
        let expected = self.phase == Phase::Committing && iteration == self.iteration;
        if !expected || self.task_due() != Some(task) {
            return;
        }
        let message = self.commit_words().filter(|_| self.task_words(task) == COMMIT).map(str::to_owned);
        let keeping = &mut self.keeping;
        keeping.open = true;
        keeping.reports.push(report.clone());
        if let Some(last) = self.recent.back_mut().filter(|last| last.number == iteration) {
            last.tasks.clone_from(&keeping.reports);
        }
        if !report.is_good() {
            keeping.failures = keeping.failures.saturating_add(1);
            keeping.owed = Some(Owed { iteration, task, report: report.clone(), message });
            let rest_ms = self.backoff_ms(self.keeping.failures);
            self.rest_until_ms = self.rest_until_ms.max(self.clock_ms.saturating_add(rest_ms));
        } else if self.task_due().is_none() {
            self.keeping =
                Keeping { reports: std::mem::take(&mut self.keeping.reports), ..Keeping::default() };
        }
        if self.task_due().is_none() {
            self.proceed();
        }
    }
}
