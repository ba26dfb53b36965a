//! Starts an iteration's agent, and records how it ended.

use super::clock::millis;
use super::host::AgentHost;
use super::input::JobKey;
use super::job::{Job, JobResult};
use super::process_spec::{JobLimits, ProcessSpec};
use super::reconcile::Flow;
use super::{Runner, RunnerError};
use crate::agent::function::CallRequest;
use crate::agent::pipeline::{AgentOutput, OutputPipeline, OutputTail};
use crate::agent::redact::Redactor;
use crate::agent::script;
use crate::engine::event::{AgentReport, Fault, Marker};
use crate::engine::plan::{PromptDelivery, Sandbox};
use crate::engine::usage::Tokens;
use crate::engine::{Event, ProcessIdentity, format};
use crate::os::{program, regular_file};
use crate::process::{orphans, tree};
use crate::sandbox::hooks::SandboxHooks;
use crate::sandbox::{Confinement, SandboxRequest};
use crate::terminal::emulator::TerminalOptions;
use regex::Regex;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

impl Runner<'_> {
    /// Prepares an iteration. If its prompt is already prepared, starts the agent instead.
    pub(super) fn run_iteration(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        if self.start_version_probe() {
            return Ok(Flow::Wait);
        }
        let answers = self.rec.state.answers.len();
        match self.prompts.take_prepared(iteration, answers) {
            Some(prompt) => self.start_iteration(iteration, prompt),
            None => self.prepare_iteration(iteration),
        }
    }

    /// Checks the workspace and builds the prompt. Both take time: the runner records the input
    /// that arrives meanwhile before it starts the agent, because that input can change the orders
    /// or the prompt.
    fn prepare_iteration(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        let prepared = self.check_workspace().and_then(|()| {
            self.check_disk()?;
            let messages = self.bus.excerpt(&self.rec);
            let prompt = self.prompts.build(&self.rec, messages)?;
            self.prompts.prepare(&self.rec, iteration, prompt)
        });
        if let Err((class, detail)) = prepared {
            self.rec.record_fault(class, detail)?;
            return Ok(Flow::Again);
        }
        self.save_head(iteration);
        self.reactor.kill_strays();
        if self.reactor.may_miss_changes() {
            self.reactor.look_within(std::time::Duration::ZERO);
        }
        Ok(Flow::Poll)
    }

    fn start_iteration(&mut self, iteration: u32, prompt: File) -> Result<Flow, RunnerError> {
        // The child loops of an earlier wait may have ended since.
        self.children = None;
        let has_fallback = !self.rec.state.plan.fallback.is_empty();
        let agent = has_fallback.then(|| self.rec.state.agent().name.clone());
        // With preflight, the content at the start is known already.
        let state = &self.rec.state;
        let is_first = iteration == 1 && !state.checks.is_empty() && state.content.now.is_none();
        let content = is_first.then(|| self.measure_content()).flatten();
        let tree = content.map(|content| content.id);
        let baseline = match (iteration == 1).then(|| self.take_baseline()).transpose() {
            Ok(baseline) => baseline.flatten(),
            Err((class, detail)) => {
                self.rec.record_fault(class, detail)?;
                return Ok(Flow::Again);
            }
        };
        self.rec.record(Event::Started {
            iteration,
            agent,
            tree,
            baseline,
            version: self.new_agent_version(),
        })?;
        if self.rec.is_disk_full() {
            return Ok(Flow::Again);
        }
        self.rec.sync()?;
        if let Some(caller) = self.host.session() {
            // The client already runs the agent, and passes it the prompt from the hook's response.
            let process = caller.process.unwrap_or_default();
            return self.iteration_started(iteration, process);
        }
        match self.start_agent(iteration, prompt) {
            Ok(job) => {
                let pid = job.pid();
                let profile = &self.profiles[self.rec.state.agent_index];
                let pipeline = OutputPipeline::new(
                    profile,
                    &self.rec.state,
                    self.prompts.bytes(),
                    &self.rec.redactor,
                );
                self.reactor
                    .begin(JobKey::Agent(iteration), job, Some(pipeline));
                let start_time = tree::start_time(pid).unwrap_or(0);
                self.iteration_started(iteration, ProcessIdentity { pid, start_time })
            }
            Err(error) => {
                self.record_start_failure(iteration, &error)?;
                Ok(Flow::Again)
            }
        }
    }

    fn iteration_started(
        &mut self,
        iteration: u32,
        process: ProcessIdentity,
    ) -> Result<Flow, RunnerError> {
        self.rec.record(Event::Spawned {
            iteration,
            pid: process.pid,
            start_time: process.start_time,
        })?;
        if let Err(error) = self.prompts.keep(&self.rec.dir, iteration) {
            self.rec
                .record_fault(Fault::Disk, format!("cannot save the prompt: {error}"))?;
        }
        if self.host.session().is_none() {
            self.rec.begin_activity(iteration);
        }
        Ok(Flow::Again)
    }

    fn start_agent(&mut self, iteration: u32, prompt: File) -> io::Result<Job> {
        let (plan, agent) = (&self.rec.state.plan, self.rec.state.agent());
        let log = self.rec.dir.output_log(iteration);
        let mut limits = JobLimits::new(plan, log);
        limits.inactivity = plan.limits.inactivity_ms.map(millis);
        limits.linger = agent
            .dialect
            .is_stream()
            .then(|| millis(plan.grace.linger_ms));
        let task_dir = self.task_dir.path();
        if let AgentHost::Function(function) = &self.host {
            let request = CallRequest {
                prompt: String::from_utf8_lossy(self.prompts.bytes()).into_owned(),
                iteration,
                workspace: plan.workspace.clone(),
                task_dir: task_dir.to_owned(),
            };
            return self
                .reactor
                .call(function, request, limits, &self.rec.redactor);
        }
        let typed: Vec<String> = agent
            .command
            .iter()
            .map(|word| self.rec.restore_secrets(word))
            .collect();
        let mut command = script::resolve_command(&typed);
        command.extend(self.budget_args());
        let stdin = match agent.prompt {
            _ if agent.terminal => None,
            PromptDelivery::Stdin => Some(prompt),
            PromptDelivery::Argument => {
                // The task may contain NUL, but an argument must not.
                command.push(String::from_utf8_lossy(self.prompts.bytes()).replace('\0', ""));
                None
            }
            PromptDelivery::File => {
                let path = self.prompts.path(&self.rec.dir);
                command.push(path.display().to_string());
                None
            }
        };
        let task_dir = task_dir.to_string_lossy().into_owned();
        let env = [
            ("RALPH_LOOP", self.rec.header.name.clone()),
            ("RALPH_ITERATION", iteration.to_string()),
            ("RALPH_TASK_DIR", task_dir.clone()),
            ("TASK_FOLDER", task_dir),
            (orphans::MARKER_VAR, orphans::marker(&self.rec.header.id)),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value));
        let env: Vec<(String, String)> = self.agent_env().into_iter().chain(env).collect();
        let unset = [&agent.unset[..], &agent.held_back].concat();
        let sandbox = self.confine(&command)?;
        let (mut env, mut unset) = (env, unset);
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
            stdin,
            terminal: agent.terminal.then(|| self.terminal_options()),
            view: None,
            sandbox: sandbox.as_ref(),
            limits,
        };
        self.reactor.start(spec, &self.rec.redactor)
    }

    /// Returns the environment variables that the plan sets for the agent.
    pub(super) fn agent_env(&self) -> Vec<(String, String)> {
        let env = self.rec.state.agent().env.iter();
        env.map(|(name, value)| (name.clone(), self.rec.restore_secrets(value)))
            .collect()
    }

    /// Prepares the sandbox for the agent's command; `None` if the plan has none.
    pub(super) fn confine(&self, command: &[String]) -> io::Result<Option<Confinement>> {
        let plan = &self.rec.state.plan;
        let Some(kind) = plan.sandbox else {
            return Ok(None);
        };
        let program = command.first().map(String::as_str).unwrap_or_default();
        // Inside the sandbox, a missing program would only be a failed iteration.
        let program = program::find(program, &plan.workspace).ok_or(io::ErrorKind::NotFound)?;
        if !program::is_executable(&program) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let loops = self.rec.dir.path().parent();
        let files = command.iter().skip(1).map(PathBuf::from);
        let files = files.filter(|path| path.is_absolute());
        let request = SandboxRequest {
            kind,
            workspace: &plan.workspace,
            state_dir: loops.and_then(Path::parent).unwrap_or(Path::new("/")),
            agent: self.rec.state.agent(),
            files: [program, script::this_program()]
                .into_iter()
                .chain(files)
                .collect(),
            caches: self.task_dir.path().join("cache"),
        };
        request.create_dirs();
        if kind == Sandbox::Bwrap {
            let create = || SandboxHooks::create(&plan.workspace, &self.rec.dir.created_hooks());
            self.hooks.get_or_init(create);
        }
        Ok(Some(Confinement::prepare(&request)?))
    }

    /// Returns the arguments that limit the agent's spending to the dollars left under the cost
    /// limit. Empty if the loop has no cost limit.
    fn budget_args(&self) -> Vec<String> {
        let state = &self.rec.state;
        let Some(max) = state.plan.limits.cost_usd else {
            return Vec::new();
        };
        let left = format!("{:.4}", (max - state.cost_usd).max(0.0001));
        let args = state.agent().budget.iter();
        args.map(|arg| arg.replace("{usd}", &left)).collect()
    }

    fn terminal_options(&self) -> TerminalOptions {
        let (plan, agent) = (&self.rec.state.plan, self.rec.state.agent());
        let pattern = |text: Option<&str>| text.and_then(|text| Regex::new(text).ok());
        TerminalOptions {
            prompt: String::from_utf8_lossy(self.prompts.bytes()).into_owned(),
            ready: pattern(agent.ready.as_deref()),
            ready_timeout: millis(plan.grace.ready_ms),
            done_pattern: pattern(plan.proof.pattern()),
        }
    }

    /// Records that the agent could not be started. A missing program is a fault that ends the
    /// loop, because retrying cannot help. Other errors fail only this iteration.
    fn record_start_failure(
        &mut self,
        iteration: u32,
        error: &io::Error,
    ) -> Result<(), RunnerError> {
        let agent = self.rec.state.agent();
        let program = agent.command.first().unwrap_or(&agent.name).clone();
        let workspace = &self.rec.state.plan.workspace;
        let why = program::find(&program, workspace)
            .filter(|_| error.kind() == io::ErrorKind::NotFound)
            .and_then(|path| program::missing_interpreter(&path, workspace))
            .unwrap_or_else(|| error.to_string());
        let text = format!("cannot start {program}: {why}");
        match error.kind() {
            io::ErrorKind::NotFound => self.rec.record_fault(Fault::NotFound, text),
            io::ErrorKind::PermissionDenied => self.rec.record_fault(Fault::Permission, text),
            io::ErrorKind::ArgumentListTooLong => {
                let bytes = format::bytes(self.prompts.bytes().len() as u64);
                let detail =
                    format!("the prompt ({bytes}) is too long to pass to {program} as an argument");
                self.rec.record_fault(Fault::Usage, detail)
            }
            _ => {
                self.rec.warn(&text);
                let report = AgentReport {
                    cost_usd: Some(0.0),
                    error: Some(text),
                    ..AgentReport::default()
                };
                self.rec.record(Event::Ended { iteration, report })
            }
        }
    }

    /// Returns the windows that were opened while the agent ran, and are still open.
    fn windows_of_iteration(&self) -> Vec<u32> {
        let started = self.rec.state.process.map(|agent| agent.start_time);
        let exemptions = self.reactor.scope().exemptions();
        started.map_or_else(Vec::new, |at| exemptions.windows_since(at))
    }

    /// Records the end of an iteration: the agent's exit status, its parsed output and its markers.
    pub(super) fn agent_ended(
        &mut self,
        iteration: u32,
        result: JobResult,
        output: Option<Box<AgentOutput>>,
    ) -> Result<(), RunnerError> {
        self.rec.end_activity();
        let Some(output) = output else {
            return Ok(());
        };
        self.relay_messages()?;
        let signals = &self.rec.state.plan.proof.signals;
        let found = self.task_dir.scan(signals, &self.rec.redactor);
        let has_found = !found.markers.is_empty() || found.cost_usd.is_some();
        let failed_by_itself = !result.exit.is_success() && !result.stopped;
        let last_line = failed_by_itself
            .then(|| output.classify_last_line())
            .flatten();
        let reported = (result.exit.is_success() && !result.stopped)
            .then(|| output.reported_error())
            .flatten();
        let mut report = AgentReport {
            exit: result.exit,
            ms: result.ms,
            markers: found.markers,
            cost_usd: found.cost_usd,
            bytes: result.bytes,
            error: failed_by_itself
                .then(|| output.last_lines())
                .filter(|text| !text.is_empty()),
            orphans: result.orphans,
            survivors: result.survivors,
            windows: self.windows_of_iteration(),
            ..AgentReport::default()
        };
        report.note.clone_from(&output.note);
        (report.idle, report.silent) = (output.is_idle(), output.is_silent());
        let retry = (result.stopped && report.silent).then(|| {
            (
                output.classify_retry(),
                output.tally.last_retry().map(str::to_owned),
            )
        });
        report.signals = output.signals;
        let blocked = found.texts.get(&Marker::Blocked).cloned();
        report.signals.blocked = report.signals.blocked.or(blocked);
        report.marker_texts = found.texts;
        let model = self.rec.state.agent().model.as_deref().unwrap_or_default();
        output
            .tally
            .add_to(&mut report, &self.rec.state.plan.prices, model);
        if report.reason.is_none() && !report.finished {
            report.reason = last_line;
        }
        if let Some((error, reason)) = reported {
            (report.error, report.reason) = (Some(error), Some(reason));
        }
        if let Some((reason, error)) = retry {
            report.reason = report.reason.or(reason);
            report.error = report.error.or(error);
        }
        if result.stuck {
            let detail = "the agent function was cancelled, but did not return";
            self.rec.record_fault(Fault::Survivors, detail)?;
        }
        self.rec.record(Event::Ended { iteration, report })?;
        if let Some(error) = result.log_error {
            let detail = format!("cannot write the output log: {error}");
            self.rec.record_fault(Fault::Disk, detail)?;
        }
        if let Some(detail) = found.invalid_marker {
            self.rec.record_fault(Fault::Marker, detail)?;
        }
        if has_found {
            self.archive_markers()?;
        }
        Ok(())
    }

    /// Returns the cost in dollars and the tokens that the log of an interrupted iteration reports.
    /// Each is `None` if the log does not report it.
    pub(super) fn recover_usage(&self) -> (Option<f64>, Option<Tokens>) {
        let own_report = self.task_dir.scan(&[], &self.rec.redactor).cost_usd;
        let (state, agent) = (&self.rec.state, self.rec.state.agent());
        if !agent.dialect.is_stream() {
            return (own_report, None);
        }
        // Nothing of these acts is shown.
        let redactor = Redactor::default();
        let profile = &self.profiles[state.agent_index];
        let mut pipeline = OutputPipeline::new(profile, state, b"", &redactor);
        let log = self.rec.dir.output_log(state.iteration);
        // While an iteration runs, the end of a long log is in a second file.
        for path in [log.clone(), log.with_extension("tail")] {
            let Ok(mut log) = regular_file::open(&path, false) else {
                continue;
            };
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = log.read(&mut buffer) {
                pipeline.feed(&buffer[..count], &mut |_| {});
            }
        }
        let tally = pipeline.finish(OutputTail::default(), &mut |_| {}).tally;
        let model = agent.model.as_deref().unwrap_or_default();
        let cost = tally.cost(&state.plan.prices, model);
        let cost = own_report.map(|usd| usd + cost.unwrap_or(0.0)).or(cost);
        (cost, tally.tokens())
    }
}
