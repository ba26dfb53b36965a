//! Takes checkpoints: stores the working tree's content before an iteration's checks.

use super::reconcile::Flow;
use super::{Runner, RunnerError};
use crate::engine::Event;
use crate::git::{self, TreeContent, path_name};

/// The most skipped files that an event names.
const NAMED_MAX: usize = 20;

impl Runner<'_> {
    /// Takes a checkpoint, and records it. A failure is a warning: the loop continues without this
    /// checkpoint.
    ///
    /// The iteration's end need not be durable before: if it is lost, the checkpoint is taken again.
    pub(super) fn take_checkpoint(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        let id = self.rec.header.id.clone();
        let taken = self.tree_content().and_then(|content| {
            content
                .map(|content| content.take_checkpoint(&id, &iteration.to_string()))
                .transpose()
        });
        let (checkpoint, failure) = match taken {
            Ok(checkpoint) => (checkpoint, None),
            Err(error) => (None, Some(error)),
        };
        let skipped = checkpoint.iter().flat_map(|checkpoint| &checkpoint.skipped);
        let skipped: Vec<String> = skipped
            .take(NAMED_MAX)
            .map(|(path, why)| format!("{} ({})", path_name(path), why.as_str()))
            .collect();
        let warning = match &failure {
            Some(why) => format!("cannot take a checkpoint of the files: {why}"),
            None if skipped.is_empty() => String::new(),
            None => format!("checkpoints do not contain {}", skipped.join(", ")),
        };
        if !warning.is_empty() && warning != self.checkpoint_warning {
            self.rec.warn(&warning);
        }
        self.checkpoint_warning = warning;
        let (tree, commit) = checkpoint
            .map(|checkpoint| (checkpoint.tree, checkpoint.commit))
            .unzip();
        let is_start = iteration == 0 && commit.is_some();
        let head = is_start.then(|| git::head::head(&self.rec.state.plan.workspace));
        self.rec.record(Event::Checkpointed {
            iteration,
            tree,
            commit,
            skipped,
            failure,
            head: head.flatten().map(|head| head.commit),
        })?;
        Ok(Flow::Again)
    }

    /// Returns the workspace's content; `None` outside git.
    pub(super) fn tree_content(&self) -> Result<Option<&TreeContent>, String> {
        if let Some(content) = self.content.get() {
            return Ok(content.as_ref());
        }
        let (dir, plan) = (&self.rec.dir, &self.rec.state.plan);
        let content = TreeContent::find(&plan.workspace, &dir.git_scratch())?;
        Ok(self.content.get_or_init(|| content).as_ref())
    }
}
