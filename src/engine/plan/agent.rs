//! The agents of a plan: their commands, output formats and failure patterns.

use crate::engine::event::ProcessExit;
use crate::engine::failure::FailureKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The prefix of a scripted agent's command. The script's text follows it.
pub(crate) const SCRIPT: &str = "script:";

/// How to run an agent and read its output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// The name of its preset or, if it has none, of its program.
    pub(crate) name: String,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Environment variables to set for it.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// How it gets the prompt.
    #[serde(default)]
    pub(crate) prompt: PromptDelivery,
    /// What it may do without asking; `None` if the user's own command decides.
    #[serde(default)]
    pub(crate) approve: Option<Approve>,
    /// The exit code with which it asks not to be restarted; `None` if there is none.
    pub(crate) exit_waiting: Option<i32>,
    /// Exit codes that say why it failed.
    #[serde(default, rename = "exits")]
    pub(crate) exit_codes: Vec<ExitCodeRule>,
    /// Regular expressions for output lines that report a denied action.
    #[serde(default)]
    pub(crate) denied: Vec<String>,
    /// The format of its output.
    #[serde(default)]
    pub(crate) dialect: DialectName,
    /// Rules that classify its error messages.
    #[serde(default, rename = "reasons")]
    pub(crate) failure_patterns: Vec<FailurePattern>,
    /// How a person logs in, as a hint; empty if unknown.
    #[serde(default)]
    pub(crate) login: String,
    /// Arguments that limit its cost; `{usd}` is replaced with the dollars left.
    #[serde(default)]
    pub(crate) budget: Vec<String>,
    /// Who pays for its work; `None` if unknown.
    #[serde(default)]
    pub(crate) payer: Option<String>,
    /// API key variables to remove from its environment, because they would change who pays.
    #[serde(default)]
    pub(crate) held_back: Vec<String>,
    /// Variables to remove from its environment, because they mark a process as running inside
    /// another agent.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    /// The model to use; `None` if the agent chooses.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Whether its cost can be determined.
    pub(crate) reports_cost: bool,
    /// Whether it runs on a terminal, where the prompt is typed, instead of on pipes.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// A regular expression for a screen that is ready for the prompt. `None` means that the screen
    /// is ready once it shows text and stops changing.
    #[serde(default)]
    pub(crate) ready: Option<String>,
}

impl Agent {
    /// Returns the rule for this exit code; `None` if it has no special meaning.
    pub(crate) fn exit_rule(&self, exit: ProcessExit) -> Option<&ExitCodeRule> {
        self.exit_codes
            .iter()
            .find(|rule| Some(rule.code) == exit.code)
    }
}

/// The name of an output format. The table of formats is in `agent::decode::dialect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct DialectName(pub(crate) String);

impl DialectName {
    /// Returns whether this format is an event stream (one JSON object per line) that marks the
    /// final message. If not, it is plain text.
    pub(crate) fn is_stream(&self) -> bool {
        *self != Self::default()
    }
}

impl Default for DialectName {
    fn default() -> Self {
        Self("text".into())
    }
}

/// A rule that classifies an agent's error message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailurePattern {
    /// A regular expression for the message. Its group `reset`, if any, matches the time when the
    /// limit resets.
    pub(crate) pattern: String,
    /// What the message means.
    pub(crate) means: FailureKind,
}

/// How an agent gets the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PromptDelivery {
    /// On standard input.
    #[default]
    Stdin,
    /// As the last argument.
    Argument,
    /// In a file whose path is the last argument.
    File,
}

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Approve {
    /// Only read.
    None,
    /// Change files in the workspace.
    Edits,
    /// Everything.
    All,
}

/// An exit code that says why an agent failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExitCodeRule {
    /// The exit code.
    pub(crate) code: i32,
    /// What it means.
    pub(crate) means: ExitMeaning,
    /// What the user can do about it.
    pub(crate) hint: String,
}

/// What an exit code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ExitMeaning {
    /// The agent asks not to be restarted.
    Waiting,
    /// The agent is not logged in.
    Login,
    /// The agent rejected its arguments.
    Usage,
    /// The agent lacks a permission it needs.
    Permission,
    /// The agent has reached a limit that resets with time.
    Limit,
}

impl ExitMeaning {
    /// Returns a clause about the agent, for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Waiting => "it asked to wait",
            Self::Login => "it is not logged in",
            Self::Usage => "it rejected its arguments",
            Self::Permission => "it lacks a permission it needs",
            Self::Limit => "its quota is used up for now",
        }
    }

    /// Returns the corresponding failure; `None` for [`ExitMeaning::Waiting`], which is not a
    /// failure.
    pub(crate) fn failure_kind(self) -> Option<FailureKind> {
        Some(match self {
            Self::Waiting => return None,
            Self::Login => FailureKind::Login,
            Self::Usage => FailureKind::Usage,
            Self::Permission => FailureKind::Denied,
            Self::Limit => FailureKind::UsageLimit,
        })
    }
}
