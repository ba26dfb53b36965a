//! How work is kept: a task is put under way once, and found again if a crash hid its end.

use super::job::{Gone, Job, Launch, Terms};
use super::reactor::Key;
use super::{Error, Flow, Runner, millis};
use crate::engine::event::{Exit, Fault};
use crate::engine::message::{message, trailers};
use crate::engine::plain_text::plain;
use crate::engine::plan::Scm;
use crate::engine::scm::{COMMIT, Skip, TaskReport};
use crate::engine::{Effect, Event};
use crate::git::{NoTree, Tree};
use crate::os::regular;
use crate::process::orphans;
use crate::store::dir::create_file;
use std::io::{self, Write};

/// So much of a failed task's output goes into the journal, in characters.
const OUTPUT_MAX: usize = 600;

/// What stands for HEAD before the first commit.
const UNBORN: &str = "none";

impl Runner<'_> {
    /// Remembers where HEAD is before the agent can move it.
    pub(super) fn note_head(&self, iteration: u32) {
        let plan = &self.state.plan;
        if plan.scm.tasks.is_empty() && plan.worktree.is_none() {
            return;
        }
        let head = self.tree().ok().and_then(|tree| head_now(&tree));
        if let Some(head) = head {
            // Without it every iteration counts as one that changed something.
            let _ = self.dir.make_iteration(iteration).map(|_| {
                create_file(&self.dir.head(iteration))
                    .and_then(|mut file| file.write_all(head.as_bytes()))
            });
        }
    }

    /// Where HEAD was when an iteration began, if that is known.
    fn head_before(&self, iteration: u32) -> Option<String> {
        let (bytes, _) = regular::read(&self.dir.head(iteration), 256, false).ok()?;
        // A file without words is one that the power went out on.
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|head| !head.is_empty())
    }

    /// Where HEAD was before anything was there to be kept: when the iteration began, or at its own last commit where
    /// child loops worked on after that.
    fn kept_until(&self, iteration: u32) -> Option<String> {
        let keeping = &self.state.keeping;
        let newest = keeping.newest.clone().filter(|_| keeping.round > 0);
        newest.or_else(|| self.head_before(iteration))
    }

    fn tree(&self) -> Result<Tree, NoTree> {
        let plan = &self.state.plan;
        let tree = Tree::around(&plan.scm.command, &plan.workspace)?;
        // A worktree that has lost its link would give its work to whatever repository is above it.
        match &plan.worktree {
            Some(own) if !tree.is_at(&own.path) => Err(NoTree::Outside),
            _ => Ok(tree),
        }
    }

    pub(super) fn begin_task(&mut self, iteration: u32, task: usize) -> Result<Flow, Error> {
        // What earned it is durable before anything is done with it.
        self.journal.sync()?;
        if let Err((class, detail)) = self.in_place() {
            self.tell(Event::Faulted { class, detail })?;
            return Ok(Flow::Again);
        }
        let log = self.dir.task_log(iteration, task);
        self.dir.make_iteration(iteration)?;
        let emptied = create_file(&log);
        let report = match self.tree() {
            Ok(tree) => match self.settled(&tree, iteration, task) {
                Some(report) => report,
                None => match emptied.and_then(|_| self.start_task(&tree, iteration, task)) {
                    Ok(job) => {
                        self.world.begin(Key::Commit(iteration, task), job, None);
                        return Ok(Flow::Wait);
                    }
                    Err(error) => not_run(error.to_string()),
                },
            },
            Err(NoTree::NoGit) => not_run("git is not installed (no longer in PATH)".into()),
            Err(NoTree::Outside | NoTree::Bare) => {
                not_run("there is no working tree of git any more".into())
            }
            Err(NoTree::Broken(why)) => not_run(why),
        };
        if !report.is_good() {
            let _ = regular::create(&log).and_then(|mut file| writeln!(file, "{}", report.output));
            self.publish_task(iteration, task);
        }
        self.tell(Event::Committed {
            iteration,
            task,
            report,
        })?;
        Ok(Flow::Again)
    }

    /// What is known of a task without starting anything: that there is nothing to do, or that it was done
    /// before a crash hid it.
    fn settled(&self, tree: &Tree, iteration: u32, task: usize) -> Option<TaskReport> {
        let before = self.kept_until(iteration);
        let skipped = |why| TaskReport {
            skipped: Some(why),
            ..TaskReport::default()
        };
        let is_commit = self.state.task_words(task) == COMMIT;
        // Its message is written right before a commit is made. Without one, whoever carries the trailer has copied it.
        let begun = is_commit && self.dir.commit_message(iteration).exists();
        if begun && let Some(commit) = self.own_commit(tree, iteration) {
            let made = TaskReport {
                exit: Exit::code(0),
                ..TaskReport::default()
            };
            return Some(with_contents(made, tree, commit));
        }
        let is_clean =
            (task == 0 || is_commit) && tree.changed().is_ok_and(|changed| changed.is_empty());
        // What is left of an earlier iteration's tasks is to be done even if this one added nothing.
        let may_skip = is_clean && task == 0 && !self.state.keeping.open && before.is_some();
        if may_skip && before == head_now(tree) {
            return Some(skipped(Skip::Unchanged));
        }
        (is_clean && is_commit).then(|| skipped(Skip::Empty))
    }

    /// The commit that this iteration made, found by its trailer.
    fn own_commit(&self, tree: &Tree, iteration: u32) -> Option<String> {
        let [_, own] = trailers(
            &self.header.name,
            &self.header.id,
            iteration,
            self.state.keeping.round,
        );
        let since = self.head_before(iteration).filter(|head| head != UNBORN);
        tree.commit_with(&own, since.as_deref())
    }

    fn start_task(&mut self, tree: &Tree, iteration: u32, task: usize) -> io::Result<Job> {
        let plan = &self.state.plan;
        let words = self.state.task_words(task);
        let path = self.dir.commit_message(iteration);
        if words == COMMIT {
            let text = self.task_text().unwrap_or_default();
            let said = self.state.commit_words();
            let own = trailers(
                &self.header.name,
                &self.header.id,
                iteration,
                self.state.keeping.round,
            );
            let text = message(
                said,
                plan.task.title.as_deref(),
                &String::from_utf8_lossy(&text),
                &own,
            );
            create_file(&path)?.write_all(text.as_bytes())?;
        }
        let mut order = tree.order(words, &path);
        order
            .env
            .push((orphans::MARK.to_owned(), orphans::mark(&self.header.id)));
        // It may run all that the checks run, by way of a hook.
        let patience = plan.proof.checks.iter().map(|check| check.timeout_ms).max();
        let patience = patience.or(plan
            .worktree
            .as_ref()
            .map(|own| own.commit_timeout_ms)
            .filter(|ms| *ms > 0));
        let terms = Terms {
            log: self.dir.task_log(iteration, task),
            log_cap: plan.log_cap,
            timeout: patience.map(millis),
            silence: None,
            linger: None,
            grace: millis(plan.grace.term_ms),
            survivor: millis(plan.grace.survivor_ms),
        };
        let (command, dir) = (&order.command[..], &order.dir);
        self.world.start(Launch {
            command,
            dir,
            env: &order.env,
            unset: &[],
            stdin: None,
            terminal: None,
            terms,
        })
    }

    pub(super) fn task_gone(
        &mut self,
        iteration: u32,
        task: usize,
        gone: &Gone,
    ) -> Result<(), Error> {
        if !self
            .state
            .orders()
            .contains(&Effect::Commit { iteration, task })
        {
            return Ok(());
        }
        let mut report = TaskReport {
            exit: gone.exit,
            timed_out: gone.timed_out,
            ms: gone.ms,
            ..TaskReport::default()
        };
        if !report.is_good() {
            report.output = last_words(&gone.last_text);
            self.publish_task(iteration, task);
        } else if self.state.task_words(task) == COMMIT
            && let Ok(tree) = self.tree()
        {
            match self.own_commit(&tree, iteration) {
                Some(commit) => report = with_contents(report, &tree, commit),
                // A hook may have rewritten the message. If HEAD is where it was, there was nothing to commit.
                None if head_now(&tree) == self.kept_until(iteration) => {
                    report.skipped = Some(Skip::Empty)
                }
                None => {}
            }
        }
        self.tell(Event::Committed {
            iteration,
            task,
            report,
        })?;
        if !gone.survivors.is_empty() {
            let detail = format!("processes of git outlived KILL: {:?}", gone.survivors);
            self.tell(Event::Faulted {
                class: Fault::Survivors,
                detail,
            })?;
        }
        Ok(())
    }

    fn publish_task(&mut self, iteration: u32, task: usize) {
        let log = self.dir.task_log(iteration, task);
        if let Err(error) = self.task.publish(&log, &Scm::guardrail(iteration, task)) {
            self.watch.warn(&format!(
                "cannot copy a task's output into the workspace: {error}"
            ));
        }
    }
}

fn head_now(tree: &Tree) -> Option<String> {
    Some(tree.head().ok()?.unwrap_or_else(|| UNBORN.to_owned()))
}

fn not_run(why: String) -> TaskReport {
    TaskReport {
        output: why,
        ..TaskReport::default()
    }
}

fn with_contents(report: TaskReport, tree: &Tree, commit: String) -> TaskReport {
    let contents = tree.contents(&commit);
    TaskReport {
        commit: Some(commit),
        subject: Some(contents.subject),
        files: Some(contents.files),
        paths: contents.paths.into_iter().take(3).collect(),
        ..report
    }
}

/// The end of what was printed, line by line without its controls.
fn last_words(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().map(plain).collect();
    let text = lines.join("\n");
    let from = text.chars().count().saturating_sub(OUTPUT_MAX);
    text.chars().skip(from).collect()
}
