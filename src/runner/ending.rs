//! Records a loop's ending: its outcome, what a person should read, and the facts for the receipt.

use super::{Runner, RunnerError, receipt};
use crate::engine::receipt::{EndFacts, Versions};
use crate::engine::review::Review;
use crate::engine::{Event, ExitCode, Outcome};
use crate::git::checkpoint::Checkpoints;
use crate::git::{checkout_top, head};
use crate::proof::Baseline;
use crate::proof::review::review;

impl Runner<'_> {
    /// Records the outcome and makes it durable.
    pub(super) fn finish(&mut self, outcome: &Outcome) -> Result<(), RunnerError> {
        // A marker written between iterations must not end a later loop with this name.
        let dir = self.rec.dir.iteration_dir(self.rec.state.iteration);
        let _ = self
            .task_dir
            .archive(&self.rec.state.claims.markers, &dir, &self.rec.redactor);
        self.bus.publish_exit(&mut self.rec);
        if !self.rec.is_in_place() {
            let missing = self.missing_dir();
            let warning = format!("{missing}; other commands do not see how the loop ended");
            self.rec.warn(&warning);
        }
        let (review, end) = (self.review_changes(outcome), self.end_facts(outcome));
        let state = &self.rec.state;
        let worktree = state.plan.worktree.as_ref();
        self.rec.record(Event::Finished {
            outcome: state.outcome_summary().unwrap_or_else(|| outcome.summary()),
            stop_reason: outcome.stop_reason(),
            success: outcome.exit_code() == ExitCode::Success,
            exit_code: outcome.exit_code().code().into(),
            iterations: state.iteration,
            cost_usd: state.known_cost(),
            duration_s: state.active_ms as f64 / 1000.0,
            worktree: worktree.map(|worktree| worktree.path.display().to_string()),
            branch: state.worktree_revision().map(str::to_owned),
            better: state.better_iteration().map(|best| best.iteration),
            review,
            end,
        })?;
        self.rec.sync()?;
        self.write_receipt();
        Ok(())
    }

    /// Writes the receipt of a loop whose work was judged. It can be made again, so an error is only
    /// a warning.
    fn write_receipt(&mut self) {
        if self.rec.state.iteration == 0 || !self.rec.is_in_place() {
            return;
        }
        if let Err(error) = receipt::write(&self.rec.dir, &self.rec.redactor) {
            self.rec.warn(&format!("cannot write the receipt: {error}"));
        }
    }

    /// Names the lines that were added since the loop's start and that a person should read; `None`
    /// if there are none, or if the work is not finished.
    fn review_changes(&self, outcome: &Outcome) -> Option<Review> {
        let state = &self.rec.state;
        if !is_finished_work(outcome) || state.iteration == 0 || state.request.is_immediate() {
            return None;
        }
        let review = match &state.checkpoint.start {
            Some(start) => self.review_checkpoints(&start.tree, state.graded_tree()?)?,
            None => self.review_files()?,
        };
        (!review.is_empty()).then_some(review)
    }

    /// Reads the lines that were added between two trees.
    fn review_checkpoints(&self, start: &str, end: &str) -> Option<Review> {
        let found = if start == end {
            Ok((Vec::new(), false))
        } else {
            Checkpoints::find(&self.rec.dir.git_scratch())?.patch(start, end)
        };
        Some(match found {
            Ok((patch, is_cut)) => {
                let mut review = review(&patch);
                if is_cut {
                    review.incomplete = Some("there are too many".into());
                }
                review
            }
            Err(why) => Review::unread(why),
        })
    }

    /// Reads the lines that were added to the files, by comparison with the record of the loop's
    /// start; `None` without a record.
    fn review_files(&self) -> Option<Review> {
        let digest = self.rec.state.look.baseline.as_deref()?;
        let baseline = Baseline::open(self.rec.dir.path(), digest).ok()??;
        let review = baseline.review();
        Some(review.unwrap_or_else(|error| Review::unread(error.to_string())))
    }

    /// Returns the commit and the versions; `None` if no work was judged.
    fn end_facts(&self, outcome: &Outcome) -> Option<EndFacts> {
        let state = &self.rec.state;
        // A person who stops a loop at once does not wait for git.
        let is_hurried = state.request.is_immediate();
        if state.iteration == 0 || is_hurried || matches!(outcome, Outcome::Fatal { .. }) {
            return None;
        }
        let workspace = &state.plan.workspace;
        let top = checkout_top(workspace);
        let head = top.and_then(|_| head::head(workspace));
        let system = rustix::system::uname();
        let parts = [system.sysname(), system.release(), system.machine()];
        let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
        let (head, head_tree) = head.map(|head| (head.commit, head.tree)).unzip();
        let below = top.and_then(|top| workspace.strip_prefix(top).ok());
        Some(EndFacts {
            head,
            head_tree,
            directory: below.map(|below| below.display().to_string()),
            versions: Versions {
                ralph: env!("CARGO_PKG_VERSION").to_owned(),
                agent: state.agent_version().cloned(),
                git: top.and_then(|_| head::version(workspace)),
                os: parts.join(" "),
            },
        })
    }
}

/// Returns whether a person is about to judge the work.
fn is_finished_work(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Done { .. } | Outcome::Disputed { .. } | Outcome::Limit { .. }
    )
}
