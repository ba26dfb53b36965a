//! Defines the conditions for counting a task as done: checks, and signals with which the agent
//! claims it.

use crate::engine::display::{code_span, one_line, truncate_to_width};
use crate::engine::event::{Marker, is_default};
use crate::engine::label::WeakChecks;
use crate::engine::look::SecondLook;
use crate::engine::prompt::in_pieces;
use crate::engine::signals::fold_whitespace;
use crate::engine::state::Claims;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The conditions for counting a loop as done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "JournaledProof", into = "JournaledProof")]
pub(crate) struct Proof {
    /// Commands that ralph runs after each iteration. All of them must be green.
    pub(crate) checks: Vec<Check>,
    /// Whether the checks also run once before the first iteration.
    pub(crate) preflight: bool,
    /// Patterns of files that judge the work, besides those that ralph knows.
    pub(crate) protect: Vec<String>,
    /// Patterns of files that judge the work and that the task may change.
    pub(crate) allow: Vec<String>,
    /// The signals that were requested explicitly. Any one of them is a claim.
    pub(crate) signals: Vec<Signal>,
    /// Promises that count if no signal was asked for explicitly. The prompt asks for the first. If
    /// empty, no promise counts.
    pub(crate) fallback: Vec<String>,
    /// Whether green checks are enough, without a claim.
    pub(crate) until_green: bool,
    /// When the checks run again before the loop counts as done.
    pub(crate) second_look: SecondLook,
    /// What happens if no check can prove anything.
    pub(crate) weak_checks: WeakChecks,
    /// The command that prepares a view before checks run in it, such as `npm ci`.
    pub(crate) setup: Option<SetupCommand>,
    /// Whether the checks of every iteration run in a view with the original tests and settings.
    pub(crate) sealed: bool,
}

/// The command that prepares a view before checks run in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SetupCommand {
    /// The command, run with `sh -c` in the view.
    pub(crate) command: String,
    /// The timeout, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// A signal with which the agent claims that the whole task is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Signal {
    /// The text that the agent must write in `<promise>…</promise>`, in its final message.
    Promise(String),
    /// A regular expression that a line of the agent's output must match.
    Pattern(String),
    /// A file that the agent must create.
    File(PathBuf),
}

/// A kind of signal, with its names in settings and in the journal.
pub(crate) struct SignalKind {
    /// The setting that requests the signal.
    pub(crate) key: &'static str,
    /// The signal's field in the journal.
    field: &'static str,
    /// Creates the signal from the setting's value.
    pub(crate) new: fn(&str) -> Signal,
}

const PROMISE: SignalKind = SignalKind {
    key: "promise",
    field: "promise",
    new: |text| Signal::Promise(text.into()),
};

const PATTERN: SignalKind = SignalKind {
    key: "done-pattern",
    field: "pattern",
    new: |text| Signal::Pattern(text.into()),
};

const FILE: SignalKind = SignalKind {
    key: "done-file",
    field: "file",
    new: |text| Signal::File(text.into()),
};

/// All kinds of signals, in the order in which the prompt asks for them.
pub(crate) const SIGNAL_KINDS: [SignalKind; 3] = [PROMISE, PATTERN, FILE];

impl Signal {
    /// Returns the setting that requests this signal.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Promise(_) => PROMISE.key,
            Self::Pattern(_) => PATTERN.key,
            Self::File(_) => FILE.key,
        }
    }

    /// Returns the value of the setting that requests this signal.
    pub(crate) fn value(&self) -> Cow<'_, str> {
        match self {
            Self::Promise(text) | Self::Pattern(text) => text.into(),
            Self::File(path) => path.to_string_lossy(),
        }
    }

    /// Returns the instruction to give this signal, as part of a sentence in the prompt. `pattern`
    /// is the compiled done pattern, if any. The instruction must not match it, because an agent
    /// may repeat its prompt.
    pub(crate) fn instruction(&self, pattern: Option<&Regex>) -> String {
        match self {
            Self::Promise(text) => format!(
                "write <promise>{}</promise> alone on the last line of your final message",
                fold_whitespace(text)
            ),
            Self::Pattern(text) => format!(
                "print a line that matches the pattern {}",
                in_pieces(text, pattern)
            ),
            Self::File(path) => format!("create the file `{}`", path.display()),
        }
    }

    /// Returns the action that the agent has to take, as people read it after "did not".
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Promise(text) => format!("promise {}", fold_whitespace(text)),
            Self::Pattern(text) => format!("print a line that matches `{text}`"),
            Self::File(path) => format!("create {}", path.display()),
        }
    }

    /// Returns whether the agent gave this signal.
    pub(crate) fn is_given(&self, claims: &Claims) -> bool {
        match self {
            Self::Promise(_) => claims.signals.promised,
            Self::Pattern(_) => claims.signals.matched,
            Self::File(_) => claims.markers.contains(&Marker::File),
        }
    }
}

impl Proof {
    /// Returns the text that the agent has to promise; `None` if no promise was requested
    /// explicitly.
    pub(crate) fn promise(&self) -> Option<&str> {
        self.signals.iter().find_map(|signal| match signal {
            Signal::Promise(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the done pattern; `None` if the plan has none.
    pub(crate) fn pattern(&self) -> Option<&str> {
        self.signals.iter().find_map(|signal| match signal {
            Signal::Pattern(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the done pattern and those of the checks' output, for editing.
    pub(crate) fn patterns_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let expected = self.checks.iter_mut().flat_map(|check| &mut check.expect);
        let signals = self.signals.iter_mut().filter_map(|signal| match signal {
            Signal::Pattern(text) => Some(text),
            Signal::Promise(_) | Signal::File(_) => None,
        });
        signals.chain(expected)
    }

    /// Returns the path of the done file; `None` if the plan has none.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.signals.iter().find_map(|signal| match signal {
            Signal::File(path) => Some(path.as_path()),
            _ => None,
        })
    }
}

/// The proof in the form that the journal stores.
#[derive(Serialize, Deserialize)]
struct JournaledProof {
    checks: Vec<Check>,
    preflight: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protect: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    #[serde(flatten)]
    signals: JournaledSignals,
    fallback: Vec<String>,
    #[serde(default)]
    until_green: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    second_look: SecondLook,
    #[serde(default, skip_serializing_if = "is_default")]
    weak_checks: WeakChecks,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<SetupCommand>,
    #[serde(default, skip_serializing_if = "is_default")]
    sealed: bool,
}

/// Signals in the form that the journal stores: one [field](SignalKind::field) for each kind, null
/// if not requested.
struct JournaledSignals(Vec<Signal>);

impl Serialize for JournaledSignals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |kind: &SignalKind| {
            let signal = self.0.iter().find(|signal| signal.key() == kind.key);
            signal.map(Signal::value)
        };
        serializer.collect_map(SIGNAL_KINDS.iter().map(|kind| (kind.field, value(kind))))
    }
}

impl<'de> Deserialize<'de> for JournaledSignals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Ignore fields of later versions, whatever their type.
        let fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let signal = |kind: &SignalKind| fields.get(kind.field)?.as_str().map(kind.new);
        Ok(Self(SIGNAL_KINDS.iter().filter_map(signal).collect()))
    }
}

impl From<JournaledProof> for Proof {
    fn from(proof: JournaledProof) -> Self {
        Self {
            checks: proof.checks,
            preflight: proof.preflight,
            protect: proof.protect,
            allow: proof.allow,
            signals: proof.signals.0,
            fallback: proof.fallback,
            until_green: proof.until_green,
            second_look: proof.second_look,
            weak_checks: proof.weak_checks,
            setup: proof.setup,
            sealed: proof.sealed,
        }
    }
}

impl From<Proof> for JournaledProof {
    fn from(proof: Proof) -> Self {
        Self {
            checks: proof.checks,
            preflight: proof.preflight,
            protect: proof.protect,
            allow: proof.allow,
            signals: JournaledSignals(proof.signals),
            fallback: proof.fallback,
            until_green: proof.until_green,
            second_look: proof.second_look,
            weak_checks: proof.weak_checks,
            setup: proof.setup,
            sealed: proof.sealed,
        }
    }
}

/// Maximum width of a check's short name, in terminal columns.
const LABEL_WIDTH: usize = 60;

/// What the agent reads in place of a held-out check's command.
const HELD_OUT: &str = "held-out check";

/// A command that proves the work by exiting with 0, and by its output if a pattern is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// The command, run with `sh -c` in the workspace.
    pub(crate) command: String,
    /// A name for the check that is safe in file names and unique in the plan.
    pub(crate) slug: String,
    /// The timeout, in milliseconds. A check that runs longer is killed and counts as red.
    pub(crate) timeout_ms: u64,
    /// The place of the check's output in the next prompt if the check is red.
    pub(crate) on_fail: OnFail,
    /// Whether the agent must not learn what it checks.
    #[serde(default, rename = "hidden", skip_serializing_if = "is_default")]
    pub(crate) is_held_out: bool,
    /// A regular expression that the check's output must match; `None` if the exit code is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<String>,
}

impl Check {
    /// Returns whether the agent must not learn what the check does.
    pub(crate) fn is_held_out(&self) -> bool {
        self.is_held_out
    }

    /// Returns the command as a short code span, for the agent.
    pub(crate) fn label(&self) -> String {
        if self.is_held_out {
            return HELD_OUT.into();
        }
        code_span(&truncate_to_width(&one_line(&self.command), LABEL_WIDTH))
    }
}

/// Compiles a pattern of a check's output, in which `^` and `$` match at the ends of lines.
pub(crate) fn line_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).multi_line(true).build()
}

/// The place of a red check's output in the next prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFail {
    /// The output follows the task.
    #[default]
    Append,
    /// The output precedes the task.
    Prepend,
    /// The output replaces the task's text.
    Replace,
}
