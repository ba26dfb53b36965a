//! Runs a check, and records its result.

use super::clock::millis;
use super::job::JobResult;
use super::process_spec::{JobLimits, ProcessSpec};
use super::reactor::JobKey;
use super::reconcile::Flow;
use super::{Runner, RunnerError, prompt};
use crate::engine::event::{CheckReport, Fault};
use crate::engine::failing_lines::{failing_line, fingerprint};
use crate::engine::plain_text::clean;
use crate::engine::plan::Check;
use crate::engine::test_counts::TestCounts;
use crate::engine::{Effect, Event};
use crate::os::program;
use crate::store::dir;
use std::io::Write as _;
use std::path::Path;

/// Number of bytes at the end of a check's output in which failures and test counts are looked for.
const READ_MAX: u64 = 1 << 20;

/// How many times longer a check may take in the view.
const RECHECK_FACTOR: u64 = 3;

impl Runner<'_> {
    pub(super) fn start_check(
        &mut self,
        iteration: u32,
        check: usize,
    ) -> Result<Flow, RunnerError> {
        if check == 0 {
            // Record durably that the iteration ended, before its first check runs.
            self.rec.sync()?;
        }
        let slug = self.rec.state.plan.proof.checks[check].slug.clone();
        self.start_check_job(JobKey::Check(iteration, check), check, &slug)
    }

    /// Starts a check as the job `key`. `log` is the name of its log.
    pub(super) fn start_check_job(
        &mut self,
        key: JobKey,
        check: usize,
        log: &str,
    ) -> Result<Flow, RunnerError> {
        if let Err((class, detail)) = self.check_places() {
            self.rec.record_fault(class, detail)?;
            return Ok(Flow::Again);
        }
        let plan = &self.rec.state.plan;
        let Check {
            command,
            timeout_ms,
            ..
        } = &plan.proof.checks[check];
        let iteration = self.rec.state.iteration;
        self.rec.dir.create_iteration_dir(iteration)?;
        let log = self.rec.dir.check_log(iteration, log);
        // Create the log even if the check prints nothing, and truncate the log of an interrupted
        // run.
        let created = dir::create_file(&log);
        // A view without the files that a build left behind takes longer.
        let (view, factor) = match key {
            JobKey::Recheck(..) => (self.view.as_ref(), RECHECK_FACTOR),
            _ => (None, 1),
        };
        let timeout_ms = timeout_ms.saturating_mul(factor).min(u64::MAX / 4);
        let timeout = self.host.limit_timeout(millis(timeout_ms));
        let shell = program::shell().to_string_lossy();
        let spec = ProcessSpec {
            command: &[&*shell, "-c", &self.rec.restore_secrets(command)].map(str::to_owned),
            dir: &plan.workspace,
            env: &[],
            unset: &own_variables(),
            stdin: None,
            terminal: None,
            view,
            limits: JobLimits::new(plan, log).with_timeout(Some(timeout)),
        };
        let started = created.and_then(|_| self.reactor.start(spec, &self.rec.redactor));
        match started {
            Ok(job) => {
                self.reactor.begin(key, job, None);
                Ok(Flow::Wait)
            }
            Err(error) => {
                let detail = format!("cannot run the check `{command}`: {error}");
                let class = if plan.workspace.is_dir() {
                    Fault::Disk
                } else {
                    Fault::Workspace
                };
                self.rec.record_fault(class, detail)?;
                Ok(Flow::Again)
            }
        }
    }

    pub(super) fn check_ended(
        &mut self,
        iteration: u32,
        check: usize,
        result: &JobResult,
    ) -> Result<(), RunnerError> {
        let order = Effect::Check { iteration, check };
        if !self.rec.state.orders().contains(&order) {
            return Ok(());
        }
        let slug = self.rec.state.plan.proof.checks[check].slug.clone();
        let report = self.check_report(iteration, check, &slug, result);
        let is_last = check + 1 == self.rec.state.checks.len();
        let tree = is_last.then(|| self.content_id()).flatten();
        self.rec.record(Event::Checked {
            iteration,
            check,
            report,
            tree,
        })?;
        self.record_survivors("a check", &result.survivors)
    }

    /// Publishes the log `slug` of a check that ended, and returns the check's result.
    pub(super) fn check_report(
        &mut self,
        iteration: u32,
        check: usize,
        slug: &str,
        result: &JobResult,
    ) -> CheckReport {
        let plan = &self.rec.state.plan;
        let command = &plan.proof.checks[check].command;
        let log = self.rec.dir.check_log(iteration, slug);
        if matches!(result.exit.code, Some(126 | 127)) {
            explain_start_failure(&log, command, &plan.workspace);
        }
        let published = self
            .task_dir
            .publish_log(&log, &plan.guardrail_log(iteration, slug));
        if let Err(error) = published {
            self.rec.warn(&format!(
                "cannot copy a check's output into the workspace: {error}"
            ));
        }
        let mut report = CheckReport {
            exit: result.exit,
            timed_out: result.timed_out,
            ms: result.ms,
            ..CheckReport::default()
        };
        let (output, _) = prompt::read_end(&log, READ_MAX).unwrap_or_default();
        let output = clean(&output);
        report.tests = TestCounts::read(&output);
        if !report.is_green() {
            report.fingerprint = Some(fingerprint(&output));
            report.line = failing_line(&output);
        }
        report
    }

    /// Returns the ID of the working tree's content; `None` outside git, or if git fails.
    pub(super) fn content_id(&mut self) -> Option<String> {
        match self.tree_content().ok().flatten()?.id() {
            Ok(id) => Some(id),
            Err(error) => {
                self.rec
                    .warn(&format!("cannot tell whether files have changed: {error}"));
                None
            }
        }
    }

    /// Records a fault if some of a job's processes are alive after SIGKILL. `survivors` are their
    /// pids.
    pub(super) fn record_survivors(
        &mut self,
        job: &str,
        survivors: &[u32],
    ) -> Result<(), RunnerError> {
        if survivors.is_empty() {
            return Ok(());
        }
        let detail = format!("processes of {job} are still alive after SIGKILL: {survivors:?}");
        self.rec.record_fault(Fault::Survivors, detail)
    }
}

/// Returns the names of ralph's own environment variables. Checks do not get them: code must not be
/// able to pass only under ralph.
fn own_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names
        .filter(|name| name.starts_with("RALPH_") || name == "TASK_FOLDER")
        .collect()
}

/// Adds a line to a check's log if the check's program is a script without an interpreter: most
/// shells report that the script itself does not exist.
fn explain_start_failure(log: &Path, command: &str, workspace: &Path) {
    let program = command.split_whitespace().next().unwrap_or_default();
    let why = program::find(program, workspace)
        .and_then(|path| program::missing_interpreter(&path, workspace));
    if let Some(why) = why {
        // The log is complete without this line.
        let _ = dir::append_file(log).and_then(|mut log| writeln!(log, "ralph: {program}: {why}"));
    }
}
