//! Where the agent runs: in a process, in a function of an embedding program, or in a client's session.

use crate::agent::function::AgentFunction;
use crate::engine::ProcessIdentity;
use std::time::{Duration, Instant};

/// What runs the agent.
pub(crate) enum AgentHost {
    /// ralph starts the agent's command.
    Process,
    /// ralph calls a function of the program that embeds it.
    Function(AgentFunction),
    /// Claude Code or Codex runs the agent and calls `ralph hook`.
    Session(HookCaller),
}

/// The client that has called a hook.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HookCaller {
    /// The client's process. The loop is alive as long as it is.
    pub(crate) process: Option<ProcessIdentity>,
    /// When the client stops waiting for the hook.
    pub(crate) deadline: Option<Instant>,
}

impl AgentHost {
    pub(super) fn session(&self) -> Option<&HookCaller> {
        match self {
            Self::Session(caller) => Some(caller),
            Self::Process | Self::Function(_) => None,
        }
    }

    /// Limits a timeout to the time that the client waits for its hook.
    pub(super) fn limit_timeout(&self, timeout: Duration) -> Duration {
        let deadline = self.session().and_then(|caller| caller.deadline);
        deadline.map_or(timeout, |at| {
            timeout.min(at.saturating_duration_since(Instant::now()))
        })
    }
}
