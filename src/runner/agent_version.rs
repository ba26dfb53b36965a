//! Finds out the version of the agent's program, once per runner and agent.

use super::Runner;
use super::host::AgentHost;
use super::input::JobKey;
use super::job::JobResult;
use super::process_spec::{JobLimits, ProcessSpec};
use crate::engine::plain_text::clean;
use crate::os::regular_file;
use crate::process::orphans;
use crate::process::version_text::find_version;
use std::fs;
use std::io;
use std::time::Duration;

/// Maximum time that the program may take. The loop waits for it before the first iteration.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time between SIGTERM and SIGKILL, and the time to wait for processes to exit after that.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum size of the program's output, in bytes.
const OUTPUT_MAX: u64 = 16 << 10;

impl Runner<'_> {
    /// Starts the agent's program with the arguments that make it print its version. Returns whether
    /// it did: only presets say which arguments these are, and other programs might begin to work.
    pub(super) fn start_version_probe(&mut self) -> bool {
        let state = &self.rec.state;
        let is_known = self.versions.contains_key(&state.agent_index);
        let is_process = matches!(self.host, AgentHost::Process);
        if is_known || !is_process || state.agent().version.is_empty() {
            return false;
        }
        self.versions.insert(state.agent_index, None);
        // Without a version, the receipt does not name one.
        self.start_version_job().is_ok()
    }

    fn start_version_job(&mut self) -> io::Result<()> {
        let (plan, agent) = (&self.rec.state.plan, self.rec.state.agent());
        let words = agent.command.iter().take(1).chain(&agent.version);
        let words = words.map(|word| self.rec.restore_secrets(word));
        let mut command: Vec<String> = words.collect();
        let marker = orphans::marker(&self.rec.header.id);
        let mut env = self.agent_env();
        env.push((orphans::MARKER_VAR.to_owned(), marker));
        let mut unset = [&agent.unset[..], &agent.held_back].concat();
        // An agent in a sandbox may have changed its own program.
        let sandbox = self.confine(&command)?;
        if let Some(sandbox) = &sandbox {
            command = sandbox.wrap(command);
            env.extend(sandbox.env.iter().cloned());
            unset.extend_from_slice(sandbox.unset);
        }
        let spec = ProcessSpec {
            command: &command,
            dir: &plan.workspace,
            env: &env,
            unset: &unset,
            stdin: None,
            terminal: None,
            view: None,
            sandbox: sandbox.as_ref(),
            limits: JobLimits {
                log: self.rec.dir.version_log(),
                log_cap: OUTPUT_MAX,
                timeout: Some(TIMEOUT),
                inactivity: None,
                linger: None,
                grace: GRACE,
                survivor: GRACE,
            },
        };
        let job = self.reactor.start(spec, &self.rec.redactor)?;
        self.reactor.begin(JobKey::Version, job, None);
        Ok(())
    }

    pub(super) fn version_ended(&mut self, result: &JobResult) {
        let log = self.rec.dir.version_log();
        let output = regular_file::read(&log, OUTPUT_MAX, false);
        let _ = fs::remove_file(&log);
        let Ok((output, _)) = output else { return };
        let text = String::from_utf8_lossy(&output);
        let version = find_version(&clean(&text)).map(str::to_owned);
        let version = version.filter(|_| result.exit.is_success());
        self.versions.insert(self.rec.state.agent_index, version);
    }

    /// Returns the version of the agent that is about to run; `None` if it is not known, or is in the
    /// journal already.
    pub(super) fn new_agent_version(&self) -> Option<String> {
        let state = &self.rec.state;
        let version = self.versions.get(&state.agent_index)?.as_ref()?;
        (state.agent_version() != Some(version)).then(|| version.clone())
    }
}
