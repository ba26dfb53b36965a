//! Reports in events: how an agent and a check ended, and what the agent's text signals.

use super::{Marker, is_false, is_zero};
use crate::engine::failure::AgentFailure;
use crate::engine::usage::Tokens;
use serde::{Deserialize, Serialize};

/// How a process ended. Neither field is set if it could not be started, or if its status is
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal, if one killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProcessExit {
    /// A process that exited with this code.
    pub fn from_code(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// Whether the process exited with 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// The result of one check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// How its process ended.
    pub exit: ProcessExit,
    /// Whether it was killed because it ran too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// How long it ran.
    pub ms: u64,
}

impl CheckReport {
    /// Whether the check passed.
    pub fn is_green(&self) -> bool {
        self.exit.is_success() && !self.timed_out
    }
}

/// Everything known about an iteration's agent once its processes are gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// How its process ended.
    pub exit: ProcessExit,
    /// How long it ran.
    pub ms: u64,
    /// Signals in its final message.
    #[serde(default, rename = "said")]
    pub signals: TextSignals,
    /// Markers it left in the task directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marker>,
    /// Dollars spent, by its own account.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Tokens used, by its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Tool calls made, by its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Bytes of output.
    #[serde(default)]
    pub bytes: u64,
    /// Why it failed: the last lines it printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it failed, classified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AgentFailure>,
    /// Whether its stream reported success. This outweighs the exit code.
    #[serde(default, skip_serializing_if = "is_false")]
    pub finished: bool,
    /// Whether its stream reported the end of the whole run.
    #[serde(default, skip_serializing_if = "is_false", rename = "over")]
    pub run_ended: bool,
    /// The ID of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Lines of its stream that could not be parsed.
    #[serde(default, skip_serializing_if = "is_zero", rename = "strange")]
    pub unparsed: u32,
    /// How many actions it was denied.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub denied: u32,
    /// The first denial, as the agent put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// Processes that it left running and ralph killed.
    #[serde(default, skip_serializing_if = "is_zero", rename = "leftovers")]
    pub orphans: u32,
    /// Processes that could not be killed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}

/// Signals read from the agent's final message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextSignals {
    /// It gave a promise that counts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promised: bool,
    /// It wrote the promise inside a sentence, where it may be a denial. This does not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promise_in_sentence: bool,
    /// A line matched the done pattern.
    #[serde(default, skip_serializing_if = "is_false")]
    pub matched: bool,
    /// Why it is blocked, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// The commit message it proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
