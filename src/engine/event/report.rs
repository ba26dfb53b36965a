//! Reports in events: the results of agents and checks, and the signals in an agent's text.

use super::{Marker, is_default};
use crate::engine::failure::AgentFailure;
use crate::engine::label::Label;
use crate::engine::test_counts::TestCounts;
use crate::engine::test_names::{MissingTests, RecordedTests};
use crate::engine::usage::Tokens;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The exit status of a process. Both fields are `None` if the process could not be started or its
/// status is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// The exit code; `None` if the process did not exit on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that killed the process; `None` if no signal did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProcessExit {
    /// Returns the status of a process that exited with `code`.
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

/// The result of one check run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// The exit status of the check's process.
    pub exit: ProcessExit,
    /// Whether the check was killed because its timeout passed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timed_out: bool,
    /// The check's running time, in milliseconds.
    pub ms: u64,
    /// Identifies the failures in its output, without numbers and durations; `None` if it is green.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How many tests passed, failed and were skipped; `None` if its output does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// Where the names of its tests are recorded, before the first iteration; `None` if its output
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_tests: Option<RecordedTests>,
    /// Tests that ran before the first iteration and did not pass now; `None` if all did, or if
    /// the names are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_tests: Option<MissingTests>,
    /// The pattern that its output had to match and does not; `None` if it matches, or no pattern
    /// was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// The line of its output that says why it is red; `None` if it is green or printed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// In preflight, the label of a check that is broken or swallowed; `None` for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}

impl CheckReport {
    /// Returns whether the check passed: it exited with 0 in time, and its output matches the
    /// pattern, if one was asked for.
    pub fn is_green(&self) -> bool {
        self.exit.is_success() && !self.timed_out && self.unmatched.is_none()
    }

    /// Applies `edit` to every text from the check.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let missing = self.missing_tests.iter_mut();
        let names = missing.flat_map(|missing| &mut missing.names);
        let label = self.label.iter_mut().map(|label| &mut label.why);
        names
            .chain(&mut self.unmatched)
            .chain(&mut self.line)
            .chain(label)
            .for_each(edit);
    }
}

/// The result of an iteration's agent, complete once all its processes have exited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
#[non_exhaustive]
pub struct AgentReport {
    /// The exit status of the agent's process.
    pub exit: ProcessExit,
    /// The agent's running time, in milliseconds.
    pub ms: u64,
    /// Signals in the agent's final message.
    #[serde(default, rename = "said")]
    pub signals: TextSignals,
    /// Markers that the agent left in the task directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marker>,
    /// What is written in these markers, for those that are not empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marker_texts: BTreeMap<Marker, String>,
    /// Dollars spent, as the agent reports them; `None` if unknown.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Tokens used, as the agent reports them; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Tool calls made, as the agent reports them; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Size of the agent's output, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The agent's error message, or else the last lines of its output; `None` if there is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The classified cause of the failure; `None` if the agent did not fail or the cause is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AgentFailure>,
    /// Whether the agent's event stream reported success. This outweighs the exit code.
    #[serde(default, skip_serializing_if = "is_default")]
    pub finished: bool,
    /// Whether the agent's event stream reported the end of the whole run.
    #[serde(default, skip_serializing_if = "is_default", rename = "over")]
    pub run_ended: bool,
    /// What it leaves to the next iteration: a `<note>`, or else the end of its final message; `None`
    /// if it wrote nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether its event stream contains no tool call, so that it cannot have changed anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle: bool,
    /// Whether its event stream contains nothing that its model did: no message, no thought and no
    /// tool call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub silent: bool,
    /// The ID of the agent's session; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Up to where the transcript of the client session was read, in bytes; `None` outside a
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_bytes: Option<u64>,
    /// Number of event-stream lines that could not be parsed.
    #[serde(default, skip_serializing_if = "is_default", rename = "strange")]
    pub unparsed: u32,
    /// Number of actions the agent was denied.
    #[serde(default, skip_serializing_if = "is_default")]
    pub denied: u32,
    /// The first denial: the denied action, or else the agent's words; `None` if no action was
    /// denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// The first few different denials, including `denial`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<String>,
    /// Number of processes the agent left running, which ralph then killed.
    #[serde(default, skip_serializing_if = "is_default", rename = "leftovers")]
    pub orphans: u32,
    /// The IDs of processes that are still running after SIGKILL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
    /// The first processes of the windows that were opened in ralph's tmux server during the
    /// iteration, by the agent or by a person, and are still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<u32>,
}

impl AgentReport {
    /// Applies `edit` to every text from the agent.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let signals = &mut self.signals;
        let said = [
            &mut signals.blocked,
            &mut signals.changed,
            &mut signals.commit,
        ];
        let reported = [
            &mut self.error,
            &mut self.note,
            &mut self.session,
            &mut self.denial,
        ];
        said.into_iter()
            .chain(reported)
            .flatten()
            .chain(self.marker_texts.values_mut())
            .chain(&mut self.denials)
            .for_each(edit);
    }
}

/// Signals read from the agent's final message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextSignals {
    /// Whether the message contains a promise that counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promised: bool,
    /// Whether a promise is inside a sentence. There it may be a denial, so it does not count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promise_in_sentence: bool,
    /// Whether a line of output matched the done pattern.
    #[serde(default, skip_serializing_if = "is_default")]
    pub matched: bool,
    /// The agent's reason for being blocked; `None` if the agent does not report that it is
    /// blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// Why the agent changed a test or a setting; `None` if it gives no reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// The commit message that the agent proposes; `None` if it proposes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
