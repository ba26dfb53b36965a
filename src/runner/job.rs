//! One supervised agent or check: started in a session of its own, heard, and ended with all that is its own.

use super::owner::{Life, Reach};
use crate::agent::function::{Bell, Call, Function, Invitation};
use crate::agent::redact::{Mask, Veil};
use crate::engine::{Act, Exit, signals};
use crate::os;
use crate::process::capture::Capture;
use crate::process::pty;
use crate::process::pty::Size;
use crate::terminal::emulator::{Service, Terminal, Told};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is to be started.
pub struct Launch<'a> {
    /// Program and arguments.
    pub command: &'a [String],
    /// Where.
    pub dir: &'a Path,
    /// What to add to the environment.
    pub env: &'a [(String, String)],
    /// What to take out of it.
    pub unset: &'a [String],
    /// What it reads; nothing if none.
    pub stdin: Option<File>,
    /// How it is served at a terminal, if it has one in place of pipes.
    pub terminal: Option<Service>,
    /// How patient to be with it.
    pub terms: Terms,
}

/// Where a job's output goes, and how patient to be with it.
pub struct Terms {
    /// Where its output goes.
    pub log: PathBuf,
    /// How much of it is kept.
    pub log_cap: u64,
    /// Stopped when it takes longer than this.
    pub timeout: Option<Duration>,
    /// Noted when it is silent for longer than this.
    pub silence: Option<Duration>,
    /// How long it may stay once its stream says that all is over; none where there is no stream. With one, not
    /// every line counts as a sound: [`Job::got_on`] says which.
    pub linger: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// How long a process may outlive KILL.
    pub survivor: Duration,
}

/// All that is known of a job that is over.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Gone {
    /// How its first process ended.
    pub exit: Exit,
    /// How long that took.
    pub ms: u64,
    /// Bytes that it printed.
    pub bytes: u64,
    /// The end of what it printed; on a terminal, of what its screen showed.
    pub last_text: String,
    /// Whether its screen showed the done pattern.
    pub matched: bool,
    /// Whether it took too long.
    pub timed_out: bool,
    /// Whether it was told to go before it ended.
    pub stopped: bool,
    /// Whether it is a function that never returned.
    pub stuck: bool,
    /// Processes that it had left behind.
    pub leftovers: u32,
    /// Processes that could not be ended.
    pub survivors: Vec<u32>,
    /// What went wrong with its log.
    pub log_error: Option<io::Error>,
}

/// Something that came out of a job.
pub enum Piece<'a> {
    /// It printed this.
    Bytes(&'a [u8]),
    /// It told of this.
    Act(Act<'static>),
}

/// A process, or a function, under way.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Job {
    life: Life,
    /// When it must be looked at, though nobody tells of a change.
    look_at: Option<Instant>,
    /// When it was told to go before it had ended.
    stopped_at: Option<Instant>,
    terms: Terms,
    terminal: Option<Terminal>,
    born: Instant,
    output: Option<OwnedFd>,
    widened: bool,
    veil: Veil,
    capture: Capture,
    log_error: Option<io::Error>,
    log_broken: bool,
    heard_at: Instant,
    /// Whether a tool is at work, so that silence says nothing.
    busy: bool,
    /// When its stream said that all is over.
    over_at: Option<Instant>,
    timeout_at: Option<Instant>,
    timed_out: bool,
    ended: Option<(Exit, Duration)>,
    leftovers: u32,
    /// When TERM has had its time; none while nothing is being ended.
    kill_at: Option<Instant>,
    /// When KILL has had its time; none before KILL.
    give_up_at: Option<Instant>,
    /// When output that nobody can have written any more is waited for no longer.
    drained_by: Option<Instant>,
}

/// What a pipe holds by itself.
const PIPE: usize = 64 * 1024;
/// How long output may still trickle in after the last process is gone.
const DRAIN: Duration = Duration::from_millis(250);
/// Between two looks at processes that were sent KILL.
const KILL_AGAIN: Duration = Duration::from_millis(2);

impl Job {
    /// Starts a process; on a terminal, on one of this size, where queries are answered if nobody else sees them.
    pub fn start(
        launch: Launch<'_>,
        reach: &Reach,
        size: Size,
        answers: bool,
        mask: &Mask,
    ) -> io::Result<Self> {
        let (output, child_end) = if launch.terminal.is_some() {
            pty::open(size)?
        } else {
            let (output, child_end) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&output, true)?;
            (output, child_end)
        };
        let [program, arguments @ ..] = launch.command else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no program"));
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(launch.dir);
        for name in launch.unset {
            command.env_remove(name);
        }
        command.envs(launch.env.iter().map(|(name, value)| (name, value)));
        if launch.terminal.is_some() {
            command
                .stdin(child_end.try_clone()?)
                .env_remove("COLUMNS")
                .env_remove("LINES");
            // A screen that only we look at is of the kind that every program knows.
            if answers {
                command.env("TERM", "xterm-256color");
            }
            os::on_terminal(&mut command);
        } else {
            command.stdin(launch.stdin.map_or_else(Stdio::null, Stdio::from));
            os::in_own_session(&mut command);
        }
        command.stdout(child_end.try_clone()?).stderr(child_end);
        if matches!(reach, Reach::Own { .. }) {
            os::dies_with_parent(&mut command);
        }
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id() as i32).expect("a child has a pid");
        let mut job = Self::new(Life::of(pid, reach), Some(output), launch.terms);
        job.veil = Veil::new(mask, launch.terminal.is_some());
        job.terminal = launch
            .terminal
            .map(|service| Terminal::new(service, size, answers));
        Ok(job)
    }

    /// Calls a function in a thread of its own.
    pub fn call(
        function: &Function,
        bell: &Arc<Bell>,
        to: Invitation,
        terms: Terms,
    ) -> io::Result<Self> {
        Ok(Self::new(
            Life::Call(Call::begin(function, bell, to)?),
            None,
            terms,
        ))
    }

    fn new(life: Life, output: Option<OwnedFd>, terms: Terms) -> Self {
        let born = Instant::now();
        Self {
            look_at: life.pace().map(|pace| born + pace),
            life,
            stopped_at: None,
            born,
            output,
            terminal: None,
            widened: false,
            veil: Veil::new(&Mask::default(), false),
            capture: Capture::new(&terms.log, terms.log_cap, signals::TAIL),
            log_error: None,
            log_broken: false,
            heard_at: born,
            busy: false,
            over_at: None,
            timeout_at: terms.timeout.map(|timeout| born + timeout),
            timed_out: false,
            terms,
            ended: None,
            leftovers: 0,
            kill_at: None,
            give_up_at: None,
            drained_by: None,
        }
    }

    /// Its first process; 0 if it is a function.
    pub fn pid(&self) -> u32 {
        self.life.pid()
    }

    /// What to poll: its output, and where the end of its first process is told, if it is told there.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.output
            .as_ref()
            .map(AsFd::as_fd)
            .into_iter()
            .chain(self.life.fd())
    }

    /// Whether keys wait for it to take them.
    pub fn has_keys(&mut self) -> bool {
        self.terminal
            .as_mut()
            .is_some_and(|terminal| !terminal.keys().is_empty())
    }

    /// Passes on what a person types.
    pub fn press(&mut self, keys: &[u8]) {
        if let Some(terminal) = &mut self.terminal {
            terminal.press(keys);
        }
    }

    /// Makes its screen as large as this.
    pub fn resize(&mut self, size: Size) {
        if let Some((terminal, output)) = self.terminal.as_mut().zip(self.output.as_ref()) {
            terminal.resize(size);
            let _ = pty::resize(output, size);
        }
    }

    /// Does what time asks for at its terminal.
    pub fn turn_terminal(&mut self) -> Option<Told> {
        let near = self.output.as_ref();
        let line_max = || {
            near.is_some_and(pty::gathers_lines)
                .then_some(pty::LINE_MAX)
        };
        let told = self.terminal.as_mut()?.turn(line_max);
        self.type_keys();
        told
    }

    /// Writes as many keys as the terminal takes now.
    fn type_keys(&mut self) {
        let Some((terminal, output)) = self.terminal.as_mut().zip(self.output.as_ref()) else {
            return;
        };
        let keys = terminal.keys();
        while let Ok(count @ 1..) = rustix::io::write(output, &keys[..keys.len().min(4096)]) {
            keys.drain(..count);
        }
    }

    /// How long it has been silent.
    pub fn silent_for(&self) -> Duration {
        self.terminal
            .as_ref()
            .map_or(self.heard_at, Terminal::changed_at)
            .elapsed()
    }

    /// Reads what has come, at most a few pieces so that others get their turn. A log that cannot be
    /// written is noted once; the output is still read, or the agent would hang on a full pipe.
    pub fn read(&mut self, buffer: &mut [u8], heard: &mut dyn FnMut(Piece<'_>)) {
        for _ in 0..8 {
            let Some(output) = &self.output else { return };
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => self.close_output(heard),
                Ok(count) => {
                    if count >= PIPE {
                        self.widen();
                    }
                    let shown = self.veil.feed(&buffer[..count]);
                    self.take(&shown, heard);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.close_output(heard),
            }
        }
    }

    fn close_output(&mut self, heard: &mut dyn FnMut(Piece<'_>)) {
        self.output = None;
        let rest = self.veil.finish();
        if !rest.is_empty() {
            self.take(&rest, heard);
        }
    }

    fn take(&mut self, bytes: &[u8], heard: &mut dyn FnMut(Piece<'_>)) {
        self.keep(bytes);
        if let Some(terminal) = &mut self.terminal {
            terminal.feed(bytes);
        }
        heard(Piece::Bytes(bytes));
    }

    /// Takes down what a function has told.
    pub fn read_notes(&mut self, heard: &mut dyn FnMut(Piece<'_>)) {
        let Life::Call(call) = &mut self.life else {
            return;
        };
        for act in call.acts() {
            match &act {
                Act::Said(text) => self.keep(text.as_bytes()),
                Act::Finished(text) | Act::Failed { why: text, .. } if !text.is_empty() => {
                    self.keep(format!("{}\n", text.trim_end()).as_bytes());
                }
                _ => self.heard_at = Instant::now(),
            }
            heard(Piece::Act(act));
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.terms.linger.is_none() {
            self.heard_at = Instant::now();
        }
        if !self.log_broken {
            self.log_error = self.capture.write(bytes).err();
            self.log_broken = self.log_error.is_some();
        }
    }

    /// More room means fewer turns for a chatty agent. A quiet one does not pay for it, and where the
    /// system refuses everything works as well.
    fn widen(&mut self) {
        if let Some(output) = self.output.as_ref().filter(|_| !self.widened) {
            self.widened = true;
            let _ = fcntl_setpipe_size(output, 1 << 20);
        }
    }

    /// What went wrong with its log, said once.
    pub fn take_log_error(&mut self) -> Option<io::Error> {
        self.log_error.take()
    }

    /// Tells it, and everything below, to go. Again with `hard`: at once.
    pub fn stop(&mut self, hard: bool) {
        let now = Instant::now();
        let kill_at = if hard { now } else { now + self.terms.grace };
        let first = self.kill_at.is_none();
        self.stopped_at = self.stopped_at.or(self.ended.is_none().then_some(now));
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
        if first && !hard {
            self.terminate();
        }
    }

    fn terminate(&self) {
        for signal in [Signal::TERM, Signal::CONT] {
            self.life.signal(signal);
        }
    }

    /// Looks who is left. True means that nothing is.
    pub fn look(&mut self) -> bool {
        let found = self.life.look();
        if let Some(exit) = found.exit.filter(|_| self.ended.is_none()) {
            self.ended = Some((exit, self.born.elapsed()));
        }
        self.look_at = self.life.pace().map(|pace| Instant::now() + pace);
        found.empty
    }

    /// Whether its first process, or the function, is over.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether it must be looked at, though nobody told of a change.
    pub fn is_due(&self) -> bool {
        matches!(self.life, Life::Call(_))
            || self.next_turn().is_some_and(|at| at <= Instant::now())
    }

    /// Does what time asks for. `empty` says that no process is left. True means that it is over.
    pub fn turn(&mut self, empty: bool) -> bool {
        let now = Instant::now();
        if self.timeout_at.is_some_and(|at| at <= now) && self.ended.is_none() && !self.timed_out {
            self.timed_out = true;
            self.stop(false);
        }
        if empty {
            // A child that somebody else reaped has no status to tell.
            self.ended.get_or_insert((Exit::default(), now - self.born));
            let drained_by = *self.drained_by.get_or_insert(now + DRAIN);
            return self.output.is_none() || drained_by <= now;
        }
        if self.ended.is_some() && self.kill_at.is_none() {
            self.leftovers = self.life.left().len() as u32;
            self.stop(false);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            let give_up_at = *self.give_up_at.get_or_insert(now + self.terms.survivor);
            self.life.signal(Signal::KILL);
            return give_up_at <= now;
        }
        false
    }

    /// When [`Job::turn`] must be called again at the latest.
    pub fn next_turn(&self) -> Option<Instant> {
        let again = self.give_up_at.map(|_| Instant::now() + KILL_AGAIN);
        let timeout = self
            .timeout_at
            .filter(|_| self.ended.is_none() && !self.timed_out);
        let kill = self.kill_at.filter(|_| self.give_up_at.is_none());
        let screen = self.terminal.as_ref().and_then(Terminal::next_turn);
        let all = [
            again,
            timeout,
            kill,
            self.look_at,
            self.drained_by,
            self.silent_at(),
            self.lingers_at(),
            screen,
        ];
        all.into_iter().flatten().min()
    }

    /// Its stream tells that it got on, whether a tool is at work now, and whether all is over.
    pub fn got_on(&mut self, busy: bool, over: bool) {
        let now = Instant::now();
        self.heard_at = now;
        self.busy = busy;
        self.over_at = over.then_some(now);
    }

    /// When it has stayed for too long after all was over.
    pub fn lingers_at(&self) -> Option<Instant> {
        Some(self.over_at.filter(|_| self.ended.is_none())? + self.terms.linger?)
    }

    /// Stops looking whether it lingers.
    pub fn lingering_noted(&mut self) {
        self.over_at = None;
    }

    /// When its silence is too long.
    pub fn silent_at(&self) -> Option<Instant> {
        let silence = self
            .terms
            .silence
            .filter(|_| self.ended.is_none() && !self.busy)?;
        self.terminal
            .as_ref()
            .map_or(Some(self.heard_at + silence), |terminal| {
                terminal.still_at(silence)
            })
    }

    /// Stops listening for silence.
    pub fn silence_noted(&mut self) {
        self.terms.silence = None;
    }

    /// Everything there is to say of it, once it is over.
    pub fn bury(self) -> Gone {
        let (exit, time) = self.ended.unwrap_or((Exit::default(), self.born.elapsed()));
        let survivors = if self.drained_by.is_some() {
            vec![]
        } else {
            self.life.left()
        };
        let screen = self.terminal.map(Terminal::finish);
        let (last_text, matched) = screen.unwrap_or_else(|| (self.capture.last_text(), false));
        Gone {
            exit,
            ms: time.as_millis() as u64,
            bytes: self.capture.total(),
            last_text,
            matched,
            timed_out: self.timed_out,
            stopped: self.stopped_at.is_some(),
            stuck: self.life.let_go(),
            leftovers: self.leftovers,
            survivors,
            log_error: if self.log_broken {
                self.log_error
            } else {
                self.capture.finish().err()
            },
        }
    }
}
