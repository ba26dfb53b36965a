//! Who speaks next? The imperative shell: it hears the world, writes, judges, shows and obeys.
//!
//! Nothing here is policy. An event is written before it is judged, and durable before anything is
//! obeyed because of it: one sync covers the end of an iteration and the start of the next.

mod agent_exit;
mod bus_relay;
mod children;
pub(crate) mod job;
pub(crate) mod notify;
pub(crate) mod owner;
pub(crate) mod poll_schedule;
mod prompt;
pub(crate) mod reactor;
mod reconcile;
mod recover_usage;
mod scm;
mod screen_text;
pub mod session;

use self::job::Gone;
use self::reactor::{Heard, Key, World};
use crate::agent::decode::Habits;
use crate::agent::task_dir::TaskDir;
use crate::engine::act::{Act, Tally};
use crate::engine::event::{CheckReport, Door, Fault, Notice, Wish};
use crate::engine::{Effect, Event, Marker, Now, Outcome, Phase, State, format};
use crate::git;
use crate::process::{orphans, pty, signals};
use crate::store;
use crate::store::{Bus, Header, Home, Journal, Line, LoopDir, Pulse, cache, dir, inbox};
use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// Who looks on: told of everything, asked for nothing.
pub trait Watch {
    /// A line was written and judged.
    fn event(&mut self, line: &Line, state: &State);
    /// The agent did something that is worth a word.
    fn act(&mut self, act: &Act<'_>);
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
    /// The next iteration is that of the session that the loop lives in.
    Lent,
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
    /// What the running agent's acts come to.
    tally: Tally,
    /// How the agent says that it was not allowed something.
    /// What each agent's output is read for, in the plan's order.
    habits: Vec<Habits>,
    /// The newest prompt, and its iteration.
    prompt: (u32, Vec<u8>),
    base: Result<git::Base, String>,
    watch: &'a mut dyn Watch,
    epoch: Instant,
    epoch_clock_ms: u64,
    wake_at: Option<Instant>,
    /// An alarm by the clock on the wall.
    wake_wall_ms: Option<i64>,
    tick_at: Option<Instant>,
    saved_at: Option<Instant>,
    pulse: Pulse,
    beat_at: Instant,
    disk_full: bool,
    /// Those that are waited for.
    children: Option<children::Children>,
    /// That of the loop, and that of its project.
    buses: [Bus; 2],
    /// Whether it was said that a bus cannot be written.
    bus_complained: bool,
    /// Who has the agent, where ralph has not.
    client: Option<session::Client>,
}

enum Flow {
    Wait,
    HungUp,
    Again,
    Leave,
}

/// While all agents rest, the clock on the wall is looked at this often.
const WALL_LOOK: Duration = Duration::from_secs(60);
/// The cache is written at most this often.
const SAVE_EVERY: Duration = Duration::from_millis(100);
/// Whoever is awake says so this often; so much time, and what nobody woke for, is lost to a crash.
const BEAT: Duration = Duration::from_millis(900);

impl<'a> Runner<'a> {
    /// Takes up a loop where its journal stands, after sweeping what an earlier runner left behind.
    pub fn open(
        dir: LoopDir,
        opened: store::Opened,
        world: World,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, Error> {
        let store::Opened {
            journal,
            header,
            state,
            warnings,
        } = opened;
        for warning in warnings {
            watch.warn(&warning);
        }
        let task = TaskDir::of(&state.plan.workspace, &header.name);
        // A session's prompts have no diff, and nobody waits for git there.
        let base = if state.is_inside() {
            Err(String::new())
        } else {
            prompt::base(&dir, &state.plan.workspace)
        };
        let project = git::project(&state.plan.workspace);
        let buses = [Bus::of_loop(&dir), Home::of(&dir).project_bus(&project)];
        let (reached_ms, pulse) = Pulse::open(&dir)?;
        let lived_on = !matches!(
            state.phase,
            Phase::Waiting | Phase::Paused | Phase::Ended(_)
        );
        let epoch_clock_ms = if lived_on {
            state.clock_ms.max(reached_ms)
        } else {
            state.clock_ms
        };
        Ok(Self {
            dir,
            header,
            journal,
            habits: state.plan.agents().map(Habits::of).collect(),
            state,
            world,
            task,
            tally: Tally::default(),
            prompt: (0, Vec::new()),
            base,
            watch,
            epoch: Instant::now(),
            epoch_clock_ms,
            wake_at: None,
            wake_wall_ms: None,
            tick_at: None,
            saved_at: None,
            pulse,
            beat_at: Instant::now(),
            disk_full: false,
            children: None,
            buses,
            bus_complained: false,
            client: None,
        })
    }

    /// Runs until the loop ends, pauses, or the terminal goes away.
    pub fn run(mut self) -> Result<(Left, Header, State), Error> {
        let left = self.turn_until_left();
        if left.is_err() {
            // Whatever broke: nothing that was started stays.
            self.clear_world();
        }
        if !self.journal.is_gone() {
            let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
        }
        Ok((left?, self.header, self.state))
    }

    fn turn_until_left(&mut self) -> Result<Left, Error> {
        self.recover()?;
        self.go_on()
    }

    fn go_on(&mut self) -> Result<Left, Error> {
        loop {
            match self.obey()? {
                Flow::Again => continue,
                Flow::Leave => break,
                Flow::HungUp => return Ok(self.hung_up()),
                Flow::Wait => {}
            }
            if self.hear(None)? {
                return Ok(self.hung_up());
            }
        }
        Ok(match &self.state.phase {
            Phase::Ended(outcome) => Left::Ended(outcome.clone()),
            Phase::Running { .. } => Left::Lent,
            _ => Left::Paused,
        })
    }

    fn recover(&mut self) -> Result<(), Error> {
        let cut_short = self.in_iteration();
        let mut survivors = Vec::new();
        if !matches!(self.state.phase, Phase::Waiting) && !orphans::booted_since(self.state.wall_ms)
        {
            let grace = &self.state.plan.grace;
            let (grace, survivor) = (millis(grace.term_ms), millis(grace.survivor_ms));
            let swept;
            let friends = self.world.friends();
            // That of a session is its client's.
            let process = self.state.process.filter(|_| !self.state.is_inside());
            (swept, survivors) = orphans::sweep(&self.header.id, process, friends, grace, survivor);
            if swept > 0 {
                self.watch.warn(&format!(
                    "ended {} left by an earlier run",
                    format::processes(swept)
                ));
            }
        }
        let (cost_usd, tokens) = if cut_short {
            self.recount()
        } else {
            (None, None)
        };
        if self.state.iteration > 0 && !cut_short {
            // A crash may have come between an iteration's end and this. What lies there besides is news.
            self.take_markers_away()?;
            if self.state.claims.markers.contains(&Marker::Bus) {
                self.relay()?;
            }
        }
        self.read_inbox()?;
        for wish in self.world.wishes() {
            self.ask(wish, Door::Host)?;
        }
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        self.tell(Event::Opened {
            pid,
            version,
            cost_usd,
            tokens,
            inside: false,
        })?;
        if cut_short {
            // The agent may have outlived its runner, and have said something since.
            self.look_for_markers()?;
            self.take_markers_away()?;
        }
        // After the inbox: a wish to go on forgives what had ended the loop, and this is not to be forgiven.
        if !survivors.is_empty() {
            let detail = format!("processes of an earlier run cannot be ended: {survivors:?}");
            self.tell(Event::Faulted {
                class: Fault::Survivors,
                detail,
            })?;
        }
        let _ = self.task.ensure();
        drop(dir::append_file(&self.dir.inbox()));
        self.watch_files();
        Ok(())
    }

    /// Watches where others leave a word. A place may have gone and come again, so this is repeated.
    fn watch_files(&mut self) {
        self.world.watch_anew();
        self.world.watch(&self.dir.inbox());
        self.world.watch(self.task.path());
        if let Some(parent) = self
            .state
            .plan
            .proof
            .file
            .as_ref()
            .and_then(|file| file.parent())
        {
            self.world.watch(&self.state.plan.workspace.join(parent));
        }
    }

    // ---- write and judge -------------------------------------------------------------------------

    fn clock_ms(&self) -> u64 {
        self.epoch_clock_ms + self.epoch.elapsed().as_millis() as u64
    }

    fn now(&self) -> Now {
        let clock = self.clock_ms();
        Now {
            wall_ms: wall_ms(),
            delta_ms: clock.saturating_sub(self.state.clock_ms),
        }
    }

    fn tell(&mut self, event: Event) -> Result<(), Error> {
        let now = self.now();
        let event = self.without_secrets(event);
        let line = Line {
            at_ms: now.wall_ms,
            ms: now.delta_ms,
            event,
        };
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
            return self.tell(Event::Faulted {
                class: Fault::Disk,
                detail,
            });
        }
        self.state.step(now, &line.event);
        self.watch.event(&line, &self.state);
        if self.saved_at.is_none_or(|at| at.elapsed() > SAVE_EVERY) {
            let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
            self.saved_at = Some(Instant::now());
        }
        Ok(())
    }

    /// The event with every secret in its words covered, before anybody sees it.
    fn without_secrets(&self, event: Event) -> Event {
        let mask = self.world.mask();
        if mask.is_empty() || !event.has_words() {
            return event;
        }
        let covered =
            serde_json::to_string(&event)
                .ok()
                .and_then(|text| match mask.cover_text(&text) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(text) => serde_json::from_str(&text).ok(),
                });
        covered.unwrap_or(event)
    }

    // ---- hear ------------------------------------------------------------------------------------

    /// Waits for the world and writes down what it says. True: the terminal or the warden is gone.
    fn hear(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        let until = [until, self.wake_at, self.wall_alarm(), self.tick_at]
            .into_iter()
            .flatten()
            .min();
        let (watch, tally) = (&mut *self.watch, &mut self.tally);
        let heard = self.world.hear(until, &mut |act| {
            if tally.count(&act) {
                watch.act(&act);
            }
        });
        if self.beat_at.elapsed() >= BEAT {
            self.beat_at = Instant::now();
            let _ = self.pulse.beat(self.clock_ms());
        }
        for heard in heard {
            match heard {
                Heard::Signal(signals::Heard::HangUp) => return Ok(true),
                // A client that does not want to wait ends its hook: the loop goes on at the next one.
                Heard::Signal(signals::Heard::Interrupt | signals::Heard::Terminate)
                    if self.client.is_some() =>
                {
                    return Ok(true);
                }
                Heard::Signal(signals::Heard::Interrupt) => self.ask(Wish::Stop, Door::Sigint)?,
                Heard::Signal(signals::Heard::Terminate) => self.ask(Wish::Pause, Door::Sigterm)?,
                Heard::Asked(wish) => self.ask(wish, Door::Host)?,
                Heard::Look => self.look()?,
                Heard::Pattern(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed {
                        iteration,
                        notice: Notice::Pattern,
                        words: None,
                    })?;
                }
                Heard::Silence(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed {
                        iteration,
                        notice: Notice::Silence,
                        words: None,
                    })?;
                }
                Heard::Unready(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed {
                        iteration,
                        notice: Notice::Unready,
                        words: None,
                    })?;
                }
                Heard::Lingering(Key::Agent(iteration)) => {
                    self.tell(Event::Noticed {
                        iteration,
                        notice: Notice::Lingering,
                        words: None,
                    })?;
                }
                Heard::TooLong(bytes) => {
                    self.tell(Event::Faulted {
                        class: Fault::Usage,
                        detail: pty::too_long(bytes),
                    })?;
                }
                Heard::Signal(signals::Heard::Child | signals::Heard::Resized)
                | Heard::Pattern(_)
                | Heard::Silence(_)
                | Heard::Unready(_)
                | Heard::Lingering(_)
                | Heard::Gone(Key::Notify, ..) => {}
                Heard::LogError(error) => {
                    let detail = format!("cannot write the output's log: {error}");
                    self.tell(Event::Faulted {
                        class: Fault::Disk,
                        detail,
                    })?;
                }
                Heard::Gone(Key::Agent(iteration), gone, matched) => {
                    self.agent_gone(iteration, *gone, matched)?;
                }
                Heard::Gone(Key::Check(iteration, check), gone, _) => {
                    self.check_gone(iteration, check, &gone)?;
                }
                Heard::Gone(Key::Commit(iteration, task), gone, _) => {
                    self.task_gone(iteration, task, &gone)?;
                }
            }
        }
        if self.wake_at.is_some_and(|at| at <= Instant::now()) {
            self.wake_at = None;
            self.tell(Event::Woke)?;
        }
        if self.wake_wall_ms.is_some_and(|at| at <= wall_ms()) {
            self.wake_wall_ms = None;
            self.tell(Event::Woke)?;
        }
        if self.tick_at.is_none_or(|at| at <= Instant::now()) {
            let next = self.watch.tick(&self.state, self.world.silent_for());
            self.tick_at = next.map(|next| Instant::now() + next);
        }
        Ok(false)
    }

    /// When to look at the clock on the wall again. It may be set, and a machine that sleeps does not count its own
    /// time: so it is looked at every now and then.
    fn wall_alarm(&self) -> Option<Instant> {
        let left = self.wake_wall_ms?.saturating_sub(wall_ms()).max(0) as u64;
        Some(Instant::now() + millis(left).min(WALL_LOOK))
    }

    fn ask(&mut self, wish: Wish, by: Door) -> Result<(), Error> {
        self.tell(Event::Asked {
            wish,
            by,
            inbox: None,
        })
    }

    fn look(&mut self) -> Result<(), Error> {
        self.watch_files();
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

    /// Whether the journal says that an agent runs.
    fn in_iteration(&self) -> bool {
        matches!(
            self.state.phase,
            Phase::Running { started: true, .. } | Phase::Killing { .. }
        )
    }

    fn look_for_markers(&mut self) -> Result<(), Error> {
        self.relay()?;
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        if let Some(detail) = found.wrong {
            return self.tell(Event::Faulted {
                class: Fault::Marker,
                detail,
            });
        }
        let iteration = self.state.iteration;
        let any = found.markers.iter().any(|marker| *marker != Marker::File);
        for marker in found.markers {
            if !self.state.claims.markers.contains(&marker) {
                let words = found.blocked.clone().filter(|_| marker == Marker::Blocked);
                self.tell(Event::Noticed {
                    iteration,
                    notice: Notice::Marker(marker),
                    words,
                })?;
            }
        }
        // Between iterations it is judged at once, and must not count in the next one as well.
        if any && !self.in_iteration() {
            self.take_markers_away()?;
        }
        Ok(())
    }

    /// What was judged goes into the newest iteration's directory; what stayed would speak again.
    fn take_markers_away(&mut self) -> Result<(), Error> {
        let dir = self.dir.iteration(self.state.iteration);
        match self
            .task
            .file_away(&self.state.claims.markers, &dir, self.world.mask())
        {
            Ok(()) => Ok(()),
            Err(detail) => self.tell(Event::Faulted {
                class: Fault::Marker,
                detail,
            }),
        }
    }

    fn check_gone(&mut self, iteration: u32, check: usize, gone: &Gone) -> Result<(), Error> {
        if !self
            .state
            .orders()
            .contains(&Effect::Check { iteration, check })
        {
            return Ok(());
        }
        let what = &self.state.plan.proof.checks[check];
        let log = self.dir.check_log(iteration, &what.slug);
        if let Err(error) = self.task.publish(&log, &what.guardrail(iteration)) {
            self.watch.warn(&format!(
                "cannot copy a check's output into the workspace: {error}"
            ));
        }
        let report = CheckReport {
            exit: gone.exit,
            timed_out: gone.timed_out,
            ms: gone.ms,
        };
        self.tell(Event::Checked {
            iteration,
            check,
            report,
        })?;
        if !gone.survivors.is_empty() {
            let detail = format!("processes of a check outlived KILL: {:?}", gone.survivors);
            self.tell(Event::Faulted {
                class: Fault::Survivors,
                detail,
            })?;
        }
        Ok(())
    }

    fn hung_up(&mut self) -> Left {
        self.clear_world();
        Left::HungUp
    }

    fn clear_world(&mut self) {
        while self.world.under_way().is_some() {
            self.world.stop(false);
            self.world.hear(None, &mut |_| {});
        }
    }
}

fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
