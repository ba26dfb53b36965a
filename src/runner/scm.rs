//! Runs SCM tasks, such as commits. A task that was completed before a crash is recognized and not
//! repeated.

use super::check::name_paths;
use super::clock::millis;
use super::input::JobKey;
use super::job::{Job, JobResult};
use super::process_spec::{JobLimits, ProcessSpec};
use super::prompt::read_task;
use super::reconcile::Flow;
use super::{Runner, RunnerError};
use crate::engine::commit_message::{commit_message, trailers};
use crate::engine::event::ProcessExit;
use crate::engine::graded::name_files;
use crate::engine::plain_text::clean;
use crate::engine::plan::Scm;
use crate::engine::scm::{CommitTask, ScmTaskReport, SkipReason};
use crate::engine::touched::TouchedFiles;
use crate::engine::work_elsewhere::{MovedHead, WorkElsewhere};
use crate::engine::{Effect, Event};
use crate::git::{WorkingTree, WorkingTreeError, locks, path_name};
use crate::os::regular_file;
use crate::process::orphans;
use crate::store::dir::{append_file, create_file};
use std::io::{self, Write};

/// Only the last `OUTPUT_CHARS` characters of a failed task's output are recorded in the journal.
const OUTPUT_CHARS: usize = 600;

/// The content of the saved HEAD file if the repository has no commit yet.
const UNBORN: &str = "none";

impl Runner<'_> {
    /// Saves HEAD at the start of an iteration, before the agent can move it.
    pub(super) fn save_head(&self, iteration: u32) {
        let plan = &self.rec.state.plan;
        if plan.scm.tasks.is_empty() && plan.worktree.is_none() {
            return;
        }
        let head = self.working_tree().ok().and_then(|tree| head_of(&tree));
        if let Some(head) = head {
            // Ignore errors: without the file, ralph assumes that the iteration changed something.
            let _ = self.rec.dir.create_iteration_dir(iteration).map(|_| {
                create_file(&self.rec.dir.head_file(iteration))
                    .and_then(|mut file| file.write_all(head.as_bytes()))
            });
        }
    }

    /// Returns the commit that HEAD pointed to at the start of an iteration. `None` if it was not
    /// saved.
    fn head_before(&self, iteration: u32) -> Option<String> {
        let path = self.rec.dir.head_file(iteration);
        let (bytes, _) = regular_file::read(&path, 256, false).ok()?;
        // A power failure can leave an empty file.
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|head| !head.is_empty())
    }

    /// Returns the commit that precedes the work of this round of tasks: HEAD at the start of the
    /// iteration or, if child loops worked after the iteration, the iteration's last commit.
    fn round_base(&self, iteration: u32) -> Option<String> {
        let scm = &self.rec.state.scm;
        let newest = scm.newest_commit.clone().filter(|_| scm.round > 0);
        newest.or_else(|| self.head_before(iteration))
    }

    fn working_tree(&self) -> Result<WorkingTree, WorkingTreeError> {
        let plan = &self.rec.state.plan;
        let command = plan.scm.command.iter();
        let command: Vec<String> = command.map(|arg| self.rec.restore_secrets(arg)).collect();
        let tree = WorkingTree::find(&command, &plan.workspace)?;
        // In a worktree that lost its link, git would use a repository in a parent directory.
        match &plan.worktree {
            Some(own) if !tree.is_at(&own.path) => Err(WorkingTreeError::NotARepository),
            _ => Ok(tree.with_filters()),
        }
    }

    pub(super) fn start_scm_task(
        &mut self,
        iteration: u32,
        task: usize,
    ) -> Result<Flow, RunnerError> {
        // Make the green checks durable before committing what they prove.
        self.rec.sync()?;
        if let Err((class, detail)) = self.check_places() {
            self.rec.record_fault(class, detail)?;
            return Ok(Flow::Again);
        }
        self.remove_left_locks();
        let log = self.rec.dir.scm_task_log(iteration, task);
        self.rec.dir.create_iteration_dir(iteration)?;
        let created = create_file(&log);
        let report = match self.working_tree() {
            Ok(tree) => match self.known_result(&tree, iteration, task) {
                Some(report) => {
                    let mut report = self.compare_with_graded(&tree, task, report);
                    // The files may have changed since a crash: commit the rest as well.
                    if !self.rec.state.has_graded_rewritten_files() {
                        report.rewritten.append(&mut report.differs);
                    }
                    explain_difference(&mut report);
                    report
                }
                None => match created.and_then(|_| self.spawn_scm_task(&tree, iteration, task)) {
                    Ok(job) => {
                        self.reactor
                            .begin(JobKey::ScmTask(iteration, task), job, None);
                        return Ok(Flow::Wait);
                    }
                    Err(error) => not_run(error.to_string()),
                },
            },
            Err(WorkingTreeError::GitNotInstalled) => not_run("git is no longer in PATH".into()),
            Err(WorkingTreeError::NotARepository | WorkingTreeError::Bare) => {
                not_run("the workspace is no longer in a git working tree".into())
            }
            Err(WorkingTreeError::GitFailed(why)) => not_run(why),
        };
        if !report.is_success() {
            let why = self.rec.redactor.redact_text(&report.output);
            let _ = regular_file::create(&log).and_then(|mut file| writeln!(file, "{why}"));
            self.publish_scm_log(iteration, task);
        }
        self.rec.record(Event::Committed {
            iteration,
            task,
            report,
        })?;
        Ok(Flow::Again)
    }

    /// Returns the result of a task that need not run, because there is nothing to do or because it
    /// was completed before a crash. `None` if the task must run.
    fn known_result(
        &self,
        tree: &WorkingTree,
        iteration: u32,
        task: usize,
    ) -> Option<ScmTaskReport> {
        let before = self.round_base(iteration);
        let skipped = |why| ScmTaskReport {
            skipped: Some(why),
            ..ScmTaskReport::default()
        };
        let is_commit = CommitTask::parse(self.rec.state.scm_task_args(task)).is_some();
        // The message file is written right before the commit. If the file is missing, a commit
        // with the loop's trailer is a copy, such as a cherry-pick.
        let may_be_done = is_commit && self.rec.dir.commit_message(iteration).exists();
        if may_be_done && let Some(commit) = self.own_commit(tree, iteration) {
            let made = ScmTaskReport {
                exit: ProcessExit::from_code(0),
                ..ScmTaskReport::default()
            };
            return Some(self.with_commit(made, tree, commit));
        }
        let changes = tree.changes().ok().filter(|_| task == 0 || is_commit);
        let is_clean = changes
            .as_ref()
            .is_some_and(|changes| changes.files.is_empty());
        let elsewhere = if is_clean && is_commit {
            self.work_elsewhere(tree)
        } else {
            WorkElsewhere::default()
        };
        // A task that an earlier iteration left unfinished must run even if this iteration changed
        // nothing.
        let may_skip = is_clean && task == 0 && !self.rec.state.scm.unfinished && before.is_some();
        if may_skip && elsewhere.not_committed().is_none() && before == head_of(tree) {
            return Some(ScmTaskReport {
                elsewhere,
                ..skipped(SkipReason::Unchanged)
            });
        }
        (is_clean && is_commit).then(|| ScmTaskReport {
            elsewhere,
            ..skipped(SkipReason::Empty)
        })
    }

    /// Returns the work that commits do not contain, or that is on another branch than the
    /// worktree's. What was so before the loop is left out: it is not the agent's work.
    fn work_elsewhere(&self, tree: &WorkingTree) -> WorkElsewhere {
        let worktree = self.rec.state.plan.worktree.as_ref();
        let base = self.prompts.base();
        let changes = tree.changes().unwrap_or_default();
        let mut nested: Vec<String> = changes.nested.iter().map(|path| path_name(path)).collect();
        nested.retain(|path| base.map_or(worktree.is_some(), |base| base.is_new_nested(path)));
        let start = match worktree {
            Some(worktree) => Some(worktree.base.clone()),
            None => self.head_before(1).filter(|head| head != UNBORN),
        };
        let recorded = start.and_then(|start| tree.recorded_nested(&start).ok());
        nested.extend(recorded.iter().flatten().map(|path| path_name(path)));
        nested.sort_unstable();
        nested.dedup();
        let mut submodules = changes.dirty_submodules;
        submodules
            .retain(|path| !nested.contains(path) && base.is_none_or(|base| !base.was_dirty(path)));
        let branch = tree.current_branch();
        let left = worktree.filter(|own| branch.as_deref() != Some(&own.branch));
        let head = left.map(|own| MovedHead {
            commit: tree.head_commit().ok().flatten().unwrap_or_default(),
            left: tree.count_left_commits(&own.branch, &own.base),
            branch,
        });
        WorkElsewhere {
            nested,
            submodules,
            head,
        }
    }

    /// Returns the ID of the commit that this iteration made, found by its trailer.
    fn own_commit(&self, tree: &WorkingTree, iteration: u32) -> Option<String> {
        let [_, own] = self.trailers(iteration);
        let since = self.head_before(iteration).filter(|head| head != UNBORN);
        tree.find_commit_with_trailer(&own, since.as_deref())
    }

    fn trailers(&self, iteration: u32) -> [String; 2] {
        let header = &self.rec.header;
        trailers(
            &header.name,
            &header.id,
            iteration,
            self.rec.state.scm.round,
        )
    }

    fn spawn_scm_task(
        &mut self,
        tree: &WorkingTree,
        iteration: u32,
        task: usize,
    ) -> io::Result<Job> {
        let (state, plan) = (&self.rec.state, &self.rec.state.plan);
        let path = self.rec.dir.commit_message(iteration);
        let pathspecs = self.rec.dir.commit_pathspecs(iteration);
        let args = self.rec.restore_secrets(state.scm_task_args(task));
        if let Some(commit) = CommitTask::parse(&args) {
            let task_text = read_task(&self.rec).unwrap_or_default();
            let text = commit_message(
                commit
                    .message
                    .as_deref()
                    .or_else(|| state.requested_commit_message()),
                plan.task.title.as_deref(),
                &String::from_utf8_lossy(&task_text),
                &self.trailers(iteration),
            );
            create_file(&pathspecs)?.write_all(&tree.commit_pathspecs())?;
            let text = self.rec.redactor.redact_text(&text);
            create_file(&path)?.write_all(text.as_bytes())?;
        }
        let mut command = tree.task_command(&args, &path, &pathspecs);
        command.env.push((
            orphans::MARKER_VAR.to_owned(),
            orphans::marker(&self.rec.header.id),
        ));
        // A git hook may run the same commands as the checks.
        let timeout_ms = plan.proof.checks.iter().map(|check| check.timeout_ms).max();
        let timeout_ms = timeout_ms.or_else(|| {
            let own = plan.worktree.as_ref()?;
            Some(own.commit_timeout_ms).filter(|ms| *ms > 0)
        });
        let log = self.rec.dir.scm_task_log(iteration, task);
        let spec = ProcessSpec {
            command: &command.command,
            dir: &command.dir,
            env: &command.env,
            unset: &[],
            stdin: None,
            terminal: None,
            view: None,
            sandbox: None,
            limits: JobLimits::new(plan, log).with_timeout(timeout_ms.map(millis)),
        };
        self.reactor.start(spec, &self.rec.redactor)
    }

    pub(super) fn scm_task_ended(
        &mut self,
        iteration: u32,
        task: usize,
        result: &JobResult,
    ) -> Result<(), RunnerError> {
        let order = Effect::ScmTask { iteration, task };
        if !self.rec.state.orders().contains(&order) {
            return Ok(());
        }
        let mut report = ScmTaskReport {
            exit: result.exit,
            timed_out: result.timed_out,
            ms: result.ms,
            ..ScmTaskReport::default()
        };
        if !report.is_success() {
            report.output = tail_of(&result.tail_text);
            let left = self.working_tree().map(|tree| tree.left_locks());
            if let Some(advice) = locks::advice(&left.unwrap_or_default()) {
                self.rec.warn(&advice);
                report.output = format!("{advice}\n{}", report.output);
            }
            self.publish_scm_log(iteration, task);
        } else if CommitTask::parse(self.rec.state.scm_task_args(task)).is_some()
            && let Ok(tree) = self.working_tree()
        {
            match self.own_commit(&tree, iteration) {
                Some(commit) => report = self.with_commit(report, &tree, commit),
                // No commit has the trailer: either a hook rewrote the message, or there was
                // nothing to commit and HEAD has not moved.
                None if head_of(&tree) == self.round_base(iteration) => {
                    report.skipped = Some(SkipReason::Empty);
                    report.elsewhere = self.work_elsewhere(&tree);
                }
                None => report.elsewhere = self.work_elsewhere(&tree),
            }
            report = self.compare_with_graded(&tree, task, report);
            explain_difference(&mut report);
            if !report.is_success() {
                let log = self.rec.dir.scm_task_log(iteration, task);
                let why = self.rec.redactor.redact_text(&report.output);
                // The report has the reason too.
                let _ = append_file(&log).and_then(|mut log| writeln!(log, "{why}"));
                self.publish_scm_log(iteration, task);
            }
        }
        self.rec.record(Event::Committed {
            iteration,
            task,
            report,
        })?;
        self.record_survivors("git", &result.survivors)
    }

    /// Adds the files in which the newest commit differs from what the checks graded: a git hook can
    /// change what is committed, and index flags can hide changes from git.
    fn compare_with_graded(
        &mut self,
        tree: &WorkingTree,
        task: usize,
        mut report: ScmTaskReport,
    ) -> ScmTaskReport {
        let state = &self.rec.state;
        let graded = state.content.now.clone();
        let Some(graded) = graded.filter(|_| state.commits_graded_files(task)) else {
            return report;
        };
        if !report.is_success() {
            return report;
        }
        let now = self.measure_content();
        if let Some(now) = now.filter(|now| now.id != graded) {
            report.rewritten = name_paths(&now.changed).collect();
        }
        if !report.rewritten.is_empty() && !self.rec.state.has_graded_rewritten_files() {
            return report;
        }
        let Ok(Some(head)) = tree.head_commit() else {
            return report;
        };
        let content = self.tree_content().ok().flatten();
        // A filter that the agent has set can put anything into a commit.
        let touched = self.rec.state.look.touched.as_ref();
        let converts = !touched.is_some_and(TouchedFiles::may_convert_otherwise);
        match content.map(|content| content.missing_in_commit(&graded, &head, tree, converts)) {
            Some(Ok(paths)) => report.differs = name_paths(&paths).collect(),
            // A commit that cannot be compared may contain anything.
            Some(Err(why)) => {
                return not_run(format!(
                    "the commit cannot be compared with the files that the checks graded: {why}"
                ));
            }
            None => {}
        }
        report
    }

    fn with_commit(
        &self,
        report: ScmTaskReport,
        tree: &WorkingTree,
        commit: String,
    ) -> ScmTaskReport {
        let summary = tree.commit_summary(&commit);
        ScmTaskReport {
            commit: Some(commit),
            subject: Some(summary.subject),
            files: Some(summary.files),
            paths: summary.paths.into_iter().take(3).collect(),
            elsewhere: self.work_elsewhere(tree),
            ..report
        }
    }

    fn publish_scm_log(&mut self, iteration: u32, task: usize) {
        let log = self.rec.dir.scm_task_log(iteration, task);
        let plan = &self.rec.state.plan;
        let name = plan.guardrail_log(iteration, &Scm::slug(task));
        if let Err(error) = self.task_dir.publish_log(&log, &name) {
            self.rec.warn(&format!(
                "cannot copy an SCM task's output into the workspace: {error}"
            ));
        }
    }
}

fn head_of(tree: &WorkingTree) -> Option<String> {
    Some(
        tree.head_commit()
            .ok()?
            .unwrap_or_else(|| UNBORN.to_owned()),
    )
}

/// Says why a commit that differs from what the checks graded counts as failed.
fn explain_difference(report: &mut ScmTaskReport) {
    if !report.differs.is_empty() {
        report.skipped = None;
        report.output = format!(
            "the commit differs from the files that the checks graded: {}. A git hook, a filter or \
             a flag in git's index may have changed it.",
            name_files(&report.differs)
        );
    }
}

fn not_run(why: String) -> ScmTaskReport {
    ScmTaskReport {
        output: why,
        ..ScmTaskReport::default()
    }
}

/// Returns the end of a task's output, without control characters.
fn tail_of(text: &str) -> String {
    let text = clean(text.trim());
    let skipped = text.chars().count().saturating_sub(OUTPUT_CHARS);
    text.chars().skip(skipped).collect()
}
