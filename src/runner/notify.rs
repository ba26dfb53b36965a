//! Runs the user's `--notify` command, with a description of what happened on its standard input:
//! after a runner's exit, and at the start and the end of a long rest.

use super::clock::millis;
use super::input::{Input, JobKey};
use super::job::JobResult;
use super::process_spec::{JobLimits, ProcessSpec};
use super::reactor::Reactor;
use super::reconcile::Flow;
use super::{Runner, RunnerError};
use crate::agent::redact::Redactor;
use crate::engine::long_rest::{LongRest, RestStage};
use crate::engine::{Event, State};
use crate::os::{program, regular_file};
use crate::process::exemptions::Exemptions;
use crate::process::{orphans, signals};
use crate::store::dir::create_file;
use crate::store::{JournalHeader, LoopDir};
use serde_json::Value;
use std::io::{self, Write};
use std::time::Duration;

/// The maximum running time of the command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of the command's log, in bytes.
const LOG_CAP: u64 = 1 << 20;

/// Builds the command's input for a long rest. The string is the path of the loop's directory.
pub(crate) type RestPayload = fn(&JournalHeader, &State, RestStage, &LongRest, &str) -> Value;

/// The loop to notify of.
pub(crate) struct Notification<'a> {
    pub dir: &'a LoopDir,
    pub header: &'a JournalHeader,
    pub state: &'a State,
    /// The command's input: standard input and the environment variable `RALPH_RESULT`.
    pub payload: &'a Value,
}

impl Notification<'_> {
    /// Runs the command and waits until all its processes have exited. Returns a warning if it
    /// fails.
    pub(crate) fn run(&self, exemptions: Exemptions) -> Option<String> {
        match self.run_to_end(exemptions) {
            Ok(result) => warning(self.dir, self.state, &describe_failure(&result)?),
            Err(error) => warning(self.dir, self.state, &could_not_start(&error)),
        }
    }

    fn run_to_end(&self, exemptions: Exemptions) -> io::Result<JobResult> {
        let mut reactor = Reactor::open(exemptions)?;
        reactor.kill_strays();
        self.start(&mut reactor, None)?;
        loop {
            for input in reactor.wait(None, &mut |_| {}) {
                match input {
                    Input::Signal(signals::SignalEvent::ChildExited) => {}
                    // The user pressed Ctrl-C and does not want to wait for the command.
                    Input::Signal(_) => reactor.stop(true),
                    Input::JobEnded(_, result, _) => return Ok(*result),
                    _ => {}
                }
            }
        }
    }

    /// Starts the command as the reactor's job. `marker` marks its processes as those of the loop,
    /// so that the next runner finds them after a crash.
    fn start(&self, reactor: &mut Reactor, marker: Option<String>) -> io::Result<()> {
        let plan = &self.state.plan;
        let secrets = Redactor::for_plan(plan);
        let mut payload = self.payload.clone();
        secrets.redact_json(&mut payload);
        let command = secrets.restore(plan.notify.as_deref().unwrap_or_default(), &plan.redacted);
        let shell = program::shell().to_string_lossy().into_owned();
        let command = [shell, "-c".to_owned(), command];
        let (path, log, payload) = (
            self.dir.notify_payload(),
            self.dir.notify_log(),
            payload.to_string(),
        );
        writeln!(create_file(&path)?, "{payload}")?;
        create_file(&log)?;
        // Unset the iteration and the task directory, so that ralph does not take the command for
        // an agent if this loop runs inside another loop's iteration.
        let env = [
            ("RALPH_LOOP", &self.header.name[..]),
            ("RALPH_RESULT", &payload),
            ("RALPH_ITERATION", ""),
            ("RALPH_TASK_DIR", ""),
            ("TASK_FOLDER", ""),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let marker = marker.map(|marker| (orphans::MARKER_VAR.to_owned(), marker));
        let env: Vec<(String, String)> = env.into_iter().chain(marker).collect();
        let grace = millis(plan.grace.term_ms);
        let spec = ProcessSpec {
            command: &command,
            dir: &plan.workspace,
            env: &env,
            unset: &[],
            stdin: Some(regular_file::open(&path, false)?),
            terminal: None,
            view: None,
            sandbox: None,
            limits: JobLimits {
                log,
                log_cap: LOG_CAP,
                timeout: Some(TIMEOUT),
                inactivity: None,
                linger: None,
                grace,
                survivor: grace,
            },
        };
        let job = reactor.start(spec, &secrets)?;
        reactor.begin(JobKey::Notify, job, None);
        Ok(())
    }
}

impl Runner<'_> {
    /// Makes the runner run the `--notify` command at the start and the end of a long rest.
    pub(crate) fn notify_rests(mut self, payload: RestPayload) -> Self {
        self.rest_payload = Some(payload);
        self
    }

    /// Records the notification before it starts the command: after a crash, it is lost rather than
    /// repeated.
    pub(super) fn notify_rest(
        &mut self,
        payload: RestPayload,
        stage: RestStage,
        rest: LongRest,
    ) -> Result<Flow, RunnerError> {
        let directory = self.rec.dir.path().display().to_string();
        let payload = payload(&self.rec.header, &self.rec.state, stage, &rest, &directory);
        self.rec.record(Event::Notified { stage, rest })?;
        self.rec.sync()?;
        let notification = Notification {
            dir: &self.rec.dir,
            header: &self.rec.header,
            state: &self.rec.state,
            payload: &payload,
        };
        let marker = orphans::marker(&self.rec.header.id);
        if let Err(error) = notification.start(&mut self.reactor, Some(marker)) {
            self.warn_of_notify(&could_not_start(&error));
        }
        Ok(Flow::Again)
    }

    pub(super) fn notify_ended(&mut self, result: &JobResult) {
        if let Some(problem) = describe_failure(result) {
            self.warn_of_notify(&problem);
        }
    }

    fn warn_of_notify(&mut self, problem: &str) {
        if let Some(warning) = warning(&self.rec.dir, &self.rec.state, problem) {
            self.rec.warn(&warning);
        }
    }
}

/// Returns the warning about a command that failed. `None` if the plan has no command.
fn warning(dir: &LoopDir, state: &State, problem: &str) -> Option<String> {
    let command = state.plan.notify.as_ref()?;
    let log = dir.notify_log();
    Some(format!(
        "--notify {command:?}: {problem}; see {}",
        log.display()
    ))
}

fn could_not_start(error: &io::Error) -> String {
    format!("it could not be started: {error}")
}

fn describe_failure(result: &JobResult) -> Option<String> {
    match result {
        JobResult {
            timed_out: true, ..
        } => Some(format!("it was stopped after {} s", TIMEOUT.as_secs())),
        JobResult { exit, .. } if exit.code == Some(0) => None,
        JobResult { exit, .. } => Some(match (exit.code, exit.signal) {
            (Some(code), _) => format!("it failed (exit {code})"),
            (None, signal) => format!("it was killed (signal {})", signal.unwrap_or(0)),
        }),
    }
}
