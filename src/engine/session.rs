//! Loops inside a client session: the client runs the agent, and ralph runs as its stop hook.
//!
//! Ralph cannot start or kill such an agent. When a turn ends, the hook either lets the session
//! stop, or blocks the stop and hands over the next prompt. The engine treats each turn as an
//! iteration.

use super::plan::Rest;
use super::state::{Phase, State};
use super::{Plan, format};
use serde::{Deserialize, Serialize};

/// The template of the prompts in a session.
pub(super) const TEMPLATE: &str = include_str!("../../presets/session.md");

/// The client session in which a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientSession {
    /// The client, by the name of its preset.
    pub(crate) client: String,
    /// The client's ID of the session.
    pub(crate) id: String,
    /// Iterations that another program had counted before this loop took over.
    #[serde(default, rename = "before")]
    pub(crate) iterations_before: u32,
}

/// The state of a loop in a client session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// How often in a row the agent was held back and then used no tool.
    pub(crate) idle_blocks: u32,
    /// Why the last turn broke off, until another turn ends.
    #[serde(rename = "stumble")]
    pub(crate) turn_failure: Option<String>,
}

impl Plan {
    /// The same plan for a loop in a session. Rests, iteration timeouts and cost limits do not
    /// apply there, and a promise is needed only if one was asked for explicitly.
    #[must_use]
    pub(crate) fn in_session(mut self, session: ClientSession, block_cap: Option<u32>) -> Self {
        let limits = &mut self.limits;
        limits.iterations = limits
            .iterations
            .map(|max| max.saturating_sub(session.iterations_before).max(1));
        (limits.iteration_ms, limits.inactivity_ms) = (None, None);
        (limits.failures, limits.cost_usd, limits.tokens) = (None, None, None);
        limits.blocks = block_cap;
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
    /// Whether the loop runs in a client session, where ralph can neither start nor kill the agent.
    pub(crate) fn is_in_session(&self) -> bool {
        self.session.is_some()
    }

    /// Why the session's last turn broke off, if it did.
    pub(crate) fn turn_failure(&self) -> Option<&str> {
        self.session.as_ref()?.turn_failure.as_deref()
    }

    /// Whether the session has its prompt and its turn has not ended.
    pub(crate) fn awaiting_turn(&self) -> bool {
        self.is_in_session() && matches!(self.phase, Phase::Running { started: true, .. })
    }

    /// The iteration's number as the session shows it.
    pub(crate) fn turn_number(&self) -> u32 {
        self.iteration.saturating_add(self.iterations_before())
    }

    /// The iteration limit as the session shows it.
    pub(crate) fn turn_limit(&self) -> Option<u32> {
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(self.iterations_before()))
    }

    /// `3/20`, or `3` without a limit.
    pub(crate) fn turn_label(&self) -> String {
        format::with_limit(self.turn_number(), self.turn_limit())
    }

    /// A turn has ended in which the agent took this many steps.
    pub(super) fn turn_ended(&mut self, steps: Option<u32>) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.turn_failure = None;
        // The first turn was started by the user, not by a block.
        let was_blocked = u32::from(self.iteration > 1);
        session.idle_blocks = match steps {
            Some(0) => session.idle_blocks.saturating_add(was_blocked),
            _ => 0,
        };
    }

    pub(super) fn turn_failed(&mut self, iteration: u32, message: &str) {
        let is_current = iteration == self.iteration;
        if let Some(session) = self.session.as_mut().filter(|_| is_current) {
            session.turn_failure = Some(message.to_owned());
        }
    }

    /// How often in a row the agent was held back and then used no tool.
    pub(crate) fn idle_blocks(&self) -> u32 {
        self.session
            .as_ref()
            .map_or(0, |session| session.idle_blocks)
    }

    fn iterations_before(&self) -> u32 {
        self.plan
            .session
            .as_ref()
            .map_or(0, |session| session.iterations_before)
    }
}
