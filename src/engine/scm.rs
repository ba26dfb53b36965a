//! SCM tasks: their order, the conditions under which they run, and the meaning of their results.
//!
//! If an iteration's checks are all green, the plan's tasks run in order (`commit`, `push`, …). A
//! loop with its own worktree also commits whatever an iteration left uncommitted, green or red.
//! This is an additional task, the [worktree task](State::worktree_task); its index follows those
//! of the plan's tasks.

use super::event::{CheckReport, ProcessExit, is_default};
use super::prompt::describe_red_check;
use super::state::{Phase, State};
use super::work_elsewhere::WorkElsewhere;
use serde::{Deserialize, Serialize};

/// The task that ralph carries out itself, with options for git or without. Any other task is a list
/// of arguments for git.
pub(crate) const COMMIT: &str = "commit";

/// A commit that ralph makes: it stages everything, and writes the message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommitTask {
    /// The message given with `-m`; `None` if the agent proposes it.
    pub(crate) message: Option<String>,
    /// The other options of `git commit`, such as `--no-verify`.
    pub(crate) options: Vec<String>,
}

impl CommitTask {
    /// Parses a task; `None` if it is not a commit, or one that takes its message from a commit or
    /// a file, which git carries out as it is.
    pub(crate) fn parse(task: &str) -> Option<Self> {
        const OTHER_MESSAGES: [&str; 12] = [
            "-F",
            "--file",
            "-C",
            "--reuse-message",
            "-c",
            "--reedit-message",
            "--amend",
            "--fixup",
            "--squash",
            "-t",
            "--template",
            "--interactive",
        ];
        let mut args = shlex::split(task)?.into_iter();
        if args.next()? != COMMIT {
            return None;
        }
        let (mut paragraphs, mut options) = (Vec::new(), Vec::new());
        while let Some(arg) = args.next() {
            let name = arg.split('=').next().unwrap_or_default();
            if OTHER_MESSAGES.contains(&name) {
                return None;
            }
            if let Some(text) = arg.strip_prefix("--message=") {
                paragraphs.push(text.to_owned());
            } else if arg == "-m" || arg == "--message" || arg == "-am" {
                paragraphs.push(args.next()?);
            } else {
                options.push(arg);
            }
        }
        Some(Self {
            message: (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n")),
            options,
        })
    }
}

/// The result of one run of an SCM task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScmTaskReport {
    /// The exit status of the task's process.
    #[serde(default)]
    pub exit: ProcessExit,
    /// Whether the task was killed because its timeout passed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timed_out: bool,
    /// The task's running time, in milliseconds.
    #[serde(default)]
    pub ms: u64,
    /// Why the task was skipped; `None` if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipReason>,
    /// The ID of the commit that the task made; `None` if it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first line of the commit's message; `None` if the task made no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Number of files the commit changes; `None` if the task made no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Paths of the first few files that the commit changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The first files that changed while a commit was made, so that no check has seen them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
    /// The first files that the checks graded and that the commit does not contain as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// The end of the task's output if it failed; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Work that a commit does not contain, or that is on another branch.
    #[serde(default, skip_serializing_if = "WorkElsewhere::is_empty")]
    pub elsewhere: WorkElsewhere,
}

/// Why an SCM task was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// The iteration changed nothing. The following tasks are skipped too.
    Unchanged,
    /// Everything is already committed. The following tasks still run.
    Empty,
}

impl ScmTaskReport {
    /// Applies `edit` to every text from git or the agent.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let elsewhere = &mut self.elsewhere;
        let branch = elsewhere.head.iter_mut().flat_map(|head| &mut head.branch);
        (self.subject.iter_mut())
            .chain(&mut self.paths)
            .chain(&mut self.rewritten)
            .chain(&mut self.differs)
            .chain([&mut self.output])
            .chain(&mut elsewhere.nested)
            .chain(&mut elsewhere.submodules)
            .chain(branch)
            .for_each(edit);
    }

    /// Returns whether the task succeeded or was skipped.
    pub fn is_success(&self) -> bool {
        let has_succeeded = self.exit.is_success() && !self.timed_out;
        (self.skipped.is_some() || has_succeeded) && self.differs.is_empty()
    }

    /// Describes how a task failed: `exit 1`.
    pub(crate) fn describe_failure(&self) -> String {
        if !self.differs.is_empty() {
            return "the commit differs from what was checked".into();
        }
        describe_red_check(&CheckReport {
            exit: self.exit,
            timed_out: self.timed_out,
            ms: self.ms,
            ..CheckReport::default()
        })
    }
}

/// The state of a loop's SCM tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScmState {
    /// The latest iteration's results, in the plan's order.
    pub(crate) reports: Vec<ScmTaskReport>,
    /// Number of failures since all tasks last succeeded.
    pub(crate) failures: u32,
    /// The newest failure; `None` once all tasks have succeeded.
    #[serde(rename = "owed")]
    pub(crate) pending: Option<PendingTask>,
    /// Whether the tasks were started but not all completed, because of a request or a crash.
    #[serde(default, rename = "open")]
    pub(crate) unfinished: bool,
    /// The result of the latest iteration's worktree task; `None` if it has not run.
    #[serde(default, rename = "saved")]
    pub(crate) worktree_commit: Option<ScmTaskReport>,
    /// The newest failed commit in the worktree; `None` once everything is committed.
    #[serde(default, rename = "unsaved")]
    pub(crate) uncommitted: Option<PendingTask>,
    /// Number of times the latest iteration's tasks were restarted because child loops were still
    /// running when the tasks completed.
    #[serde(default)]
    pub(crate) round: u32,
    /// The reports from before the last restart.
    #[serde(default, rename = "earlier")]
    pub(crate) previous_reports: Vec<ScmTaskReport>,
    /// The ID of the last commit made for the latest iteration; `None` if no commit was made.
    #[serde(default, rename = "newest")]
    pub(crate) newest_commit: Option<String>,
    /// Work that the newest commit task found elsewhere.
    #[serde(default)]
    pub(crate) elsewhere: WorkElsewhere,
}

impl ScmState {
    /// Clears the results of the previous iteration.
    pub(super) fn begin_iteration(&mut self) {
        (self.round, self.worktree_commit, self.newest_commit) = (0, None, None);
        self.reports.clear();
        self.previous_reports.clear();
    }

    /// Returns the failed task that the agent should fix first; `None` if no task has failed.
    pub(crate) fn pending_task(&self) -> Option<&PendingTask> {
        self.pending.as_ref().or(self.uncommitted.as_ref())
    }
}

/// A failed task that will run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingTask {
    /// The number of the iteration in which the task failed.
    pub(crate) iteration: u32,
    /// The task's index in the plan.
    pub(crate) task: usize,
    /// The result of the failed run.
    pub(crate) report: ScmTaskReport,
    /// The commit message that the agent proposed; `None` unless the task is a commit.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

impl State {
    /// Returns the index of the plan's next task; `None` if a check is red, after a failure, or
    /// when all tasks have run.
    fn next_plan_task(&self) -> Option<usize> {
        let reports = &self.scm.reports;
        let green =
            self.iteration > 0 && !self.checks.is_empty() && self.all_green() && self.passes_look();
        let ends = |last: &ScmTaskReport| {
            last.skipped == Some(SkipReason::Unchanged) || !last.is_success()
        };
        let next = reports.len();
        let due = green && !reports.last().is_some_and(ends) && next < self.plan.scm.tasks.len();
        due.then_some(next)
    }

    /// Returns whether the worktree task still has to run in this iteration. It is not needed if
    /// the plan's own `commit` has run, successfully or not.
    fn is_worktree_commit_due(&self) -> bool {
        let tried =
            (0..self.scm.reports.len()).any(|task| self.commits_worktree(self.scm_task_args(task)));
        self.plan.worktree.is_some()
            && self.iteration > 0
            && self.scm.worktree_commit.is_none()
            && !tried
    }

    /// Returns whether one of the plan's tasks makes the commit that the loop's worktree needs.
    /// Under the first rules, a commit with options did not.
    fn commits_worktree(&self, task: &str) -> bool {
        if self.plan.has_first_rules() {
            task == COMMIT
        } else {
            CommitTask::parse(task).is_some()
        }
    }

    /// Returns the index of the task to run next; `None` if none is due. If the plan has no
    /// `commit`, the worktree task runs first: a push needs a commit to push.
    pub(crate) fn next_scm_task(&self) -> Option<usize> {
        let worktree = self.is_worktree_commit_due().then(|| self.worktree_task());
        let mut tasks = self.plan.scm.tasks.iter();
        if tasks.any(|task| self.commits_worktree(task)) {
            self.next_plan_task().or(worktree)
        } else {
            worktree.or(self.next_plan_task())
        }
    }

    /// Returns the index of the worktree task.
    pub(crate) fn worktree_task(&self) -> usize {
        self.plan.scm.tasks.len()
    }

    /// Returns whether all tasks that are due in the latest iteration have succeeded.
    pub(crate) fn scm_tasks_succeeded(&self) -> bool {
        self.next_plan_task().is_none() && self.scm.reports.iter().all(ScmTaskReport::is_success)
    }

    /// Returns whether the loop's worktree may contain uncommitted work.
    pub(crate) fn has_uncommitted_work(&self) -> bool {
        self.is_worktree_commit_due() || self.scm.uncommitted.is_some()
    }

    /// Returns the branch that has the work in the loop's worktree, or a commit's ID if the agent
    /// detached HEAD. `None` if the loop has no worktree.
    pub(crate) fn worktree_revision(&self) -> Option<&str> {
        let worktree = self.plan.worktree.as_ref()?;
        let moved = self.scm.elsewhere.head.as_ref();
        Some(moved.map_or(&*worktree.branch, |head| head.revision()))
    }

    /// Returns a task's arguments for git, such as `push origin main`.
    pub(crate) fn scm_task_args(&self, task: usize) -> &str {
        match self.plan.scm.tasks.get(task) {
            Some(args) => args,
            None if self.plan.worktree.is_some() && task == self.worktree_task() => COMMIT,
            None => "",
        }
    }

    /// Returns the commit message that the agent proposes, or else its proposal for an earlier
    /// commit that failed; `None` if there is neither.
    pub(crate) fn requested_commit_message(&self) -> Option<&str> {
        let pending = self.scm.pending_task();
        self.claims
            .signals
            .commit
            .as_deref()
            .or_else(|| pending?.message.as_deref())
    }

    /// Runs the SCM tasks that are due. If none is due, decides what the loop does next.
    pub(super) fn run_scm_tasks_or_proceed(&mut self) {
        // After an error, only the checkpoint is still taken.
        if self.fault.is_none() && self.next_scm_task().is_some() {
            self.phase = Phase::Committing;
        } else {
            self.proceed();
        }
    }

    /// Makes all tasks due again, because files changed after the tasks had run: child loops kept
    /// working, or a git hook changed them.
    pub(super) fn restart_scm_tasks(&mut self) {
        let scm = &mut self.scm;
        scm.round = scm.round.saturating_add(1);
        scm.worktree_commit = None;
        let reports = std::mem::take(&mut scm.reports);
        if !reports.is_empty() {
            scm.previous_reports = reports;
        }
    }

    pub(super) fn committed(&mut self, iteration: u32, task: usize, report: &ScmTaskReport) {
        let expected = self.phase == Phase::Committing && iteration == self.iteration;
        if !expected || self.next_scm_task() != Some(task) {
            return;
        }
        if report.commit.is_some() {
            self.scm.newest_commit.clone_from(&report.commit);
        }
        let is_commit = CommitTask::parse(self.scm_task_args(task)).is_some();
        if is_commit && report.is_success() {
            self.scm.elsewhere.clone_from(&report.elsewhere);
        }
        let pending = (!report.is_success()).then(|| PendingTask {
            iteration,
            task,
            report: report.clone(),
            message: self
                .requested_commit_message()
                .filter(|_| is_commit)
                .map(str::to_owned),
        });
        if is_commit && self.plan.worktree.is_some() {
            self.scm.uncommitted.clone_from(&pending);
        }
        if task == self.worktree_task() {
            // A failed worktree commit is reported but is not a failure: the next iteration commits
            // the work again.
            self.scm.worktree_commit = Some(report.clone());
            self.scm.unfinished |= report.commit.is_some() && self.next_plan_task().is_some();
        } else {
            self.scm.unfinished = true;
            self.scm.reports.push(report.clone());
            if report.skipped == Some(SkipReason::Unchanged)
                && !self.scm.previous_reports.is_empty()
            {
                // Nothing has changed since the last round, so its results still apply.
                self.scm.reports = std::mem::take(&mut self.scm.previous_reports);
            }
            self.record_scm_result(pending);
        }
        if let Some(last) = self
            .recent
            .back_mut()
            .filter(|last| last.number == iteration)
        {
            last.tasks.clone_from(&self.scm.reports);
            last.worktree_commit.clone_from(&self.scm.worktree_commit);
        }
        if self.grade_rewritten_files(report) {
            return;
        }
        if self.next_scm_task().is_none() || self.request.is_immediate() {
            self.proceed();
        }
    }

    fn record_scm_result(&mut self, failure: Option<PendingTask>) {
        if failure.is_some() {
            self.scm.failures = self.scm.failures.saturating_add(1);
            self.scm.pending = failure;
            let rest_until_ms = self
                .clock_ms
                .saturating_add(self.backoff_ms(self.scm.failures));
            self.rest_until_ms = self.rest_until_ms.max(rest_until_ms);
        } else if self.next_plan_task().is_none() {
            (self.scm.failures, self.scm.pending, self.scm.unfinished) = (0, None, false);
        }
    }
}
