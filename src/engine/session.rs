//! A loop inside the session of another client: its agent is there already, and is asked to go on.

use super::plan::Rest;
use super::state::{Phase, State};
use super::{Plan, format};
use serde::{Deserialize, Serialize};

/// What a session is told at the end of a turn: the task once more, and what stands against its end.
pub(super) const TEMPLATE: &str = include_str!("../../presets/session.md");

/// The session that a loop lives in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The client, by the name of its preset.
    pub client: String,
    /// What the client calls the session.
    pub id: String,
    /// Iterations that somebody else had counted before this loop took over.
    #[serde(default)]
    pub before: u32,
}

/// How a loop stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stay {
    /// How often in a row the agent was held back and then used no tool.
    pub idle_blocks: u32,
    /// Why its turn broke off, until it goes on.
    pub stumble: Option<String>,
}

impl Plan {
    /// The same plan for a loop inside a session. There nobody rests, times an agent or counts what it costs; and a
    /// promise is asked for only where one was given.
    #[must_use]
    pub fn inside(mut self, session: Session) -> Self {
        let iterations = self
            .limits
            .iterations
            .map(|max| max.saturating_sub(session.before).max(1));
        self.limits.iterations = iterations;
        (
            self.limits.iteration_ms,
            self.limits.inactivity_ms,
            self.limits.failures,
        ) = (None, None, None);
        (self.limits.cost_usd, self.limits.tokens) = (None, None);
        self.rest = Rest {
            delay_ms: 0,
            backoff_ms: 0,
            ..self.rest
        };
        self.proof.fallback.clear();
        self.proof.preflight = false;
        self.session = Some(session);
        self
    }
}

impl State {
    /// Whether its agent is one that ralph cannot start or end.
    pub fn is_inside(&self) -> bool {
        self.stay.is_some()
    }

    /// Why the session's turn broke off, if it did.
    pub fn stumble(&self) -> Option<&str> {
        self.stay.as_ref()?.stumble.as_deref()
    }

    /// Whether the session has its next prompt, and its turn is not over.
    pub fn is_lent(&self) -> bool {
        self.is_inside() && matches!(self.phase, Phase::Running { started: true, .. })
    }

    /// The iteration as people in the session count it.
    pub fn turn_number(&self) -> u32 {
        self.iteration.saturating_add(self.before())
    }

    /// The limit that goes with it.
    pub fn turn_limit(&self) -> Option<u32> {
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(self.before()))
    }

    /// "3/20", or "3" where there is no limit.
    pub fn turn_words(&self) -> String {
        format::of_limit(self.turn_number(), self.turn_limit())
    }

    /// A turn is over in which the agent took so many steps. The first one no block has begun.
    pub(super) fn turn_ended(&mut self, steps: Option<u32>) {
        let Some(stay) = &mut self.stay else { return };
        stay.stumble = None;
        stay.idle_blocks = match steps {
            Some(0) => stay
                .idle_blocks
                .saturating_add(u32::from(self.iteration > 1)),
            _ => 0,
        };
    }

    /// The session's turn broke off.
    pub(super) fn stumbled(&mut self, iteration: u32, words: &str) {
        if let Some(stay) = self.stay.as_mut().filter(|_| iteration == self.iteration) {
            stay.stumble = Some(words.to_owned());
        }
    }

    /// Whether the client would let its session go now, whatever it is told.
    pub(super) fn is_out_of_blocks(&self) -> bool {
        self.is_inside()
            && self
                .plan
                .limits
                .blocks
                .is_some_and(|max| self.idle_blocks() >= max)
    }

    /// How often in a row the agent was held back and then used no tool.
    pub fn idle_blocks(&self) -> u32 {
        self.stay.as_ref().map_or(0, |stay| stay.idle_blocks)
    }

    fn before(&self) -> u32 {
        self.plan
            .session
            .as_ref()
            .map_or(0, |session| session.before)
    }
}
