//! Supervises a job, which is one agent, check or SCM task, from its start until all its processes
//! are gone.

use super::owner::{KillScope, ProcessOwner};
use super::process_spec::{JobLimits, ProcessSpec};
use crate::agent::function::{AgentFunction, CallRequest, FunctionCall, Waker};
use crate::agent::pipeline::{OutputPipeline, Progress, QUIET};
use crate::agent::redact::{Redactor, StreamRedactor};
use crate::engine::{Act, ProcessExit, signals};
use crate::process::output_log::OutputLog;
use crate::process::pty::{self, ScreenSize};
use crate::sandbox::Confinement;
use crate::terminal::emulator::{Emulator, TerminalEvent};
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The result of a job.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct JobResult {
    /// The exit status of the job's first process.
    pub exit: ProcessExit,
    /// The running time of the first process, in milliseconds.
    pub ms: u64,
    /// The number of bytes that the job printed.
    pub bytes: u64,
    /// The end of the job's output or, on a terminal, the text on its screen.
    pub tail_text: String,
    /// Whether the job's screen showed the done pattern.
    pub pattern_found: bool,
    pub timed_out: bool,
    /// Whether ralph stopped the job before it exited by itself.
    pub stopped: bool,
    /// Whether the job is a function that did not return.
    pub stuck: bool,
    /// The number of processes that were still alive when the first one exited.
    pub orphans: u32,
    /// The pids of processes that are alive after SIGKILL.
    pub survivors: Vec<u32>,
    /// The first error from writing the job's log.
    pub log_error: Option<io::Error>,
}

/// A piece of a job's output.
pub(super) enum JobOutput<'a> {
    Bytes(&'a [u8]),
    /// An act that a function agent reported.
    Act(Act<'static>),
}

/// A running process or function.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(super) struct Job {
    owner: ProcessOwner,
    /// The time to check the job's processes if no signal arrives earlier. `None` if a signal
    /// always reports their exit.
    check_at: Option<Instant>,
    /// The time at which ralph stopped the job. `None` if it did not, or if the job had already
    /// exited.
    stopped_at: Option<Instant>,
    limits: JobLimits,
    terminal: Option<Emulator>,
    started: Instant,
    output: Option<OwnedFd>,
    widened: bool,
    redactor: StreamRedactor,
    log: OutputLog,
    log_error: Option<io::Error>,
    log_broken: bool,
    /// The time of the job's last activity.
    active_at: Instant,
    /// Whether a tool is running. Silence then does not count as inactivity.
    busy: bool,
    /// The time at which the job's output stream reported the end of the run. `None` until then.
    run_ended_at: Option<Instant>,
    timeout_at: Option<Instant>,
    timed_out: bool,
    ended: Option<(ProcessExit, Duration)>,
    orphans: u32,
    /// The time at which to send SIGKILL. `None` while the job is not being stopped.
    kill_at: Option<Instant>,
    /// The time at which to give up on processes that survive SIGKILL. `None` before SIGKILL is
    /// sent.
    give_up_at: Option<Instant>,
    /// The time at which to stop reading output. `None` until the last process has exited.
    drained_by: Option<Instant>,
}

/// The default capacity of a pipe, in bytes.
const PIPE: usize = 64 * 1024;
/// The time for which output is still read after the last process has exited.
const DRAIN: Duration = Duration::from_millis(250);
/// The interval at which SIGKILL is repeated, to reach processes that were forked in between.
const KILL_INTERVAL: Duration = Duration::from_millis(2);

impl Job {
    /// Starts the process that `spec` describes. `size` and `answers` apply only to a process on a
    /// terminal: `size` is the size of its screen, and with `answers` the emulator replies to the
    /// program's queries.
    pub(super) fn start(
        mut spec: ProcessSpec<'_>,
        scope: &KillScope,
        size: ScreenSize,
        answers: bool,
        redactor: &Redactor,
    ) -> io::Result<Self> {
        let (pid, output) = spec.spawn(scope, size, answers)?;
        let redactor = StreamRedactor::new(redactor, spec.terminal.is_some());
        let is_wrapped = spec.sandbox.is_some_and(Confinement::has_wrapper);
        let owner = ProcessOwner::new(pid, scope, is_wrapped);
        let mut job = Self::new(owner, Some(output), spec.limits, redactor);
        job.terminal = spec
            .terminal
            .map(|options| Emulator::new(options, size, answers));
        Ok(job)
    }

    /// Calls an agent function on its own thread.
    pub(super) fn call(
        function: &AgentFunction,
        waker: &Arc<Waker>,
        request: CallRequest,
        limits: JobLimits,
        redactor: &Redactor,
    ) -> io::Result<Self> {
        let call = FunctionCall::start(function, waker, request)?;
        let redactor = StreamRedactor::new(redactor, false);
        Ok(Self::new(
            ProcessOwner::Function(call),
            None,
            limits,
            redactor,
        ))
    }

    fn new(
        owner: ProcessOwner,
        output: Option<OwnedFd>,
        limits: JobLimits,
        redactor: StreamRedactor,
    ) -> Self {
        let started = Instant::now();
        Self {
            check_at: owner.check_interval().map(|interval| started + interval),
            owner,
            stopped_at: None,
            started,
            output,
            terminal: None,
            widened: false,
            redactor,
            log: OutputLog::new(&limits.log, limits.log_cap, signals::TAIL_BYTES),
            log_error: None,
            log_broken: false,
            active_at: started,
            busy: false,
            run_ended_at: None,
            timeout_at: limits.timeout.map(|timeout| started + timeout),
            timed_out: false,
            limits,
            ended: None,
            orphans: 0,
            kill_at: None,
            give_up_at: None,
            drained_by: None,
        }
    }

    /// Returns the pid of the first process, or 0 for a function.
    pub(super) fn pid(&self) -> u32 {
        self.owner.pid()
    }

    /// Returns the file descriptors to poll: the job's output, then a descriptor that reports the
    /// exit of the first process.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.output
            .as_ref()
            .map(AsFd::as_fd)
            .into_iter()
            .chain(self.owner.fd())
    }

    /// Returns whether keys are waiting to be written to the job's terminal.
    pub(super) fn has_pending_keys(&mut self) -> bool {
        self.terminal
            .as_mut()
            .is_some_and(|terminal| !terminal.keys().is_empty())
    }

    /// Queues keys to be written to the job's terminal.
    pub(super) fn press(&mut self, keys: &[u8]) {
        if let Some(terminal) = &mut self.terminal {
            terminal.press(keys);
        }
    }

    pub(super) fn resize(&mut self, size: ScreenSize) {
        if let Some((terminal, output)) = self.terminal.as_mut().zip(self.output.as_ref()) {
            terminal.resize(size);
            let _ = pty::resize(output, size);
        }
    }

    /// Handles the terminal's timers. Returns an event that the runner must react to, if any.
    pub(super) fn tick_terminal(&mut self) -> Option<TerminalEvent> {
        let output = self.output.as_ref();
        let line_max = || {
            output
                .is_some_and(pty::is_line_buffered)
                .then_some(pty::LINE_MAX)
        };
        let event = self.terminal.as_mut()?.tick(line_max);
        self.write_keys();
        event
    }

    /// Writes as many queued keys as the terminal accepts without blocking.
    fn write_keys(&mut self) {
        let Some((terminal, output)) = self.terminal.as_mut().zip(self.output.as_ref()) else {
            return;
        };
        let keys = terminal.keys();
        while let Ok(count @ 1..) = rustix::io::write(output, &keys[..keys.len().min(4096)]) {
            keys.drain(..count);
        }
    }

    /// Returns the time since the job's last activity.
    pub(super) fn silent_for(&self) -> Duration {
        self.terminal
            .as_ref()
            .map_or(self.active_at, Emulator::active_at)
            .elapsed()
    }

    /// Reads available output. Reads only a few buffers, so that a flood of output cannot block the
    /// runner. Continues after a log error, because the agent would hang on a full pipe.
    pub(super) fn read(&mut self, buffer: &mut [u8], emit: &mut dyn FnMut(JobOutput<'_>)) {
        for _ in 0..8 {
            let Some(output) = &self.output else { return };
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => self.close_output(emit),
                Ok(count) => {
                    if count >= PIPE {
                        self.widen();
                    }
                    let shown = self.redactor.feed(&buffer[..count]);
                    self.take(&shown, emit);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.close_output(emit),
            }
        }
    }

    fn close_output(&mut self, emit: &mut dyn FnMut(JobOutput<'_>)) {
        self.output = None;
        let rest = self.redactor.finish();
        if !rest.is_empty() {
            self.take(&rest, emit);
        }
    }

    fn take(&mut self, bytes: &[u8], emit: &mut dyn FnMut(JobOutput<'_>)) {
        self.append_to_log(bytes);
        if let Some(terminal) = &mut self.terminal {
            terminal.feed(bytes);
        }
        emit(JobOutput::Bytes(bytes));
    }

    /// Passes the acts that a function agent has reported to `emit`.
    pub(super) fn read_acts(&mut self, emit: &mut dyn FnMut(JobOutput<'_>)) {
        let ProcessOwner::Function(call) = &mut self.owner else {
            return;
        };
        for act in call.take_acts() {
            match &act {
                Act::Text(text) => {
                    let shown = self.redactor.feed(text.as_bytes());
                    self.append_to_log(&shown);
                }
                Act::Finished(text) | Act::Failed { why: text, .. } if !text.is_empty() => {
                    let line = format!("{}\n", text.trim_end());
                    let shown = self.redactor.feed(line.as_bytes());
                    self.append_to_log(&shown);
                }
                _ => self.active_at = Instant::now(),
            }
            emit(JobOutput::Act(act));
        }
    }

    fn append_to_log(&mut self, bytes: &[u8]) {
        if self.limits.linger.is_none() {
            self.active_at = Instant::now();
        }
        if !self.log_broken {
            self.log_error = self.log.write(bytes).err();
            self.log_broken = self.log_error.is_some();
        }
    }

    /// Enlarges the pipe buffer of an agent that prints a lot, where the system can.
    fn widen(&mut self) {
        if let Some(output) = self.output.as_ref().filter(|_| !self.widened) {
            self.widened = true;
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(output, 1 << 20);
            #[cfg(not(target_os = "linux"))]
            let _ = output;
        }
    }

    /// Returns the error from writing the log. Later calls return `None`.
    pub(super) fn take_log_error(&mut self) -> Option<io::Error> {
        self.log_error.take()
    }

    /// Stops the job with SIGTERM, and with SIGKILL after the grace period. If `hard` is set, sends
    /// SIGKILL at once.
    pub(super) fn stop(&mut self, hard: bool) {
        let now = Instant::now();
        let kill_at = if hard { now } else { now + self.limits.grace };
        let first = self.kill_at.is_none();
        self.stopped_at = self.stopped_at.or(self.ended.is_none().then_some(now));
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
        if first && !hard {
            self.terminate();
        }
    }

    fn terminate(&self) {
        for signal in [Signal::TERM, Signal::CONT] {
            self.owner.signal(signal);
        }
    }

    /// Checks which of the job's processes are alive. Returns true if none are.
    pub(super) fn check_processes(&mut self) -> bool {
        let found = self.owner.scan();
        if let Some(exit) = found.exit.filter(|_| self.ended.is_none()) {
            self.ended = Some((exit, self.started.elapsed()));
        }
        self.check_at = self
            .owner
            .check_interval()
            .map(|interval| Instant::now() + interval);
        found.empty
    }

    /// Returns whether the job's first process has exited or its function has returned.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether the job's processes must be checked now, without waiting for a signal.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.owner, ProcessOwner::Function(_))
            || self.next_tick().is_some_and(|at| at <= Instant::now())
    }

    /// Handles the job's timeouts. `empty` means that no process is left. Returns true if the job
    /// is over.
    pub(super) fn tick(&mut self, empty: bool) -> bool {
        let now = Instant::now();
        if self.timeout_at.is_some_and(|at| at <= now) && self.ended.is_none() && !self.timed_out {
            self.timed_out = true;
            self.stop(false);
        }
        if empty {
            // The exit status stays unknown if the embedding program reaped the child.
            self.ended
                .get_or_insert((ProcessExit::default(), now - self.started));
            let drained_by = *self.drained_by.get_or_insert(now + DRAIN);
            return self.output.is_none() || drained_by <= now;
        }
        if self.ended.is_some() && self.kill_at.is_none() {
            // The kernel kills the processes in a sandbox already.
            let is_wrapped = self.owner.is_wrapped();
            if !is_wrapped {
                self.orphans = self.owner.remaining().len() as u32;
            }
            self.stop(is_wrapped);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            let give_up_at = *self.give_up_at.get_or_insert(now + self.limits.survivor);
            self.owner.signal(Signal::KILL);
            return give_up_at <= now;
        }
        false
    }

    /// Returns the time by which [`Job::tick`] must be called. `None` if no timer is set.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let again = self.give_up_at.map(|_| Instant::now() + KILL_INTERVAL);
        let timeout = self
            .timeout_at
            .filter(|_| self.ended.is_none() && !self.timed_out);
        let kill = self.kill_at.filter(|_| self.give_up_at.is_none());
        let screen = self.terminal.as_ref().and_then(Emulator::next_tick);
        let all = [
            again,
            timeout,
            kill,
            self.check_at,
            self.drained_by,
            self.silent_at(),
            self.lingers_at(),
            screen,
        ];
        all.into_iter().flatten().min()
    }

    /// Returns when the runner must look at the job and at `pipeline`, which reads its output, at
    /// the latest.
    pub(super) fn next_wake(&self, pipeline: Option<&OutputPipeline>) -> Option<Instant> {
        let is_open = pipeline.is_some_and(OutputPipeline::awaits_line_end);
        let quiet = is_open.then(|| self.active_at + QUIET);
        [self.next_tick(), quiet].into_iter().flatten().min()
    }

    /// Applies progress that the job's output stream reported.
    pub(super) fn note_progress(&mut self, progress: Progress) {
        let now = Instant::now();
        self.active_at = now;
        self.busy = progress.is_busy;
        self.run_ended_at = progress.has_ended.then_some(now);
    }

    /// Returns the time at which the process will have lingered too long after its output stream
    /// reported the end of the run. `None` if no such timer is set.
    pub(super) fn lingers_at(&self) -> Option<Instant> {
        Some(self.run_ended_at.filter(|_| self.ended.is_none())? + self.limits.linger?)
    }

    /// Clears the timer of [`Job::lingers_at`] after the lingering was reported.
    pub(super) fn clear_lingering(&mut self) {
        self.run_ended_at = None;
    }

    /// Returns the time at which the job's silence will exceed the inactivity timeout. `None` while
    /// the timeout does not apply.
    pub(super) fn silent_at(&self) -> Option<Instant> {
        let inactivity = self
            .limits
            .inactivity
            .filter(|_| self.ended.is_none() && !self.busy)?;
        self.terminal
            .as_ref()
            .map_or(Some(self.active_at + inactivity), |terminal| {
                terminal.still_at(inactivity)
            })
    }

    /// Clears the timer of [`Job::silent_at`] after the silence was reported.
    pub(super) fn clear_silence(&mut self) {
        self.limits.inactivity = None;
    }

    /// Ends the job and returns its result.
    pub(super) fn finish(mut self) -> JobResult {
        let rest = self.redactor.finish();
        if !rest.is_empty() {
            self.append_to_log(&rest);
        }
        let (exit, time) = self
            .ended
            .unwrap_or((ProcessExit::default(), self.started.elapsed()));
        let survivors = if self.drained_by.is_some() {
            vec![]
        } else {
            self.owner.remaining()
        };
        let screen = self.terminal.map(Emulator::finish);
        let (tail_text, pattern_found) = screen.unwrap_or_else(|| (self.log.tail_text(), false));
        JobResult {
            exit,
            ms: time.as_millis() as u64,
            bytes: self.log.total(),
            tail_text,
            pattern_found,
            timed_out: self.timed_out,
            stopped: self.stopped_at.is_some(),
            stuck: self.owner.release(),
            orphans: self.orphans,
            survivors,
            log_error: if self.log_broken {
                self.log_error
            } else {
                self.log.finish().err()
            },
        }
    }
}
