//! What becomes of the work: when the tasks of an iteration are due, and what their ends mean.
//!
//! Green work has the tasks that were asked for. In a worktree of the loop's own, what is left uncommitted is
//! committed as well, red or green: one more task, whose number comes after those of the plan.

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
        CheckReport {
            exit: self.exit,
            timed_out: self.timed_out,
            ms: self.ms,
        }
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
    /// How the newest iteration's commit in the loop's own worktree went.
    #[serde(default)]
    pub saved: Option<TaskReport>,
    /// The newest of these that was refused, until everything is committed.
    #[serde(default)]
    pub unsaved: Option<Owed>,
    /// How often the tasks of the newest iteration have begun anew, because child loops had worked on.
    #[serde(default)]
    pub round: u32,
    /// What the tasks came to before they last did so.
    #[serde(default)]
    pub earlier: Vec<TaskReport>,
    /// The newest commit that was made for the newest iteration.
    #[serde(default)]
    pub newest: Option<String>,
}

impl Keeping {
    /// Another iteration begins.
    pub(super) fn begin(&mut self) {
        (self.round, self.saved, self.newest) = (0, None, None);
        self.reports.clear();
        self.earlier.clear();
    }

    /// The failure that is to be mended first.
    pub fn newest_failure(&self) -> Option<&Owed> {
        self.owed.as_ref().or(self.unsaved.as_ref())
    }
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
    /// The task for green work to be done next: there is one only while every check of an iteration is green, and
    /// none after one that failed.
    fn green_task_due(&self) -> Option<usize> {
        let reports = &self.keeping.reports;
        let earned = self.iteration > 0 && !self.checks.is_empty() && self.all_green();
        let over = |last: &TaskReport| last.skipped == Some(Skip::Unchanged) || !last.is_good();
        let next = reports.len();
        let due = earned && !reports.last().is_some_and(over) && next < self.plan.scm.tasks.len();
        due.then_some(next)
    }

    /// Whether the loop's own worktree is to be committed in this iteration. A commit among the tasks for green
    /// work, whether made or refused, leaves nothing to do here.
    fn save_due(&self) -> bool {
        let tried = (0..self.keeping.reports.len()).any(|task| self.task_words(task) == COMMIT);
        self.plan.worktree.is_some() && self.iteration > 0 && self.keeping.saved.is_none() && !tried
    }

    /// The task to be done next. Where no task for green work is a commit, the worktree's own comes before them:
    /// a push has something to push then.
    pub fn task_due(&self) -> Option<usize> {
        let own = self.save_due().then(|| self.own_task());
        let commits = self.plan.scm.tasks.iter().any(|task| task == COMMIT);
        if commits {
            self.green_task_due().or(own)
        } else {
            own.or(self.green_task_due())
        }
    }

    /// The number of the commit in the loop's own worktree.
    pub fn own_task(&self) -> usize {
        self.plan.scm.tasks.len()
    }

    /// Whether nothing is left to be done with the green work of the newest iteration.
    pub fn is_kept(&self) -> bool {
        self.green_task_due().is_none() && self.keeping.reports.iter().all(TaskReport::is_good)
    }

    /// Whether the loop has a worktree of its own with work in it that is not committed, as far as is known.
    pub fn is_unsaved(&self) -> bool {
        self.save_due() || self.keeping.unsaved.is_some()
    }

    /// The words of a task.
    pub fn task_words(&self, task: usize) -> &str {
        let own = if self.plan.worktree.is_some() && task == self.own_task() {
            COMMIT
        } else {
            ""
        };
        self.plan.scm.tasks.get(task).map_or(own, String::as_str)
    }

    /// What the agent would write over the commit; one that mends an earlier commit may leave that to the one before.
    pub fn commit_words(&self) -> Option<&str> {
        let earlier = self
            .keeping
            .newest_failure()
            .and_then(|owed| owed.message.as_deref());
        self.claims.said.commit.as_deref().or(earlier)
    }

    /// Does what is due with the work, or else goes on.
    pub(super) fn keep_or_proceed(&mut self) {
        if self.task_due().is_some() {
            self.phase = Phase::Committing;
        } else {
            self.proceed();
        }
    }

    /// Child loops have worked on after the tasks: what they did is to be kept as well.
    pub(super) fn keep_again(&mut self) {
        let keeping = &mut self.keeping;
        keeping.round = keeping.round.saturating_add(1);
        keeping.saved = None;
        let reports = std::mem::take(&mut keeping.reports);
        if !reports.is_empty() {
            keeping.earlier = reports;
        }
    }

    pub(super) fn committed(&mut self, iteration: u32, task: usize, report: &TaskReport) {
        let expected = self.phase == Phase::Committing && iteration == self.iteration;
        if !expected || self.task_due() != Some(task) {
            return;
        }
        if report.commit.is_some() {
            self.keeping.newest.clone_from(&report.commit);
        }
        let is_commit = self.task_words(task) == COMMIT;
        let message = self.commit_words().filter(|_| is_commit).map(str::to_owned);
        let owed = || Owed {
            iteration,
            task,
            report: report.clone(),
            message: message.clone(),
        };
        if is_commit && self.plan.worktree.is_some() {
            self.keeping.unsaved = (!report.is_good()).then(owed);
        }
        if task == self.own_task() {
            // A refusal is told, and is no failure: the work is there, and is committed with the next.
            self.keeping.saved = Some(report.clone());
            self.keeping.open |= report.commit.is_some() && self.green_task_due().is_some();
        } else {
            self.keeping.open = true;
            self.keeping.reports.push(report.clone());
            if report.skipped == Some(Skip::Unchanged) && !self.keeping.earlier.is_empty() {
                // Nothing has come since: they went as they went.
                self.keeping.reports = std::mem::take(&mut self.keeping.earlier);
            }
            self.kept_or_owed(report.is_good(), owed);
        }
        if let Some(last) = self
            .recent
            .back_mut()
            .filter(|last| last.number == iteration)
        {
            last.tasks.clone_from(&self.keeping.reports);
            last.saved.clone_from(&self.keeping.saved);
        }
        if self.task_due().is_none() || self.wish.is_now() {
            self.proceed();
        }
    }

    fn kept_or_owed(&mut self, good: bool, owed: impl Fn() -> Owed) {
        let is_over = self.green_task_due().is_none();
        let keeping = &mut self.keeping;
        if !good {
            keeping.failures = keeping.failures.saturating_add(1);
            keeping.owed = Some(owed());
            let rest_ms = self.backoff_ms(self.keeping.failures);
            self.rest_until_ms = self
                .rest_until_ms
                .max(self.clock_ms.saturating_add(rest_ms));
        } else if is_over {
            (keeping.failures, keeping.owed, keeping.open) = (0, None, false);
        }
    }
}
