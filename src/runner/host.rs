//! The places where an agent can run: a process, a function of an embedding program, or a client's
//! session.

use crate::agent::function::AgentFunction;
use crate::engine::ProcessIdentity;
use std::time::{Duration, Instant};

/// The place where a loop's agent runs.
pub(crate) enum AgentHost {
    /// ralph starts the agent's command.
    Process,
    /// ralph calls a function of the embedding program.
    Function(AgentFunction),
    /// A client, such as Claude Code, runs the agent and calls `ralph hook` between turns.
    Session(HookCaller),
}

/// The client that called `ralph hook`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HookCaller {
    /// The client's process. The loop counts as running while this process is alive. `None` if the
    /// process was not found.
    pub(crate) process: Option<ProcessIdentity>,
    /// The time at which the client stops waiting for the hook. `None` if it waits without a limit.
    pub(crate) deadline: Option<Instant>,
}

impl AgentHost {
    pub(super) fn session(&self) -> Option<&HookCaller> {
        match self {
            Self::Session(caller) => Some(caller),
            Self::Process | Self::Function(_) => None,
        }
    }

    /// Shortens `timeout` to the time for which the client still waits for its hook.
    pub(super) fn limit_timeout(&self, timeout: Duration) -> Duration {
        let deadline = self.session().and_then(|caller| caller.deadline);
        deadline.map_or(timeout, |at| {
            timeout.min(at.saturating_duration_since(Instant::now()))
        })
    }
}
