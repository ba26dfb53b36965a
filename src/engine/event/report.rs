//! Reports in events: how an agent and a check ended, and what the agent's text signals.

use super::{Marker, is_false, is_zero};
use crate::engine::failure::AgentFailure;
use crate::engine::usage::Tokens;
use serde::{Deserialize, Serialize};

/// How a process ended. Both fields are `None` if it could not be started or its status is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// The exit code; `None` if the process did not exit on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that killed the process; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProcessExit {
    /// Returns the exit of a process that exited with this code.
    pub fn from_code(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// Returns whether the process exited with 0.
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
    /// Whether it was killed because its timeout passed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// How long it ran, in milliseconds.
    pub ms: u64,
}

impl CheckReport {
    /// Returns whether the check passed.
    pub fn is_green(&self) -> bool {
        self.exit.is_success() && !self.timed_out
    }
}

/// What is known about an iteration's agent once its processes have exited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// How its process ended.
    pub exit: ProcessExit,
    /// How long it ran, in milliseconds.
    pub ms: u64,
    /// Signals in its final message.
    #[serde(default, rename = "said")]
    pub signals: TextSignals,
    /// Markers that it left in the task directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marker>,
    /// Dollars spent, as the agent reports them; `None` if unknown.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Tokens used, as the agent reports them; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Tool calls made, as the agent reports them; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Number of bytes of output it wrote.
    #[serde(default)]
    pub bytes: u64,
    /// Why it failed: its error message, or else the last lines it printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it failed, classified; `None` if it did not fail or the cause is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AgentFailure>,
    /// Whether its event stream reported success. This outweighs the exit code.
    #[serde(default, skip_serializing_if = "is_false")]
    pub finished: bool,
    /// Whether its event stream reported the end of the whole run.
    #[serde(default, skip_serializing_if = "is_false", rename = "over")]
    pub run_ended: bool,
    /// The ID of its session; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Number of lines of its event stream that could not be parsed.
    #[serde(default, skip_serializing_if = "is_zero", rename = "strange")]
    pub unparsed: u32,
    /// Number of actions it was denied.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub denied: u32,
    /// The first denial, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// Number of processes it left running, which ralph then killed.
    #[serde(default, skip_serializing_if = "is_zero", rename = "leftovers")]
    pub orphans: u32,
    /// The IDs of processes that are still running after SIGKILL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}

/// Signals read from the agent's final message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextSignals {
    /// Whether the message contains a promise that counts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promised: bool,
    /// Whether the promise is inside a sentence, where it may be a denial and does not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promise_in_sentence: bool,
    /// Whether a line matched the done pattern.
    #[serde(default, skip_serializing_if = "is_false")]
    pub matched: bool,
    /// Why the agent is blocked; `None` if it does not say that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// The commit message that the agent proposes; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
