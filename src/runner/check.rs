//! Runs a check, and records its result.

use super::clock::millis;
use super::input::JobKey;
use super::job::JobResult;
use super::process_spec::{JobLimits, ProcessSpec};
use super::reconcile::Flow;
use super::test_reporting::TestReporting;
use super::{Runner, RunnerError, prompt};
use crate::engine::event::{CheckReport, Fault};
use crate::engine::failing_lines::{failing_line, fingerprint};
use crate::engine::label::PROBE_MAX_MS;
use crate::engine::plain_text::clean;
use crate::engine::plan::line_pattern;
use crate::engine::weak_check::label_by_one_run;
use crate::engine::{Effect, Event};
use crate::git::{MeasuredContent, path_name};
use crate::os::program;
use crate::proof::FileSnapshot;
use crate::store::dir;
use std::io::Write as _;
use std::path::Path;

/// Number of bytes at the end of a check's output in which failures are looked for.
const READ_MAX: u64 = 1 << 20;

/// The most changed files that an event names.
const NAMED_MAX: usize = 20;

/// The name of the setup command's log.
pub(super) const SETUP_LOG: &str = "setup";

/// Number of bytes at the end of a check's output that `--expect` is compared with.
const MATCH_MAX: u64 = 16 << 20;

/// How many times longer a check may take in the view.
pub(super) const RECHECK_FACTOR: u64 = 3;

impl Runner<'_> {
    pub(super) fn start_check(
        &mut self,
        iteration: u32,
        check: usize,
    ) -> Result<Flow, RunnerError> {
        if check == 0 {
            // Record durably that the iteration ended, before its first check runs.
            self.rec.sync()?;
            if iteration > 0 && !self.rec.state.has_checkpoint() {
                // What the checks write is recognized by comparison with the content before.
                self.snapshot = None;
                if self.measure_content().is_none() && self.is_outside_git() {
                    self.snapshot = FileSnapshot::take(&self.rec.state.plan.workspace).ok();
                }
            }
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
        let planned = &self.rec.state.plan.proof.checks[check];
        let (command, timeout_ms) = (planned.command.clone(), planned.timeout_ms);
        // A view without the files that a build left behind takes longer.
        let slow_ms = timeout_ms.saturating_mul(RECHECK_FACTOR);
        let (in_view, timeout_ms) = match key {
            JobKey::Recheck(..) => (true, slow_ms),
            JobKey::Check(..) if self.rec.state.is_sealed() => (true, slow_ms),
            JobKey::Probe(..) => (true, PROBE_MAX_MS.min(timeout_ms)),
            _ => (false, timeout_ms),
        };
        self.start_shell_job(key, &command, timeout_ms, in_view, log)
    }

    /// Starts the setup command in the view.
    pub(super) fn start_setup(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        let Some(setup) = self.rec.state.plan.proof.setup.clone() else {
            return Ok(Flow::Wait);
        };
        let timeout_ms = setup.timeout_ms.saturating_mul(RECHECK_FACTOR);
        let key = JobKey::SetUp(iteration);
        self.start_shell_job(key, &setup.command, timeout_ms, true, SETUP_LOG)
    }

    /// Starts a shell command of the plan as the job `key`. `log` is the name of its log.
    fn start_shell_job(
        &mut self,
        key: JobKey,
        command: &str,
        timeout_ms: u64,
        in_view: bool,
        log: &str,
    ) -> Result<Flow, RunnerError> {
        if let Err((class, detail)) = self.check_places() {
            self.rec.record_fault(class, detail)?;
            return Ok(Flow::Again);
        }
        let plan = &self.rec.state.plan;
        let iteration = self.rec.state.iteration;
        self.rec.dir.create_iteration_dir(iteration)?;
        let log = self.rec.dir.check_log(iteration, log);
        // Create the log even if the command prints nothing, and truncate the log of an interrupted
        // run.
        let created = dir::create_file(&log);
        let view = self.view.as_ref().filter(|_| in_view);
        let restored = self.rec.restore_secrets(command);
        let reporting = match key {
            JobKey::SetUp(_) => TestReporting::default(),
            _ => TestReporting::for_command(&restored, &plan.workspace, view),
        };
        let timeout_ms = timeout_ms.min(u64::MAX / 4);
        let timeout = self.host.limit_timeout(millis(timeout_ms));
        let shell = program::shell().to_string_lossy();
        let spec = ProcessSpec {
            command: &[&*shell, "-c", &restored].map(str::to_owned),
            dir: &plan.workspace,
            env: &reporting.env,
            unset: &own_variables(),
            stdin: None,
            terminal: None,
            view,
            sandbox: None,
            limits: JobLimits::new(plan, log).with_timeout(Some(timeout)),
        };
        let started = created.and_then(|_| self.reactor.start(spec, &self.rec.redactor));
        match started {
            Ok(job) => {
                self.reporting = reporting;
                self.reactor.begin(key, job, None);
                Ok(Flow::Wait)
            }
            Err(error) => {
                let detail = format!("cannot run `{command}`: {error}");
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
        let is_sealed = self.rec.state.is_sealed();
        if !self.rec.state.orders().contains(&order) {
            if is_sealed {
                self.remove_unneeded_view();
            }
            return Ok(());
        }
        let slug = self.rec.state.plan.proof.checks[check].slug.clone();
        let report = self.check_report(JobKey::Check(iteration, check), check, &slug, result);
        let is_last = self.rec.state.is_last_check(check, &report);
        if is_sealed && is_last {
            // A view can be in the place of the agent's own files.
            self.remove_view();
        }
        let content = is_last.then(|| self.measure_content()).flatten();
        let is_green = report.is_green() && self.rec.state.is_green_before(check);
        let mut written = Vec::new();
        if is_last && is_green && iteration > 0 {
            let snapshot = self.snapshot.as_ref().map(FileSnapshot::written);
            let files = content.as_ref().map(|content| content.changed.clone());
            let files = files.or_else(|| snapshot?.ok()).unwrap_or_default();
            written.extend(name_paths(&files));
        }
        self.rec.record(Event::Checked {
            iteration,
            check,
            report,
            written,
            tree: content.map(|content| content.id),
        })?;
        if is_sealed {
            self.remove_unneeded_view();
        }
        self.record_survivors("a check", &result.survivors)
    }

    /// Publishes the log `slug` of a check that ended, and returns the check's result.
    pub(super) fn check_report(
        &mut self,
        key: JobKey,
        check: usize,
        slug: &str,
        result: &JobResult,
    ) -> CheckReport {
        let iteration = self.rec.state.iteration;
        let log = self.rec.dir.check_log(iteration, slug);
        let plan = &self.rec.state.plan;
        if matches!(result.exit.code, Some(126 | 127)) {
            let command = &plan.proof.checks[check].command;
            explain_start_failure(&log, command, &plan.workspace);
        }
        let (mut report, output) = self.read_report(key, Some(check), &log, result);
        let plan = &self.rec.state.plan;
        let is_held_out = plan.proof.checks[check].is_held_out();
        let published = if is_held_out {
            Ok(())
        } else {
            let name = plan.guardrail_log(iteration, slug);
            self.task_dir.publish_log(&log, &name)
        };
        if let Err(error) = published {
            self.rec.warn(&format!(
                "cannot copy a check's output into the workspace: {error}"
            ));
        }
        if iteration == 0 {
            let command = &self.rec.state.plan.proof.checks[check].command;
            report.label = label_by_one_run(command, &report, &output);
        }
        report
    }

    /// Returns the result of a check or of the setup command, and its cleaned output.
    pub(super) fn read_report(
        &mut self,
        key: JobKey,
        check: Option<usize>,
        log: &Path,
        result: &JobResult,
    ) -> (CheckReport, String) {
        // First, because it removes what the check would not have printed without ralph.
        let tests = check.and_then(|_| self.read_tests(log, result));
        let planned = check.map(|check| &self.rec.state.plan.proof.checks[check]);
        // Secrets are redacted in the pattern as in the log.
        let expect = planned.and_then(|check| check.expect.as_deref());
        let (mut report, output) = read_report(log, result, expect);
        if let (Some(check), Some(tests)) = (check, tests) {
            self.add_tests(key, check, &tests, &mut report);
        }
        (report, output)
    }

    fn is_outside_git(&self) -> bool {
        matches!(self.tree_content(), Ok(None))
    }

    /// Identifies the working tree's content; `None` outside git, or if git fails.
    pub(super) fn measure_content(&mut self) -> Option<MeasuredContent> {
        match self.tree_content().ok().flatten()?.measure() {
            Ok(content) => Some(content),
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

/// Returns the names of the first files.
pub(super) fn name_paths(paths: &[Vec<u8>]) -> impl Iterator<Item = String> {
    paths.iter().take(NAMED_MAX).map(|path| path_name(path))
}

/// Returns the result of a command that ended, without its tests, and its cleaned output. `expect`
/// is the pattern that the output must match.
pub(super) fn read_report(
    log: &Path,
    result: &JobResult,
    expect: Option<&str>,
) -> (CheckReport, String) {
    let mut report = CheckReport {
        exit: result.exit,
        timed_out: result.timed_out,
        ms: result.ms,
        ..CheckReport::default()
    };
    let max = expect.map_or(READ_MAX, |_| MATCH_MAX);
    let (output, _) = prompt::read_end(log, max).unwrap_or_default();
    let output = clean(&output);
    let pattern = expect.and_then(|pattern| line_pattern(pattern).ok());
    if pattern.is_some_and(|pattern| !pattern.is_match(&output)) {
        report.unmatched = expect.map(str::to_owned);
    }
    if !report.is_green() {
        report.fingerprint = Some(fingerprint(&output));
        report.line = failing_line(&output);
    }
    (report, output.into_owned())
}

/// Returns the names of ralph's own environment variables. Checks do not get them: code must not be
/// able to pass only under ralph.
pub(super) fn own_variables() -> Vec<String> {
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
