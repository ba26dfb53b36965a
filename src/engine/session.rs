//! Loops inside a client session: the client runs the agent, and ralph runs as its stop hook.
//!
//! Ralph cannot start or kill such an agent. When a turn ends, the hook either lets the session
//! stop, or blocks the stop and passes the next prompt to the session. The engine treats each turn
//! as an iteration.

use super::event::is_default;
use super::plan::Rest;
use super::state::{Phase, State};
use super::{Plan, format};
use serde::{Deserialize, Serialize};

/// The template for prompts in a client session.
pub(super) const TEMPLATE: &str = include_str!("../../presets/session.md");

/// The identity of the client session in which a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientSession {
    /// The name of the client's preset.
    pub(crate) client: String,
    /// The session's ID, assigned by the client.
    pub(crate) id: String,
    /// Number of iterations that another program had counted before this loop took over.
    #[serde(default, rename = "before")]
    pub(crate) iterations_before: u32,
    /// How long the session's transcript was when the loop began, in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) transcript_bytes: u64,
}

/// The state of a loop in a client session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// How many times in a row ralph has kept the session from ending and the agent then used no
    /// tool.
    pub(crate) idle_blocks: u32,
    /// The error message of the last turn, if it failed; `None` once another turn has ended.
    #[serde(rename = "stumble")]
    pub(crate) turn_failure: Option<String>,
    /// How much of the transcript has been read for its usage, in bytes.
    #[serde(default)]
    pub(crate) transcript_bytes: u64,
}

impl Plan {
    /// Adapts the plan to a loop in a session: removes rests, iteration timeouts and limits that
    /// cannot act there, and asks for a claim only if one was asked for explicitly. `block_cap`
    /// is the client's limit on blocks in a row. `reports_usage` says whether ralph can read what a
    /// turn has used.
    #[must_use]
    pub(crate) fn in_session(
        mut self,
        session: ClientSession,
        block_cap: Option<u32>,
        reports_usage: bool,
    ) -> Self {
        let limits = &mut self.limits;
        limits.iterations = limits
            .iterations
            .map(|max| max.saturating_sub(session.iterations_before).max(1));
        (limits.iteration_ms, limits.inactivity_ms) = (None, None);
        limits.failures = None;
        if !reports_usage {
            (limits.cost_usd, limits.tokens) = (None, None);
        }
        limits.blocks = block_cap;
        self.rest = Rest {
            delay_ms: 0,
            backoff_ms: 0,
            ..self.rest
        };
        let proof = &mut self.proof;
        proof.until_green = proof.signals.is_empty() && !proof.checks.is_empty();
        // If the checks are green already, there is nothing to do.
        proof.preflight = proof.until_green;
        if proof.checks.is_empty() {
            proof.fallback.clear();
        }
        self.session = Some(session);
        self
    }
}

impl State {
    /// Returns whether the loop runs in a client session, where ralph can neither start nor kill
    /// the agent.
    pub(crate) fn is_in_session(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the error message of the session's last turn; `None` if the turn did not fail.
    pub(crate) fn turn_failure(&self) -> Option<&str> {
        self.session.as_ref()?.turn_failure.as_deref()
    }

    /// Returns whether the session has received its prompt and the turn has not ended.
    pub(crate) fn awaiting_turn(&self) -> bool {
        self.is_in_session() && matches!(self.phase, Phase::Running { started: true, .. })
    }

    /// Returns the latest iteration's number as the session shows it. The number includes
    /// iterations from before this loop.
    pub(crate) fn turn_number(&self) -> u32 {
        self.iteration.saturating_add(self.iterations_before())
    }

    /// Returns the iteration limit as the session shows it; `None` if there is no limit.
    pub(crate) fn turn_limit(&self) -> Option<u32> {
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(self.iterations_before()))
    }

    /// Returns the turn's number and the limit: `3/20`, or `3` if there is no limit.
    pub(crate) fn turn_label(&self) -> String {
        format::with_limit(self.turn_number(), self.turn_limit())
    }

    /// Records the end of a turn with this many tool calls, and up to where its transcript was read;
    /// `None` if that is unknown.
    pub(super) fn turn_ended(&mut self, steps: Option<u32>, transcript_bytes: Option<u64>) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.turn_failure = None;
        session.transcript_bytes = transcript_bytes.unwrap_or(session.transcript_bytes);
        // The user started the first turn, so no block preceded it.
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

    /// Returns up to where the session's transcript has been read for its usage, in bytes.
    pub(crate) fn transcript_bytes(&self) -> u64 {
        let at_start = self.plan.session.as_ref();
        let at_start = at_start.map_or(0, |session| session.transcript_bytes);
        let read = self.session.as_ref();
        read.map_or(0, |session| session.transcript_bytes)
            .max(at_start)
    }

    /// Returns how many times in a row ralph has kept the session from ending and the agent then
    /// used no tool.
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
