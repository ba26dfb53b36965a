//! What the checks graded: they run again on files that they wrote themselves, and a commit must
//! contain the files that they graded.

use super::event::CheckReport;
use super::scm::{CommitTask, ScmTaskReport};
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// The most files that a message names.
const NAMED_MAX: usize = 5;

/// What happened to the files while the newest iteration was graded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GradedState {
    /// Files that the checks wrote, after which they ran again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    written: Vec<String>,
    /// Files that a commit's hook changed, after which the checks ran again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rewritten: Vec<String>,
}

impl GradedState {
    /// Returns whether the checks run again at the moment, or ran again.
    fn is_repeated(&self) -> bool {
        !self.written.is_empty() || !self.rewritten.is_empty()
    }
}

impl State {
    /// Returns whether the newest iteration would end the loop as done, or its work be committed.
    pub(super) fn is_graded_for_good(&self) -> bool {
        let is_green = self.iteration > 0 && !self.checks.is_empty() && self.all_green();
        is_green && (self.done_basis().is_some() || !self.plan.scm.tasks.is_empty())
    }

    /// Runs the checks once more if they wrote files themselves, because those that ran first have
    /// not seen these files. Returns whether they do.
    pub(super) fn grade_written_files(&mut self, written: &[String]) -> bool {
        if written.is_empty() || self.graded.is_repeated() || !self.is_graded_for_good() {
            return false;
        }
        self.graded.written = written.to_vec();
        self.grade_again();
        true
    }

    /// Runs the checks and then the SCM tasks once more if a commit's hook changed files. Returns
    /// whether they do.
    pub(super) fn grade_rewritten_files(&mut self, report: &ScmTaskReport) -> bool {
        let rewritten = &report.rewritten;
        let is_known = rewritten.is_empty() || !self.graded.rewritten.is_empty();
        if is_known || self.request.is_immediate() {
            return false;
        }
        self.graded.rewritten.clone_from(rewritten);
        self.restart_scm_tasks();
        self.grade_again();
        true
    }

    fn grade_again(&mut self) {
        self.checks = vec![None; self.plan.proof.checks.len()];
        self.look.discard();
        self.begin_checkpoint();
        self.phase = Phase::Checking;
    }

    /// Returns whether the commit that this task makes has to contain what the checks graded.
    pub(crate) fn commits_graded_files(&self, task: usize) -> bool {
        let is_green = !self.checks.is_empty() && self.all_green();
        is_green
            && self.content.now.is_some()
            && CommitTask::parse(self.scm_task_args(task)).is_some()
    }

    /// Returns whether the checks have run again because a commit's hook changed files.
    pub(crate) fn has_graded_rewritten_files(&self) -> bool {
        !self.graded.rewritten.is_empty()
    }

    /// Returns whether every check before this one is green.
    pub(crate) fn is_green_before(&self, check: usize) -> bool {
        let mut before = self.checks.iter().take(check).flatten();
        before.all(CheckReport::is_green)
    }

    /// Returns whether all checks are about to run again because files changed while they were
    /// graded.
    pub(crate) fn is_graded_again_from_start(&self) -> bool {
        self.graded.is_repeated()
            && self.phase == Phase::Checking
            && self.checks.iter().all(Option::is_none)
    }

    /// Describes the files that the checks or a commit's hook changed; empty if there are none.
    pub(super) fn describe_graded(&self) -> String {
        let describe = |who: &str, files: &[String]| match name_files(files) {
            names if names.is_empty() => String::new(),
            names => format!("; {who} changed {names}, and the checks ran again"),
        };
        let graded = &self.graded;
        describe("the checks themselves", &graded.written)
            + &describe("a git hook", &graded.rewritten)
    }
}

/// Names the first files: `a.py, b.py and 3 more files`.
pub(crate) fn name_files(files: &[String]) -> String {
    let names = files[..files.len().min(NAMED_MAX)].join(", ");
    match files.len().saturating_sub(NAMED_MAX) {
        0 => names,
        1 => format!("{names} and 1 more file"),
        more => format!("{names} and {more} more files"),
    }
}
