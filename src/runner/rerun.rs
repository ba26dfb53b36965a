//! Runs checks in a view, outside any loop.

use super::check::{RECHECK_FACTOR, own_variables, read_report};
use super::input::{Input, JobKey};
use super::process_spec::{JobLimits, ProcessSpec};
use super::reactor::Reactor;
use super::test_reporting::TestReporting;
use crate::agent::redact::Redactor;
use crate::engine::event::CheckReport;
use crate::os::program;
use crate::process::exemptions::Exemptions;
use crate::process::signals::SignalEvent;
use crate::proof::view::View;
use crate::store::dir::create_file;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between SIGTERM and SIGKILL, and the time to wait for processes to exit after that.
const GRACE: Duration = Duration::from_secs(5);
/// The maximum time that a check may take. It is too long to expire, and short enough to add to a
/// clock without overflow.
const TIMEOUT_MAX: Duration = Duration::from_millis(u64::MAX / 4);
/// The maximum size of a check's log, in bytes.
const LOG_CAP: u64 = 64 << 20;

/// Runs checks one after the other.
pub(crate) struct CheckRunner {
    reactor: Reactor,
    redactor: Redactor,
}

/// A check to run.
pub(crate) struct CheckRun<'a> {
    pub(crate) command: &'a str,
    /// The pattern that its output must match; `None` if the exit code is enough.
    pub(crate) expect: Option<&'a str>,
    pub(crate) timeout: Duration,
    /// The workspace.
    pub(crate) dir: &'a Path,
    pub(crate) view: &'a View,
    /// The file that receives the check's output.
    pub(crate) log: PathBuf,
}

/// How a run ended.
pub(crate) enum CheckEnd {
    Ended(Box<CheckReport>),
    /// A signal asked this process to end.
    Interrupted,
}

impl CheckRunner {
    /// Creates a runner whose processes are marked with this ID, so that they can be found if this
    /// process is killed.
    pub(crate) fn open(id: &str, exemptions: Exemptions, redactor: Redactor) -> io::Result<Self> {
        let runner = Self {
            reactor: Reactor::open(exemptions)?,
            redactor,
        };
        runner.reactor.scope().mark_processes(id);
        Ok(runner)
    }

    /// Runs a check until all its processes have exited.
    pub(crate) fn run(&mut self, check: &CheckRun<'_>) -> io::Result<CheckEnd> {
        create_file(&check.log)?;
        let shell = program::shell().to_string_lossy().into_owned();
        let log = check.log.clone();
        let reporting = TestReporting::for_command(check.command, check.dir, Some(check.view));
        let spec = ProcessSpec {
            command: &[shell, "-c".to_owned(), check.command.to_owned()],
            dir: check.dir,
            env: &reporting.env,
            unset: &own_variables(),
            stdin: None,
            terminal: None,
            view: Some(check.view),
            sandbox: None,
            limits: JobLimits {
                log: check.log.clone(),
                log_cap: LOG_CAP,
                timeout: Some(
                    check
                        .timeout
                        .saturating_mul(RECHECK_FACTOR as u32)
                        .min(TIMEOUT_MAX),
                ),
                inactivity: None,
                linger: None,
                grace: GRACE,
                survivor: GRACE,
            },
        };
        let job = self.reactor.start(spec, &self.redactor)?;
        self.reactor.begin(JobKey::Recheck(0, 0), job, None);
        let mut is_interrupted = false;
        loop {
            for input in self.reactor.wait(None, &mut |_| {}) {
                match input {
                    Input::Signal(
                        SignalEvent::Interrupt | SignalEvent::Terminate | SignalEvent::HangUp,
                    ) => {
                        // A second signal means that the user does not want to wait.
                        self.reactor.stop(is_interrupted);
                        is_interrupted = true;
                    }
                    Input::JobEnded(..) if is_interrupted => return Ok(CheckEnd::Interrupted),
                    Input::JobEnded(_, result, _) => {
                        // First, because it removes what was printed only for this.
                        let tests = reporting.read(&log, result.bytes > LOG_CAP)?;
                        let (mut report, _) = read_report(&log, &result, check.expect);
                        report.tests = tests.counts;
                        return Ok(CheckEnd::Ended(Box::new(report)));
                    }
                    _ => {}
                }
            }
        }
    }
}
