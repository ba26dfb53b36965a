//! Checkpoints of the working tree: when they are taken, and which iteration was the best.
//!
//! The runner stores the content of the working tree before the first iteration, and before each
//! iteration's checks. A person can return to any of these.

use super::event::{Event, Fault, is_default};
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// The state of a loop's checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckpointState {
    /// The checkpoint that the loop waits for; `None` if it waits for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<CheckpointDue>,
    /// Whether there can be none, because the workspace is not in git.
    #[serde(default, skip_serializing_if = "is_default")]
    is_unavailable: bool,
    /// The number of the newest checkpoint; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) newest: Option<u32>,
    /// The newest checkpoint's content; `None` if it could not be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<StoredFiles>,
    /// The content at the loop's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<StoredFiles>,
    /// The HEAD commit at the loop's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best: Option<BestIteration>,
    /// Whether a person has rewound the files since the newest iteration.
    #[serde(default, skip_serializing_if = "is_default")]
    is_rewound: bool,
}

/// The content of a checkpoint, as IDs of git objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFiles {
    pub(crate) tree: String,
    pub(crate) commit: String,
}

/// What follows a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckpointDue {
    Checks,
    /// The first iteration, without preflight.
    FirstIteration,
    /// The end of the loop, or a pause: a person did not want to wait, or an error occurred.
    End,
}

/// The iteration with the best results so far: the most green checks, then the most passed tests,
/// then the latest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BestIteration {
    /// The iteration's number; 0 is the start.
    pub(crate) iteration: u32,
    /// Number of green checks.
    pub(crate) green: usize,
    /// Number of tests that passed, in all checks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) passed: u64,
    /// The ID of its checkpoint's tree.
    tree: String,
}

impl State {
    /// Returns the number of the checkpoint that has to be taken now; `None` if none has to.
    pub(super) fn due_checkpoint(&self) -> Option<u32> {
        let is_due = self.phase == Phase::Checking && self.checkpoint.due.is_some();
        is_due.then_some(self.iteration)
    }

    fn takes_checkpoints(&self) -> bool {
        self.plan.checkpoints && !self.checkpoint.is_unavailable
    }

    /// Returns whether the newest iteration's files are in a checkpoint, as they are now.
    pub(crate) fn has_checkpoint(&self) -> bool {
        let state = &self.checkpoint;
        state.newest == Some(self.iteration) && state.stored.is_some() && !state.is_rewound
    }

    /// Takes a checkpoint before the first iteration of a loop without preflight.
    pub(super) fn begin_without_preflight(&mut self) {
        if self.takes_checkpoints() {
            self.checkpoint.due = Some(CheckpointDue::FirstIteration);
            self.phase = Phase::Checking;
        } else {
            self.proceed();
        }
    }

    /// Returns whether the loop waits for the checkpoint before its first iteration.
    pub(super) fn awaits_first_checkpoint(&self) -> bool {
        self.checkpoint.due == Some(CheckpointDue::FirstIteration)
    }

    /// Orders a checkpoint before the checks. After a rewind there is none: the newest one is that
    /// of the iteration before, to which a person may want to return.
    pub(super) fn begin_checkpoint(&mut self) {
        let is_due = self.takes_checkpoints() && !self.checkpoint.is_rewound;
        self.checkpoint.due = is_due.then_some(CheckpointDue::Checks);
    }

    /// Orders a checkpoint of work that is not checked, because the loop ends or pauses at once.
    /// Returns whether one is due.
    pub(super) fn begin_last_checkpoint(&mut self) -> bool {
        // After these errors there may be no files, or no place for a checkpoint.
        let has_no_files = matches!(self.fault, Some((Fault::Workspace | Fault::Disk, _)));
        let is_due = self.takes_checkpoints() && self.iteration > 0 && !has_no_files;
        if is_due {
            self.checkpoint.due = Some(CheckpointDue::End);
            self.phase = Phase::Checking;
        }
        is_due
    }

    /// Returns whether the loop waits for the checkpoint of an iteration, which is taken even if the
    /// loop ends at once.
    pub(super) fn awaits_checkpoint(&self) -> bool {
        self.due_checkpoint().is_some_and(|iteration| iteration > 0)
    }

    /// Called when a checkpoint was taken, or could not be: it has no tree then, and without a
    /// failure there can be none at all.
    pub(super) fn checkpointed(&mut self, event: &Event) {
        let Event::Checkpointed {
            iteration,
            tree,
            commit,
            failure,
            head,
            ..
        } = event
        else {
            return;
        };
        let iteration = *iteration;
        if self.due_checkpoint() != Some(iteration) {
            return;
        }
        let stored = tree.clone().zip(commit.clone());
        let stored = stored.map(|(tree, commit)| StoredFiles { tree, commit });
        let due = self.checkpoint.due.take();
        if stored.is_some() {
            self.checkpoint.newest = Some(iteration);
        }
        if iteration == 0 {
            self.checkpoint.start.clone_from(&stored);
            self.checkpoint.base.clone_from(head);
        }
        self.checkpoint.is_unavailable = stored.is_none() && failure.is_none();
        self.checkpoint.stored = stored;
        if due == Some(CheckpointDue::FirstIteration) || self.fault.is_some() {
            self.proceed();
        } else if self.checks.is_empty() || self.request.is_immediate() {
            self.run_scm_tasks_or_proceed();
        }
    }

    /// Forgets the rewind, because the agent works on its result.
    pub(super) fn begin_after_rewind(&mut self) {
        self.checkpoint.is_rewound = false;
        self.checkpoint.due = None;
    }

    /// Called when a person has put the files back to a checkpoint.
    pub(super) fn rewound(&mut self, to: &str) {
        self.checkpoint.is_rewound = true;
        let what = match to {
            "0" => "their state at the start".to_owned(),
            "undo" => "their state before the last `ralph rewind`".to_owned(),
            _ => format!("their state after iteration {to}"),
        };
        self.answers.push(format!(
            "I have put the files back to {what}. Changes made since then are gone."
        ));
        if matches!(
            self.phase,
            Phase::Resting { .. } | Phase::Running { started: false, .. }
        ) {
            self.begin_checks();
        }
    }

    /// Returns whether the checks have to run again because a person has rewound the files.
    pub(super) fn is_rewound(&self) -> bool {
        self.checkpoint.is_rewound
    }

    /// Remembers the newest iteration if it is the best, once all its checks have run.
    pub(super) fn judge_best(&mut self) {
        let state = &self.checkpoint;
        if state.newest != Some(self.iteration) || state.is_rewound {
            return;
        }
        let Some(tree) = self.stored_tree().cloned() else {
            return;
        };
        let (green, passed) = self.results();
        let best = state.best.as_ref();
        if best.is_none_or(|best| (best.green, best.passed) <= (green, passed)) {
            self.checkpoint.best = Some(BestIteration {
                iteration: self.iteration,
                green,
                passed,
                tree,
            });
        }
    }

    fn stored_tree(&self) -> Option<&String> {
        self.checkpoint.stored.as_ref().map(|stored| &stored.tree)
    }

    /// Returns the tree whose content the newest checks have judged; `None` if it is not stored.
    /// After a rewind that is the content which was measured, without what no checkpoint contains.
    pub(crate) fn graded_tree(&self) -> Option<&str> {
        if self.checkpoint.is_rewound {
            let measured = self.content.now.as_deref()?;
            return measured.split('+').next();
        }
        let is_newest = self.checkpoint.newest == Some(self.checked_iteration());
        let tree = self.stored_tree().filter(|_| is_newest);
        tree.map(String::as_str)
    }

    /// Returns how many checks are green, and how many tests passed in all of them.
    pub(crate) fn results(&self) -> (usize, u64) {
        let reports = self.checks.iter().flatten();
        let green = reports.clone().filter(|report| report.is_green()).count();
        let tests = reports.filter_map(|report| report.tests);
        (green, tests.map(|tests| tests.passed).sum())
    }

    /// Returns the best iteration; `None` if no checks ran after a checkpoint.
    pub(crate) fn best_iteration(&self) -> Option<&BestIteration> {
        self.checkpoint.best.as_ref()
    }

    /// Returns the best iteration if the files are, or may be, worse now: fewer checks are green,
    /// as many but fewer tests pass, or the checks did not run.
    pub(crate) fn better_iteration(&self) -> Option<&BestIteration> {
        let best = self.best_iteration()?;
        let is_same =
            self.checked_iteration() == best.iteration || self.stored_tree() == Some(&best.tree);
        let is_worse = if self.is_checked() {
            self.results() < (best.green, best.passed)
        } else {
            best.green > 0 && !is_same
        };
        (is_worse && !self.checkpoint.is_rewound).then_some(best)
    }
}
