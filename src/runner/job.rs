//! Supervises a job, which is one agent, check or SCM task, from its start until all its processes
//! are gone.

use super::owner::{KillScope, ProcessOwner};
use super::process_spec::{JobLimits, ProcessSpec};
use crate::agent::function::{AgentFunction, CallRequest, FunctionCall, Waker};
use crate::agent::pipeline::Progress;
use crate::agent::redact::{Redactor, StreamRedactor};
use crate::engine::{Act, ProcessExit, signals};
use crate::process::output_log::OutputLog;
use crate::process::pty;
use crate::process::pty::ScreenSize;
use crate::terminal::emulator::{Emulator, TerminalEvent};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a job ended.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct JobResult {
    /// How its first process exited.
    pub exit: ProcessExit,
    /// How long that process ran, in milliseconds.
    pub ms: u64,
    /// Number of bytes it printed.
    pub bytes: u64,
    /// The end of its output or, on a terminal, the text on its screen.
    pub tail_text: String,
    /// Whether its screen showed the done pattern.
    pub pattern_found: bool,
    pub timed_out: bool,
    /// Whether ralph stopped it before it exited by itself.
    pub stopped: bool,
    /// Whether it is a function that did not return.
    pub stuck: bool,
    /// Number of processes that were left when the first one exited.
    pub orphans: u32,
    /// The pids of processes that are alive after SIGKILL.
    pub survivors: Vec<u32>,
    /// The first error while writing its log.
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
    /// When to check its processes if no signal arrives before; `None` if a signal always does.
    check_at: Option<Instant>,
    /// When ralph stopped it; `None` if it was not stopped, or had already exited.
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
    /// When it last showed activity.
    active_at: Instant,
    /// Whether a tool is running: silence then does not mean inactivity.
    busy: bool,
    /// When its output stream reported the end of the run.
    run_ended_at: Option<Instant>,
    timeout_at: Option<Instant>,
    timed_out: bool,
    ended: Option<(ProcessExit, Duration)>,
    orphans: u32,
    /// When to send SIGKILL. `None` while the job is not being stopped.
    kill_at: Option<Instant>,
    /// When to give up on processes that SIGKILL does not end. `None` before SIGKILL.
    give_up_at: Option<Instant>,
    /// When to stop reading output after the last process has exited.
    drained_by: Option<Instant>,
}

/// The default capacity of a pipe.
const PIPE: usize = 64 * 1024;
/// How long to read output after the last process has exited.
const DRAIN: Duration = Duration::from_millis(250);
/// How often SIGKILL is sent, to reach processes that were forked in between.
const KILL_INTERVAL: Duration = Duration::from_millis(2);

impl Job {
    /// Starts a process. `size` and `answers` apply to a process on a terminal: with `answers`, the
    /// emulator replies to the program's queries.
    pub(super) fn start(
        mut spec: ProcessSpec<'_>,
        scope: &KillScope,
        size: ScreenSize,
        answers: bool,
        redactor: &Redactor,
    ) -> io::Result<Self> {
        let (pid, output) = spec.spawn(scope, size, answers)?;
        let mut job = Self::new(ProcessOwner::new(pid, scope), Some(output), spec.limits);
        job.redactor = StreamRedactor::new(redactor, spec.terminal.is_some());
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
    ) -> io::Result<Self> {
        Ok(Self::new(
            ProcessOwner::Function(FunctionCall::start(function, waker, request)?),
            None,
            limits,
        ))
    }

    fn new(owner: ProcessOwner, output: Option<OwnedFd>, limits: JobLimits) -> Self {
        let started = Instant::now();
        Self {
            check_at: owner.check_interval().map(|interval| started + interval),
            owner,
            stopped_at: None,
            started,
            output,
            terminal: None,
            widened: false,
            redactor: StreamRedactor::new(&Redactor::default(), false),
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

    /// Returns the first process's pid, or 0 for a function.
    pub(super) fn pid(&self) -> u32 {
        self.owner.pid()
    }

    /// Returns the file descriptors to poll: first its output, then one that reports the first
    /// process's exit.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.output
            .as_ref()
            .map(AsFd::as_fd)
            .into_iter()
            .chain(self.owner.fd())
    }

    /// Returns whether keys are waiting to be written to its terminal.
    pub(super) fn has_pending_keys(&mut self) -> bool {
        self.terminal
            .as_mut()
            .is_some_and(|terminal| !terminal.keys().is_empty())
    }

    /// Queues keys for its terminal.
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

    /// Handles the terminal's timers. Returns what the runner must react to, if anything.
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

    /// Returns how long the job has shown no activity.
    pub(super) fn silent_for(&self) -> Duration {
        self.terminal
            .as_ref()
            .map_or(self.active_at, Emulator::changed_at)
            .elapsed()
    }

    /// Reads available output, a few buffers at most so that a flood cannot block the runner.
    /// Continues if the log cannot be written: the agent would hang on a full pipe.
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

    /// Passes on the acts that a function agent has reported.
    pub(super) fn read_acts(&mut self, emit: &mut dyn FnMut(JobOutput<'_>)) {
        let ProcessOwner::Function(call) = &mut self.owner else {
            return;
        };
        for act in call.take_acts() {
            match &act {
                Act::Text(text) => self.append_to_log(text.as_bytes()),
                Act::Finished(text) | Act::Failed { why: text, .. } if !text.is_empty() => {
                    self.append_to_log(format!("{}\n", text.trim_end()).as_bytes());
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

    /// Enlarges the pipe buffer of an agent that prints a lot. Failure is harmless.
    fn widen(&mut self) {
        if let Some(output) = self.output.as_ref().filter(|_| !self.widened) {
            self.widened = true;
            let _ = fcntl_setpipe_size(output, 1 << 20);
        }
    }

    /// Returns the error from writing the log, the first time it is called.
    pub(super) fn take_log_error(&mut self) -> Option<io::Error> {
        self.log_error.take()
    }

    /// Stops the job: SIGTERM, then SIGKILL after the grace period, or SIGKILL at once if `hard` is
    /// set.
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

    /// Checks which of its processes are alive. Returns true if none are.
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

    /// Returns whether its first process or its function has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether to check its processes now, without waiting for a signal.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.owner, ProcessOwner::Function(_))
            || self.next_tick().is_some_and(|at| at <= Instant::now())
    }

    /// Handles timeouts. `empty` means that no process is left. Returns true if the job is over.
    pub(super) fn tick(&mut self, empty: bool) -> bool {
        let now = Instant::now();
        if self.timeout_at.is_some_and(|at| at <= now) && self.ended.is_none() && !self.timed_out {
            self.timed_out = true;
            self.stop(false);
        }
        if empty {
            // The exit status is unknown if the embedding program reaped the child.
            self.ended
                .get_or_insert((ProcessExit::default(), now - self.started));
            let drained_by = *self.drained_by.get_or_insert(now + DRAIN);
            return self.output.is_none() || drained_by <= now;
        }
        if self.ended.is_some() && self.kill_at.is_none() {
            self.orphans = self.owner.remaining().len() as u32;
            self.stop(false);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            let give_up_at = *self.give_up_at.get_or_insert(now + self.limits.survivor);
            self.owner.signal(Signal::KILL);
            return give_up_at <= now;
        }
        false
    }

    /// Returns when [`Job::tick`] must be called at the latest.
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

    /// Applies the progress that its output stream reported.
    pub(super) fn note_progress(&mut self, progress: Progress) {
        let now = Instant::now();
        self.active_at = now;
        self.busy = progress.is_busy;
        self.run_ended_at = progress.has_ended.then_some(now);
    }

    /// Returns when the process will have lingered too long after its stream reported the end.
    pub(super) fn lingers_at(&self) -> Option<Instant> {
        Some(self.run_ended_at.filter(|_| self.ended.is_none())? + self.limits.linger?)
    }

    /// Stops the timer of [`Job::lingers_at`], because the lingering was reported.
    pub(super) fn clear_lingering(&mut self) {
        self.run_ended_at = None;
    }

    /// Returns when its silence will exceed the inactivity timeout. `None` while that cannot
    /// happen.
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

    /// Stops the timer of [`Job::silent_at`], because the silence was reported.
    pub(super) fn clear_silence(&mut self) {
        self.limits.inactivity = None;
    }

    /// Ends the job and returns its result.
    pub(super) fn finish(self) -> JobResult {
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
