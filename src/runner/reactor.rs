//! Waits for the runner's input: signals, file changes, the running job, and an embedding program's
//! requests.
//!
//! The reactor starts and stops jobs on the runner's request. It decides nothing.

use super::console_keys::ConsoleKeys;
use super::input::{Input, JobKey};
use super::job::{Job, JobOutput};
use super::owner::KillScope;
use super::poll_schedule::{PollSchedule, WatchMode};
use super::process_spec::{JobLimits, ProcessSpec};
use crate::agent::function::{AgentFunction, CallRequest, Waker};
use crate::agent::pipeline::{OutputPipeline, OutputTail};
use crate::agent::redact::Redactor;
use crate::engine::event::Request;
use crate::engine::{Act, Tally};
use crate::os;
use crate::process::exemptions::Exemptions;
use crate::process::file_watcher::{FileWatcher, WriteState};
use crate::process::pty::ScreenSize;
use crate::process::signals::{SignalEvent, SignalListener};
use crate::process::tree;
use crate::terminal::emulator::TerminalEvent;
use crate::terminal::guard::TerminalGuard;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The program that embeds the library.
pub(crate) struct Embedding {
    /// The loop's ID, which marks its processes.
    pub(crate) id: String,
    /// The waker that interrupts the runner's wait.
    pub(crate) waker: Arc<Waker>,
    pub(crate) exemptions: Exemptions,
    /// The program's pending requests, oldest first.
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
}

/// The source of one runner's input, and the job that it supervises.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct Reactor {
    signals: Option<SignalListener>,
    embedding: Option<Embedding>,
    scope: KillScope,
    watcher: FileWatcher,
    schedule: PollSchedule,
    job: Option<(JobKey, Job)>,
    pipeline: Option<OutputPipeline>,
    child_changed: bool,
    buffer: Vec<u8>,
    wakeups_expected: bool,
    watching_stopped: bool,
    hands_over_terminal: bool,
    terminal_guard: Option<TerminalGuard>,
    keys: Option<ConsoleKeys>,
}

/// The time that a newly created file may take to be written.
const WRITE_DELAY: Duration = Duration::from_millis(50);
/// The time to wait for stray processes to exit after they were killed.
const STRAY_TIMEOUT: Duration = Duration::from_secs(2);

impl Reactor {
    /// Creates a reactor for `ralph` itself, which handles signals and owns every child process.
    pub(crate) fn open(exemptions: Exemptions) -> io::Result<Self> {
        Ok(Self::new(
            Some(SignalListener::listen()?),
            None,
            KillScope::Everything { exemptions },
        ))
    }

    /// Creates a reactor inside another program. The reactor leaves that program's signals,
    /// children and threads alone.
    pub(crate) fn embedded(embedding: Embedding) -> Self {
        let scope = KillScope::Marked {
            id: embedding.id.clone(),
            exemptions: embedding.exemptions.clone(),
        };
        Self::new(None, Some(embedding), scope)
    }

    fn new(
        signals: Option<SignalListener>,
        embedding: Option<Embedding>,
        scope: KillScope,
    ) -> Self {
        Self {
            signals,
            embedding,
            scope,
            watcher: FileWatcher::open(),
            schedule: PollSchedule::new(),
            job: None,
            pipeline: None,
            child_changed: false,
            buffer: vec![0; 256 * 1024],
            wakeups_expected: false,
            watching_stopped: false,
            hands_over_terminal: false,
            terminal_guard: None,
            keys: None,
        }
    }

    /// Connects the user's terminal to agents that run on a terminal. They receive the user's keys
    /// and get a screen of the same size.
    pub(crate) fn hand_over_terminal(&mut self) {
        self.hands_over_terminal = true;
    }

    /// Reads the user's keys for the console while no agent has the terminal.
    #[cfg(feature = "cli")]
    pub(crate) fn read_keys(&mut self) {
        self.keys = Some(ConsoleKeys::default());
    }

    /// Makes an idle runner poll less often. Writers to the inbox signal it instead.
    pub(crate) fn expect_wakeups(&mut self) {
        self.wakeups_expected = true;
    }

    /// Disables [`Reactor::watch`], because closing a watch takes milliseconds.
    pub(super) fn stop_watching(&mut self) {
        self.watching_stopped = true;
    }

    pub(super) fn scope(&self) -> &KillScope {
        &self.scope
    }

    // ---- files -----------------------------------------------------------------------------------

    /// Watches a file or directory for changes.
    pub(super) fn watch(&mut self, path: &Path) {
        if !self.watching_stopped {
            self.watcher.watch(path);
        }
    }

    /// Ignores changes to files named `name`.
    pub(super) fn ignore_file(&mut self, name: &'static str) {
        self.watcher.ignore(name);
    }

    /// Forgets lost and old watches. Call this before watching everything again.
    pub(super) fn reset_watches(&mut self) {
        self.watcher.reset();
    }

    /// Returns whether file changes may go unreported.
    pub(super) fn may_miss_changes(&self) -> bool {
        self.watcher.may_miss_changes() || self.watcher.is_unavailable()
    }

    /// Reports [`Input::FilesChanged`] within `time`, even if no change is noticed.
    pub(super) fn look_within(&mut self, time: Duration) {
        self.schedule.look_within(time);
    }

    // ---- jobs ------------------------------------------------------------------------------------

    /// Starts a process. Pass the job to [`Reactor::begin`].
    pub(super) fn start(&mut self, spec: ProcessSpec<'_>, redactor: &Redactor) -> io::Result<Job> {
        self.terminal_guard = if self.hands_over_terminal && spec.terminal.is_some() {
            self.keys.iter_mut().for_each(ConsoleKeys::release);
            TerminalGuard::take()
        } else {
            None
        };
        let size = self
            .terminal_guard
            .as_ref()
            .and_then(|_| TerminalGuard::size());
        let size = size.unwrap_or_else(ScreenSize::default_size);
        let job = Job::start(
            spec,
            &self.scope,
            size,
            self.terminal_guard.is_none(),
            redactor,
        );
        if job.is_err() {
            self.terminal_guard = None;
        }
        job
    }

    /// Calls the agent function on its own thread. Pass the job to [`Reactor::begin`].
    pub(super) fn call(
        &self,
        function: &AgentFunction,
        request: CallRequest,
        limits: JobLimits,
        redactor: &Redactor,
    ) -> io::Result<Job> {
        match &self.embedding {
            Some(embedding) => Job::call(function, &embedding.waker, request, limits, redactor),
            None => Err(io::Error::other("no embedding program")),
        }
    }

    /// Supervises the only running job. `pipeline` parses the output of an agent.
    pub(super) fn begin(&mut self, key: JobKey, job: Job, pipeline: Option<OutputPipeline>) {
        debug_assert!(self.job.is_none(), "two jobs at once");
        self.job = Some((key, job));
        self.pipeline = pipeline;
        self.child_changed = true;
        self.schedule.reset();
    }

    /// Returns the key of the running job, or `None` if no job runs.
    pub(super) fn running(&self) -> Option<JobKey> {
        self.job.as_ref().map(|(key, _)| *key)
    }

    /// Returns the agent's sums so far, if it reported usage since the last call.
    pub(super) fn take_usage(&mut self) -> Option<&Tally> {
        self.pipeline.as_mut()?.take_usage()
    }

    /// Returns the time since the job's last activity, or `None` without a job.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        self.job.as_ref().map(|(_, job)| job.silent_for())
    }

    /// Stops the job with SIGTERM, then SIGKILL. If `hard` is set, sends SIGKILL at once.
    pub(super) fn stop(&mut self, hard: bool) {
        if let Some((_, job)) = &mut self.job {
            job.stop(hard);
        }
    }

    /// Kills processes that a short-lived program left behind, such as git with the user's hooks.
    /// Does nothing in an embedding program, because its own children cannot be distinguished.
    pub(super) fn kill_strays(&mut self) {
        let KillScope::Everything { exemptions } = &self.scope else {
            return;
        };
        let started = Instant::now();
        while self.job.is_none() && !tree::reap(|_, _| {}) && started.elapsed() < STRAY_TIMEOUT {
            let exempt = exemptions.current();
            if tree::descendants(&exempt).is_empty() {
                return;
            }
            tree::signal_all(&exempt, rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    // ---- waiting ---------------------------------------------------------------------------------

    /// Returns the embedding program's requests since the last call.
    pub(super) fn take_requests(&mut self) -> Vec<Request> {
        let Some(embedding) = &self.embedding else {
            return Vec::new();
        };
        let requests = embedding.requests.lock();
        std::mem::take(&mut *requests.unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for input, at most until `until`. Passes the agent's acts to `emit` as they are read.
    pub(crate) fn wait(
        &mut self,
        until: Option<Instant>,
        emit: &mut dyn FnMut(&Act<'_>),
    ) -> Vec<Input> {
        self.poll(until);
        let mut inputs: Vec<Input> = self
            .take_requests()
            .into_iter()
            .map(Input::Requested)
            .collect();
        if let Some(keys) = &mut self.keys {
            inputs.extend(keys.read(&mut self.buffer));
        }
        for signal in self
            .signals
            .as_mut()
            .map(SignalListener::take)
            .unwrap_or_default()
        {
            match signal {
                SignalEvent::ChildExited => self.child_changed = true,
                SignalEvent::Resized => {
                    self.resize_screen();
                    // The signal can also mean that another process wrote to the inbox.
                    self.schedule.reset();
                    self.schedule.look_within(Duration::ZERO);
                    inputs.push(Input::Resized);
                }
                other => inputs.push(Input::Signal(other)),
            }
        }
        self.pass_keys();
        self.tick_job(&mut inputs, emit);
        let mode = match &self.job {
            _ if self.watcher.may_miss_changes() => WatchMode::Unreliable,
            None if self.wakeups_expected || !self.watcher.is_unavailable() => WatchMode::Idle,
            Some(_) if !self.watcher.is_unavailable() => WatchMode::Busy,
            _ => WatchMode::Unreliable,
        };
        if self.schedule.take_due(mode) {
            inputs.push(Input::FilesChanged);
        }
        inputs
    }

    /// Passes the user's keys to the agent.
    fn pass_keys(&mut self) {
        let Some((_, job)) = self.job.as_mut().filter(|_| self.terminal_guard.is_some()) else {
            return;
        };
        match TerminalGuard::read(&mut self.buffer) {
            Some(keys) => job.press(keys),
            None => self.terminal_guard = None,
        }
    }

    /// Sets the size of the agent's screen to that of the user's terminal.
    fn resize_screen(&mut self) {
        let size = self
            .terminal_guard
            .as_ref()
            .and_then(|_| TerminalGuard::size());
        if let Some(((_, job), size)) = self.job.as_mut().zip(size) {
            job.resize(size);
        }
    }

    fn poll(&mut self, until: Option<Instant>) {
        // Release memory only once per poll, because the next input needs the code pages again.
        if self.schedule.take_quiet() && self.embedding.is_none() {
            os::memory::release_code_pages();
        }
        let has_keys = self
            .job
            .as_mut()
            .is_some_and(|(_, job)| job.has_pending_keys());
        if let Some(keys) = self.keys.as_mut().filter(|_| self.terminal_guard.is_none()) {
            keys.acquire();
        }
        let job = self.job.as_ref().map(|(_, job)| job);
        let next = [
            until,
            job.and_then(|job| job.next_wake(self.pipeline.as_ref())),
            Some(self.schedule.at()),
        ];
        let next = next.into_iter().flatten().min();
        let timeout =
            next.map(|at| Timespec::try_from(at.saturating_duration_since(Instant::now())));
        let timeout = timeout.and_then(Result::ok);
        let files_changed = {
            let fds = self.watcher.fd().into_iter();
            let fds = fds
                .chain(self.signals.iter().map(SignalListener::fd))
                .chain(self.embedding.iter().map(|embedding| embedding.waker.fd()))
                .chain(self.terminal_guard.iter().map(|_| TerminalGuard::fd()))
                .chain(self.keys.iter().filter_map(ConsoleKeys::fd));
            let fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // A job's first descriptor is its output, which also receives keys.
            let mut flags = if has_keys {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            let job_fds = job.into_iter().flat_map(Job::fds).map(|fd| {
                PollFd::from_borrowed_fd(fd, std::mem::replace(&mut flags, PollFlags::IN))
            });
            let mut fds: Vec<PollFd<'_>> = fds.chain(job_fds).collect();
            let _ = poll(&mut fds, timeout.as_ref());
            self.watcher.fd().is_some() && !fds[0].revents().is_empty()
        };
        if let Some(change) = files_changed.then(|| self.watcher.drain()).flatten() {
            self.schedule.reset();
            self.schedule.look_within(match change {
                WriteState::Complete => Duration::ZERO,
                WriteState::InProgress => WRITE_DELAY,
            });
        }
        if let Some(embedding) = &self.embedding {
            embedding.waker.clear();
            // Without a signal handler, an embedding program is not notified of exits, so check the
            // job after every wait.
            self.child_changed |= self.job.as_ref().is_some_and(|(_, job)| !job.has_ended());
        }
    }

    fn tick_job(&mut self, inputs: &mut Vec<Input>, emit: &mut dyn FnMut(&Act<'_>)) {
        let Some((key, job)) = &mut self.job else {
            return;
        };
        let key = *key;
        let pipeline = &mut self.pipeline;
        let mut read = |output: JobOutput<'_>| match (pipeline.as_mut(), output) {
            (Some(pipeline), JobOutput::Bytes(bytes)) => pipeline.feed(bytes, emit),
            (Some(pipeline), JobOutput::Act(act)) => pipeline.feed_act(act, emit),
            (None, _) => {}
        };
        job.read_acts(&mut read);
        let mut empty = false;
        if self.child_changed || job.is_due() {
            self.child_changed = false;
            empty = job.check_processes();
        }
        // Read after checking the processes, to get everything that was printed before the exit.
        job.read(&mut self.buffer, &mut read);
        let silent_for = job.silent_for();
        if let Some(pipeline) = &mut self.pipeline {
            if let Some(progress) = pipeline.take_progress() {
                job.note_progress(progress);
            }
            if pipeline.take_pattern(silent_for) {
                inputs.push(Input::DonePattern(key));
            }
        }
        match job.tick_terminal() {
            Some(TerminalEvent::NeverReady) => inputs.push(Input::NeverReady(key)),
            Some(TerminalEvent::LineTooLong(bytes)) => inputs.push(Input::LineTooLong(bytes)),
            Some(TerminalEvent::DonePattern) => inputs.push(Input::DonePattern(key)),
            None => {}
        }
        inputs.extend(job.take_log_error().map(Input::LogFailed));
        if job.silent_at().is_some_and(|at| at <= Instant::now()) {
            job.clear_silence();
            inputs.push(Input::Inactive(key));
        }
        if job.lingers_at().is_some_and(|at| at <= Instant::now()) {
            job.clear_lingering();
            inputs.push(Input::Lingering(key));
        }
        if job.tick(empty) {
            inputs.push(self.end_job(emit));
        } else if empty {
            // A process still has the output open. Check again when the drain time is over.
            self.child_changed = true;
        }
    }

    fn end_job(&mut self, emit: &mut dyn FnMut(&Act<'_>)) -> Input {
        self.terminal_guard = None;
        self.schedule.reset();
        let (key, job) = self.job.take().expect("a job runs");
        let result = job.finish();
        let output = self.pipeline.take().map(|pipeline| {
            let tail = OutputTail {
                text: &result.tail_text,
                bytes: result.bytes,
            };
            let mut output = pipeline.finish(tail, emit);
            output.signals.matched |= result.pattern_found;
            Box::new(output)
        });
        Input::JobEnded(key, Box::new(result), output)
    }
}

impl Drop for Reactor {
    /// Stops the job. If the embedding program's observer panics during an iteration, the agent
    /// must not continue without a runner.
    fn drop(&mut self) {
        if self.embedding.is_some() {
            self.stop(true);
            while self.job.is_some() {
                self.wait(None, &mut |_| {});
            }
        }
    }
}
