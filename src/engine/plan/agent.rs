//! The agents of a plan: their commands, output formats and failure patterns.

use crate::engine::event::ProcessExit;
use crate::engine::failure::FailureKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The prefix of a scripted agent's command; the script follows.
pub(crate) const SCRIPT: &str = "script:";

/// How to run an agent and read its output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// Its name: that of its preset, or of its program.
    pub(crate) name: String,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Environment variables to set.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// How it gets the prompt.
    #[serde(default)]
    pub(crate) prompt: PromptDelivery,
    /// What it may do without asking; `None` if its own command says so.
    #[serde(default)]
    pub(crate) approve: Option<Approve>,
    /// The exit code that means "waiting: do not restart me".
    pub(crate) exit_waiting: Option<i32>,
    /// Exit codes with a meaning of their own.
    #[serde(default, rename = "exits")]
    pub(crate) exit_codes: Vec<ExitCodeRule>,
    /// Patterns of lines in which it reports that an action was denied.
    #[serde(default)]
    pub(crate) denied: Vec<String>,
    /// The format of its output.
    #[serde(default)]
    pub(crate) dialect: DialectName,
    /// How to classify its error messages.
    #[serde(default, rename = "reasons")]
    pub(crate) failure_patterns: Vec<FailurePattern>,
    /// How a person logs in to it.
    #[serde(default)]
    pub(crate) login: String,
    /// Arguments that limit its cost; `{usd}` is replaced by the dollars left.
    #[serde(default)]
    pub(crate) budget: Vec<String>,
    /// Who pays for its work, if known.
    #[serde(default)]
    pub(crate) payer: Option<String>,
    /// API key variables that would make someone else pay; they are removed from its environment.
    #[serde(default)]
    pub(crate) held_back: Vec<String>,
    /// Variables that would tell it that it runs inside another agent; they are removed from its
    /// environment.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    /// The model that it was asked to use.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Whether its cost can be known.
    pub(crate) reports_cost: bool,
    /// Whether it runs on a terminal, where the prompt is typed, instead of on pipes.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// A pattern of the screen that is ready for the prompt. `None`: ready once it is painted and
    /// still.
    #[serde(default)]
    pub(crate) ready: Option<String>,
}

impl Agent {
    /// The rule for this exit code, if it has one.
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
    /// Whether this format is an event stream, one JSON object per line, that marks the final
    /// message. Otherwise it is plain text.
    pub(crate) fn is_stream(&self) -> bool {
        *self != Self::default()
    }
}

impl Default for DialectName {
    fn default() -> Self {
        Self("text".into())
    }
}

/// Classifies an error message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailurePattern {
    /// A pattern of the message. Its group `reset`, if any, matches the time when the limit resets.
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

/// An exit code with a meaning of its own.
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
    /// It is not logged in.
    Login,
    /// It rejected its arguments.
    Usage,
    /// It lacks a permission it needs.
    Permission,
    /// It has reached a limit that resets with time.
    Limit,
}

impl ExitMeaning {
    /// A clause about the agent, for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Waiting => "it waits",
            Self::Login => "it is not logged in",
            Self::Usage => "it did not understand its arguments",
            Self::Permission => "it lacks a permission it needs",
            Self::Limit => "it is out of quota for now",
        }
    }

    /// The corresponding failure; `None` for [`ExitMeaning::Waiting`], which is not a failure.
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
