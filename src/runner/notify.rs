//! Runs the user's `--notify` command when a runner exits, with the result on its standard input.

use super::job::JobResult;
use super::process_spec::{JobLimits, ProcessSpec};
use super::reactor::{Input, JobKey, Reactor};
use crate::agent::redact::Redactor;
use crate::process::exemptions::Exemptions;
use crate::process::signals;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum running time of the command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of the command's log, in bytes.
const LOG_CAP: u64 = 1 << 20;

/// The notify command to run, and its input.
pub(crate) struct Notification<'a> {
    /// The command line, which `sh -c` runs.
    pub command: &'a str,
    /// The command's working directory.
    pub dir: &'a Path,
    /// The loop's name.
    pub name: &'a str,
    /// A file with the result as JSON, passed to the command as standard input.
    pub input: File,
    /// The same JSON, for the environment variable `RALPH_RESULT`.
    pub result: &'a str,
    /// The path of the file that receives the command's output.
    pub log: PathBuf,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    pub exemptions: Exemptions,
}

/// Runs the command and waits until all its processes have exited. Returns a description of the
/// failure, or `None` on success.
pub(crate) fn run(notification: Notification<'_>) -> Option<String> {
    match run_to_end(notification) {
        Ok(result) => describe_failure(&result),
        Err(error) => Some(format!("it could not be started: {error}")),
    }
}

fn run_to_end(notification: Notification<'_>) -> io::Result<JobResult> {
    let command = ["sh", "-c", notification.command].map(str::to_owned);
    // Unset the iteration and the task directory, so that ralph does not take the command for an
    // agent if this loop runs inside another loop's iteration.
    let env = [
        ("RALPH_LOOP", notification.name),
        ("RALPH_RESULT", notification.result),
        ("RALPH_ITERATION", ""),
        ("RALPH_TASK_DIR", ""),
        ("TASK_FOLDER", ""),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut reactor = Reactor::open(notification.exemptions)?;
    reactor.kill_strays();
    let limits = JobLimits {
        log: notification.log,
        log_cap: LOG_CAP,
        timeout: Some(TIMEOUT),
        inactivity: None,
        linger: None,
        grace: notification.grace,
        survivor: notification.grace,
    };
    let job = reactor.start(
        ProcessSpec {
            command: &command,
            dir: notification.dir,
            env: &env,
            unset: &[],
            stdin: Some(notification.input),
            terminal: None,
            limits,
        },
        &Redactor::from_env(),
    )?;
    reactor.begin(JobKey::Notify, job, None);
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
