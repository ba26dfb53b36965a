//! Who speaks next? The imperative shell: it hears the world, writes, judges, shows and obeys.
//!
//! Nothing here is policy. An event is written before it is judged, and durable before anything is
//! obeyed because of it: one sync covers the end of an iteration and the start of the next.

mod gather;

use crate::drive::job::{Gone, Job, Launch};
use crate::drive::scan::Scanner;
use crate::drive::task::TaskDir;
use crate::drive::{Heard, Key, World, git, leftover, script, signals, tree};
use crate::engine::event::{CheckReport, Door, Fault, Notice, Report, Said, Wish};
use crate::engine::{Effect, Event, Now, Outcome, Phase, State, signal, words};
use crate::store::{self, Header, Journal, Line, LoopDir, cache, dir, inbox};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Who looks on: told of everything, asked for nothing.
pub trait Watch {
    /// A line was written and judged.
    fn event(&mut self, line: &Line, state: &State);
    /// The agent printed something.
    fn output(&mut self, bytes: &[u8]);
    /// Time went by; says when to be called again.
    fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration>;
    /// Something that is worth a word to a person.
    fn warn(&mut self, words: &str);
}

/// Why a runner left.
#[derive(Debug, PartialEq)]
pub enum Left {
    /// The loop is over.
    Ended(Outcome),
    /// The loop is paused.
    Paused,
    /// The terminal or the warden went away: the tree is dead, and the journal has no ending.
    HungUp,
}

/// What stops a runner itself.
#[derive(Debug)]
pub enum Error {
    /// The journal could not be read or written.
    Store(store::Error),
    /// The system refused something basic.
    World(io::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::World(error)
    }
}

/// One runner of one loop; its caller holds the lock.
pub struct Runner<'a> {
    dir: LoopDir,
    header: Header,
    journal: Journal,
    state: State,
    world: World,
    task: TaskDir,
    base: Result<git::Base, String>,
    watch: &'a mut dyn Watch,
    epoch: Instant,
    epoch_clock_ms: u64,
    wake_at: Option<Instant>,
    tick_at: Option<Instant>,
    saved_at: Option<Instant>,
    disk_full: bool,
}

enum Flow {
    Wait,
    Again,
    Leave,
}

/// The cache is written at most this often.
const SAVE_EVERY: Duration = Duration::from_millis(100);

impl<'a> Runner<'a> {
    /// Takes up a loop where its journal stands, after sweeping what an earlier runner left behind.
    pub fn open(dir: LoopDir, opened: store::Opened, watch: &'a mut dyn Watch) -> Result<Self, Error> {
        let store::Opened { journal, header, state, warnings } = opened;
        for warning in warnings {
            watch.warn(&warning);
        }
        let world = World::open()?;
        let task = TaskDir::of(&state.plan.workspace, &header.name);
        let base = gather::base(&dir, &state.plan.workspace);
        let epoch_clock_ms = state.clock_ms;
        Ok(Self {
            dir,
            header,
            journal,
            state,
            world,
            task,
            base,
            watch,
            epoch: Instant::now(),
            epoch_clock_ms,
            wake_at: None,
            tick_at: None,
            saved_at: None,
            disk_full: false,
        })
    }

    /// Runs until the loop ends, pauses, or the terminal goes away.
    pub fn run(mut self) -> Result<Left, Error> {
        let left = self.turn_until_left();
        if left.is_err() {
            // Whatever broke: nothing that was started stays.
            self.clear_world();
        }
        let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
        left
    }

    fn turn_until_left(&mut self) -> Result<Left, Error> {
        self.recover()?;
        loop {
            match self.obey()? {
                Flow::Again => continue,
                Flow::Leave => break,
                Flow::Wait => {}
            }
            if self.hear()? {
                self.clear_world();
                return Ok(Left::HungUp);
            }
        }
        Ok(match &self.state.phase {
            Phase::Ended(outcome) => Left::Ended(outcome.clone()),
            _ => Left::Paused,
        })
    }

    fn recover(&mut self) -> Result<(), Error> {
        let cut_short = matches!(self.state.phase, Phase::Running { started: true, .. } | Phase::Killing { .. });
        if !matches!(self.state.phase, Phase::Waiting) {
            let grace = &self.state.plan.grace;
            let (grace, survivor) = (millis(grace.term_ms), millis(grace.survivor_ms));
            let (swept, survivors) = leftover::sweep(&self.header.id, self.state.process, grace, survivor);
            if swept > 0 {
                self.watch.warn(&format!("ended {} left by an earlier run", words::plural(swept as u64, "process")));
            }
            if !survivors.is_empty() {
                let detail = format!("processes of an earlier run cannot be ended: {survivors:?}");
                self.tell(Event::Faulted { class: Fault::Survivors, detail })?;
            }
        }
        let cost_usd = if cut_short { self.task.look(None).cost_usd } else { None };
        self.read_inbox()?;
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        self.tell(Event::Opened { pid, version, cost_usd })?;
        if self.state.iteration > 0 {
            self.task.file_away(&self.dir.make_iteration(self.state.iteration)?);
        }
        let _ = self.task.ensure();
        drop(dir::append_file(&self.dir.inbox()));
        self.world.watch(&self.dir.inbox());
        if let Some(parent) = self.state.plan.proof.file.as_ref().and_then(|file| file.parent()) {
            self.world.watch(&self.state.plan.workspace.join(parent));
        }
        Ok(())
    }

    // ---- write and judge -------------------------------------------------------------------------

    fn now(&self) -> Now {
        let clock = self.epoch_clock_ms + self.epoch.elapsed().as_millis() as u64;
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now { wall_ms: wall.as_millis() as i64, delta_ms: clock.saturating_sub(self.state.clock_ms) }
    }

    fn tell(&mut self, event: Event) -> Result<(), Error> {
        let now = self.now();
        let line = Line { at_ms: now.wall_ms, ms: now.delta_ms, event };
        if let Err(error) = self.journal.append(&line) {
            if self.disk_full || !error.is_disk_full() {
                return Err(error.into());
            }
            // The reserve makes room for the last words.
            self.disk_full = true;
            self.journal.spend_reserve()?;
            self.journal.append(&line)?;
            self.state.step(now, &line.event);
            self.watch.event(&line, &self.state);
            let detail = format!("no space left on the disk of {}", self.dir.path().display());
            return self.tell(Event::Faulted { class: Fault::Disk, detail });
        }
        self.state.step(now, &line.event);
        self.watch.event(&line, &self.state);
        if self.saved_at.is_none_or(|at| at.elapsed() > SAVE_EVERY) {
            let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
            self.saved_at = Some(Instant::now());
        }
        Ok(())
    }

    // ---- hear ------------------------------------------------------------------------------------

    /// Waits for the world and writes down what it says. True: the terminal or the warden is gone.
    fn hear(&mut self) -> Result<bool, Error> {
        let until = [self.wake_at, self.tick_at].into_iter().flatten().min();
        let watch = &mut *self.watch;
        let heard = self.world.hear(until, &mut |bytes| watch.output(bytes));
        for heard in heard {
            match heard {
                Heard::Signal(signals::Heard::HangUp) => return Ok(true),
                Heard::Signal(signals::Heard::Interrupt) => self.ask(Wish::Stop, Door::Sigint)?,
                Heard::Signal(signals::Heard::Terminate) => self.ask(Wish::Pause, Door::Sigterm)?,
                Heard::Signal(signals::Heard::Child) => {}
                Heard::Look => self.look()?,
                Heard::Pattern(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed { iteration, notice: Notice::Pattern })?;
                }
                Heard::Silence(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed { iteration, notice: Notice::Silence })?;
                }
                Heard::Pattern(_) | Heard::Silence(_) => {}
                Heard::LogError(error) => {
                    let detail = format!("cannot write the output's log: {error}");
                    self.tell(Event::Faulted { class: Fault::Disk, detail })?;
                }
                Heard::Gone(Key::Agent(iteration), gone, matched) => self.agent_gone(iteration, *gone, matched)?,
                Heard::Gone(Key::Check(iteration, check), gone, _) => self.check_gone(iteration, check, &gone)?,
            }
        }
        if self.wake_at.is_some_and(|at| at <= Instant::now()) {
            self.wake_at = None;
            self.tell(Event::Woke)?;
        }
        if self.tick_at.is_none_or(|at| at <= Instant::now()) {
            let next = self.watch.tick(&self.state, self.world.silent_for());
            self.tick_at = next.map(|next| Instant::now() + next);
        }
        Ok(false)
    }

    fn ask(&mut self, wish: Wish, by: Door) -> Result<(), Error> {
        self.tell(Event::Asked { wish, by, inbox: None })
    }

    fn look(&mut self) -> Result<(), Error> {
        self.read_inbox()?;
        self.look_for_markers()
    }

    fn read_inbox(&mut self) -> Result<(), Error> {
        for (message, offset) in inbox::read(&self.dir, self.state.inbox_offset)? {
            if let Some(event) = store::event_of(message, offset) {
                self.tell(event)?;
            }
        }
        Ok(())
    }

    fn look_for_markers(&mut self) -> Result<(), Error> {
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        if let Some(detail) = found.wrong {
            return self.tell(Event::Faulted { class: Fault::Marker, detail });
        }
        let iteration = self.state.iteration;
        for marker in found.markers {
            if !self.state.claims.markers.contains(&marker) {
                self.tell(Event::Noticed { iteration, notice: Notice::Marker(marker) })?;
            }
        }
        Ok(())
    }

    fn agent_gone(&mut self, iteration: u32, gone: Gone, matched: bool) -> Result<(), Error> {
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        let mut said = self.read_words(iteration, &gone.last_text);
        said.matched = matched;
        said.blocked = said.blocked.or(found.blocked);
        let report = Report {
            exit: gone.exit,
            ms: gone.ms,
            said,
            markers: found.markers,
            cost_usd: found.cost_usd,
            bytes: gone.bytes,
            leftovers: gone.leftovers,
            survivors: gone.survivors,
        };
        self.tell(Event::Ended { iteration, report })?;
        if let Some(error) = gone.log_error {
            let detail = format!("cannot write the output's log: {error}");
            self.tell(Event::Faulted { class: Fault::Disk, detail })?;
        }
        if let Some(detail) = found.wrong {
            self.tell(Event::Faulted { class: Fault::Marker, detail })?;
        }
        self.task.file_away(&self.dir.iteration(iteration));
        Ok(())
    }

    fn read_words(&self, iteration: u32, text: &str) -> Said {
        if !text.contains('<') {
            return Said::default();
        }
        let prompt = std::fs::read(self.dir.iteration(iteration).join("prompt.md")).unwrap_or_default();
        let own = signal::Echo::of(&String::from_utf8_lossy(&prompt)).cut(text);
        signal::read(&own, &self.state.promises())
    }

    fn check_gone(&mut self, iteration: u32, check: usize, gone: &Gone) -> Result<(), Error> {
        if !self.state.orders().contains(&Effect::Check { iteration, check }) {
            return Ok(());
        }
        let slug = &self.state.plan.proof.checks[check].slug;
        let log = self.dir.iteration(iteration).join(format!("check-{slug}.log"));
        if let Err(error) = self.task.publish(&log, iteration, slug) {
            self.watch.warn(&format!("cannot copy a check's output into the workspace: {error}"));
        }
        let report = CheckReport { exit: gone.exit, timed_out: gone.timed_out, ms: gone.ms };
        self.tell(Event::Checked { iteration, check, report })?;
        if !gone.survivors.is_empty() {
            let detail = format!("processes of a check outlived KILL: {:?}", gone.survivors);
            self.tell(Event::Faulted { class: Fault::Survivors, detail })?;
        }
        Ok(())
    }

    // ---- obey ------------------------------------------------------------------------------------

    fn obey(&mut self) -> Result<Flow, Error> {
        let orders = self.state.orders();
        self.wake_at = None;
        if let Some(key) = self.world.under_way() {
            let ordered = orders.iter().any(|order| match order {
                Effect::Run { iteration } => key == Key::Agent(*iteration),
                Effect::Check { iteration, check } => key == Key::Check(*iteration, *check),
                _ => false,
            });
            if !ordered {
                self.world.stop(orders.iter().any(|order| matches!(order, Effect::Kill { hard: true, .. })));
                return Ok(Flow::Wait);
            }
        }
        for order in orders {
            match order {
                Effect::Run { .. } | Effect::Check { .. } if self.world.under_way().is_some() => {}
                Effect::Run { iteration } => return self.begin_agent(iteration),
                Effect::Check { iteration, check } => return self.begin_check(iteration, check),
                Effect::Kill { .. } => {}
                Effect::WakeAt(clock_ms) => {
                    self.journal.sync()?;
                    self.wake_at = Some(self.epoch + millis(clock_ms.saturating_sub(self.epoch_clock_ms)));
                }
                Effect::Finish(outcome) => {
                    self.finish(&outcome)?;
                    return Ok(Flow::Again);
                }
                Effect::Leave => {
                    self.journal.sync()?;
                    return Ok(Flow::Leave);
                }
            }
        }
        Ok(Flow::Wait)
    }

    fn begin_agent(&mut self, iteration: u32) -> Result<Flow, Error> {
        self.look_for_markers()?;
        if !self.state.orders().contains(&Effect::Run { iteration }) {
            return Ok(Flow::Again);
        }
        if let Err((class, detail)) = self.ready() {
            self.tell(Event::Faulted { class, detail })?;
            return Ok(Flow::Again);
        }
        let prompt = match self.prompt() {
            Ok(prompt) => prompt,
            Err((class, detail)) => {
                self.tell(Event::Faulted { class, detail })?;
                return Ok(Flow::Again);
            }
        };
        let path = self.dir.make_iteration(iteration)?.join("prompt.md");
        if let Err(error) = dir::create_file(&path).and_then(|mut file| io::Write::write_all(&mut file, &prompt)) {
            let detail = format!("cannot write {}: {error}", path.display());
            self.tell(Event::Faulted { class: Fault::Disk, detail })?;
            return Ok(Flow::Again);
        }
        self.tell(Event::Started { iteration })?;
        if self.disk_full {
            return Ok(Flow::Again);
        }
        self.journal.sync()?;
        match self.start_agent(iteration, &path) {
            Ok(job) => {
                let pid = job.pid();
                let scanner = self.scanner(&prompt);
                self.world.begin(Key::Agent(iteration), job, scanner);
                let start_time = tree::start_time(pid).unwrap_or(0);
                self.tell(Event::Spawned { iteration, pid, start_time })?;
            }
            Err(error) => self.not_started(iteration, &error)?,
        }
        Ok(Flow::Again)
    }

    fn start_agent(&self, iteration: u32, prompt: &Path) -> io::Result<Job> {
        let plan = &self.state.plan;
        let command = script::resolve(&plan.agent.command);
        let task_dir = self.task.path().to_string_lossy().into_owned();
        let env = [
            ("RALPH_LOOP", self.header.name.clone()),
            ("RALPH_ITERATION", iteration.to_string()),
            ("RALPH_TASK_DIR", task_dir.clone()),
            ("TASK_FOLDER", task_dir),
            (leftover::MARK, leftover::mark(&self.header.id)),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        Job::start(&Launch {
            command: &command,
            dir: &plan.workspace,
            env: &env,
            stdin: Some(prompt),
            log: self.dir.iteration(iteration).join("output.log"),
            log_cap: plan.log_cap,
            timeout: None,
            silence: plan.limits.inactivity_ms.map(millis),
            grace: millis(plan.grace.term_ms),
            survivor: millis(plan.grace.survivor_ms),
        })
    }

    /// A program that is not there will not be there next time; anything else may pass.
    fn not_started(&mut self, iteration: u32, error: &io::Error) -> Result<(), Error> {
        let program = self.state.plan.agent.command.first().cloned().unwrap_or_default();
        let class = match error.kind() {
            io::ErrorKind::NotFound => Fault::NotFound,
            io::ErrorKind::PermissionDenied => Fault::Permission,
            _ => {
                self.watch.warn(&format!("cannot start {program}: {error}"));
                return self.tell(Event::Ended { iteration, report: Report::default() });
            }
        };
        self.tell(Event::Faulted { class, detail: format!("cannot start {program}: {error}") })
    }

    fn begin_check(&mut self, iteration: u32, check: usize) -> Result<Flow, Error> {
        self.journal.sync()?;
        let plan = &self.state.plan;
        let what = &plan.proof.checks[check];
        let log = self.dir.make_iteration(iteration)?.join(format!("check-{}.log", what.slug));
        let command = ["sh", "-c", &what.command].map(str::to_owned);
        let mark = [(leftover::MARK.to_owned(), leftover::mark(&self.header.id))];
        let started = Job::start(&Launch {
            command: &command,
            dir: &plan.workspace,
            env: &mark,
            stdin: None,
            log,
            log_cap: plan.log_cap,
            timeout: Some(millis(what.timeout_ms)),
            silence: None,
            grace: millis(plan.grace.term_ms),
            survivor: millis(plan.grace.survivor_ms),
        });
        match started {
            Ok(job) => self.world.begin(Key::Check(iteration, check), job, None),
            Err(error) => {
                let detail = format!("cannot run the check `{}`: {error}", what.command);
                let class = if plan.workspace.is_dir() { Fault::Disk } else { Fault::Workspace };
                self.tell(Event::Faulted { class, detail })?;
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Wait)
    }

    fn scanner(&self, prompt: &[u8]) -> Option<Scanner> {
        let pattern = self.state.plan.proof.pattern.as_deref()?;
        let pattern = regex::Regex::new(pattern).ok()?;
        Some(Scanner::new(pattern, &String::from_utf8_lossy(prompt)))
    }

    fn finish(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let state = &self.state;
        self.tell(Event::Finished {
            outcome: outcome.verdict(),
            stop_reason: outcome.stop_reason().to_owned(),
            success: outcome.exit_code() == 0,
            exit_code: outcome.exit_code(),
            iterations: state.iteration,
            cost_usd: state.known_cost(),
            duration_s: state.active_ms as f64 / 1000.0,
            worktree: None,
        })?;
        self.journal.sync()?;
        Ok(())
    }

    fn clear_world(&mut self) {
        while self.world.under_way().is_some() {
            self.world.stop(false);
            self.world.hear(None, &mut |_| {});
        }
    }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
