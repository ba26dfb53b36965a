//! The other door: the client of a session knocks when its agent stops, and is told to go on or that it is over.
//!
//! It is the same loop. Only the agent is not ralph's to start: an iteration begins when the client is handed its
//! prompt, and ends when the client knocks again. In between nobody holds the lock.

use super::{Error, Flow, Left, Runner, millis, wall_ms};
use crate::engine::event::{Change, Door, Exit, Fault, Report, Wish};
use crate::engine::{Event, Phase, State, signals};
use crate::process::orphans;
use crate::store::cache;
use crate::store::dir::create_file;
use regex::Regex;
use std::io::Write;
use std::time::{Duration, Instant};

/// The program that has the agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client {
    /// Its process, with the kernel's start time; the loop lives as long.
    pub process: Option<(u32, u64)>,
    /// When it would go on without an answer.
    pub deadline: Option<Instant>,
}

/// What a session has to say.
#[derive(Clone, Debug)]
pub enum Knock {
    /// The agent's turn is over.
    Turn {
        /// Its final words.
        words: Option<String>,
        /// How often it used a tool, where that is known.
        steps: Option<u32>,
    },
    /// Its turn broke off, for this reason.
    Stumble(String),
    /// A person wants something.
    Ask(Wish, Door),
    /// A person has changed a limit.
    Change(Change),
    /// It cannot go on there.
    Fault(String),
}

impl Knock {
    /// A person in the session wants no more of it.
    pub fn cancel() -> Self {
        Self::Ask(Wish::StopNow, Door::Session)
    }
}

/// Where a loop stands when its session was answered.
pub struct Attended {
    /// Why the runner left.
    pub left: Left,
    /// Where the loop stands.
    pub state: State,
    /// What the agent is told next, if it is to go on.
    pub prompt: Vec<u8>,
}

impl Runner<'_> {
    /// Takes the loop up, hears what its session has to say, and leaves when that is judged.
    pub fn attend(mut self, client: Client, knocks: Vec<Knock>) -> Result<Attended, Error> {
        self.client = Some(client);
        let left = self.hear_all(knocks);
        if left.is_err() {
            self.clear_world();
        }
        let _ = cache::save(&self.dir, self.journal.len(), &self.header, &self.state);
        Ok(Attended {
            left: left?,
            state: self.state,
            prompt: self.prompt.1,
        })
    }

    fn hear_all(&mut self, knocks: Vec<Knock>) -> Result<Left, Error> {
        if self.state.is_lent() {
            // The session was at work since, and its time counts.
            let gone_by = wall_ms().saturating_sub(self.state.wall_ms).max(0) as u64;
            self.epoch_clock_ms = self.state.clock_ms.saturating_add(gone_by);
        }
        if matches!(self.state.phase, Phase::Checking | Phase::Committing)
            && !orphans::booted_since(self.state.wall_ms)
        {
            // A hook was killed in the middle of it. The agent is the client's, and is left alone.
            let grace = &self.state.plan.grace;
            let (term, survivor) = (millis(grace.term_ms), millis(grace.survivor_ms));
            orphans::sweep(&self.header.id, None, self.world.friends(), term, survivor);
        }
        self.read_inbox()?;
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION").to_owned());
        self.tell(Event::Opened {
            pid,
            version,
            cost_usd: None,
            tokens: None,
            inside: true,
        })?;
        let _ = self.task.ensure();
        let plan = &self.state.plan;
        if plan.proof.checks.is_empty() && plan.scm.tasks.is_empty() {
            self.world.is_brief();
        }
        self.watch_files();
        let mut left = self.go_on()?;
        for knock in knocks {
            if matches!(left, Left::Ended(_) | Left::HungUp) {
                break;
            }
            self.hear_knock(knock)?;
            left = self.go_on()?;
        }
        Ok(left)
    }

    fn hear_knock(&mut self, knock: Knock) -> Result<(), Error> {
        let iteration = self.state.iteration;
        match knock {
            Knock::Turn { words, steps } => {
                self.turn_over(iteration, &words.unwrap_or_default(), steps)
            }
            Knock::Stumble(words) => self.tell(Event::Stumbled { iteration, words }),
            Knock::Ask(wish, by) => self.ask(wish, by),
            Knock::Change(limit) => self.tell(Event::Changed { limit, inbox: None }),
            Knock::Fault(detail) => self.tell(Event::Faulted {
                class: Fault::Session,
                detail,
            }),
        }
    }

    fn turn_over(&mut self, iteration: u32, words: &str, steps: Option<u32>) -> Result<(), Error> {
        self.relay()?;
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        let mut said = signals::read(words, &self.state.promises());
        let pattern = self
            .state
            .plan
            .proof
            .pattern
            .as_ref()
            .and_then(|pattern| Regex::new(pattern).ok());
        said.matched =
            pattern.is_some_and(|pattern| words.lines().any(|line| pattern.is_match(line)));
        said.blocked = said.blocked.or(found.blocked);
        let report = Report {
            exit: Exit::code(0),
            ms: self.turn_ms(),
            said,
            markers: found.markers,
            cost_usd: found.cost_usd,
            steps,
            bytes: words.len() as u64,
            finished: true,
            session: self
                .state
                .plan
                .session
                .as_ref()
                .map(|session| session.id.clone()),
            ..Report::default()
        };
        // For people alone: what cannot be kept changes nothing.
        let _ = self.keep_words(iteration, words);
        self.tell(Event::Ended { iteration, report })?;
        if let Some(detail) = found.wrong {
            return self.tell(Event::Faulted {
                class: Fault::Marker,
                detail,
            });
        }
        self.take_markers_away()
    }

    fn keep_words(&self, iteration: u32, words: &str) -> std::io::Result<()> {
        self.dir
            .make_iteration(iteration)
            .map_err(std::io::Error::other)?;
        let mut log = create_file(&self.dir.iteration(iteration).join("output.log"))?;
        writeln!(log, "{}", self.world.mask().cover_text(words).trim_end())
    }

    fn turn_ms(&self) -> u64 {
        let begun = self.state.iteration_wall_ms.unwrap_or_else(wall_ms);
        wall_ms().saturating_sub(begun).max(0) as u64
    }

    /// The session's agent is let go where another would be ended.
    pub(super) fn let_go(&mut self, iteration: u32) -> Result<Flow, Error> {
        let report = Report {
            ms: self.turn_ms(),
            ..Report::default()
        };
        self.tell(Event::Ended { iteration, report })?;
        Ok(Flow::Again)
    }

    /// So much of this time as the client gives: past its patience it would let the session go.
    pub(super) fn within(&self, time: Duration) -> Duration {
        let deadline = self.client.as_ref().and_then(|client| client.deadline);
        deadline.map_or(time, |at| {
            time.min(at.saturating_duration_since(Instant::now()))
        })
    }
}
