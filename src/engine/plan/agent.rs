//! Agents in a plan: their commands, output formats and failure patterns.

use crate::engine::event::ProcessExit;
use crate::engine::failure::FailureKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Prefix of a scripted agent's command. The script's text follows the prefix.
pub(crate) const SCRIPT: &str = "script:";

/// The command, environment and output format of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// The name of the agent's preset, or else of its program.
    pub(crate) name: String,
    /// The program and its arguments, without the prompt.
    pub(crate) command: Vec<String>,
    /// Environment variables to set for the agent.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The way the agent gets its prompt.
    #[serde(default)]
    pub(crate) prompt: PromptDelivery,
    /// The actions that the agent may take without asking; `None` if the user's own command
    /// decides.
    #[serde(default)]
    pub(crate) approve: Option<Approve>,
    /// The exit code with which the agent asks not to be restarted; `None` if it has none.
    pub(crate) exit_waiting: Option<i32>,
    /// What it may do at this level, as a clause after "you may"; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) allows: String,
    /// How a person can allow an action that was denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow: Vec<AllowRule>,
    /// Exit codes that identify the cause of a failure.
    #[serde(default, rename = "exits")]
    pub(crate) exit_codes: Vec<ExitCodeRule>,
    /// Regular expressions for output lines that report a denied action.
    #[serde(default)]
    pub(crate) denied: Vec<String>,
    /// Regular expressions for lines of plain text that report an error although the agent exits
    /// with 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) error_lines: Vec<String>,
    /// Regular expressions for lines of plain text which show that an earlier error has passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) success_lines: Vec<String>,
    /// The format of the agent's output.
    #[serde(default)]
    pub(crate) dialect: DialectName,
    /// Rules that classify the agent's error messages.
    #[serde(default, rename = "reasons")]
    pub(crate) failure_patterns: Vec<FailurePattern>,
    /// A hint on how to log in; empty if unknown.
    #[serde(default)]
    pub(crate) login: String,
    /// Arguments that limit the agent's cost; `{usd}` is replaced with the dollars left.
    #[serde(default)]
    pub(crate) budget: Vec<String>,
    /// The account or plan that pays for the agent's work; `None` if unknown.
    #[serde(default)]
    pub(crate) payer: Option<String>,
    /// API key variables to remove from the agent's environment, because they would change who
    /// pays.
    #[serde(default)]
    pub(crate) held_back: Vec<String>,
    /// Variables to remove from the agent's environment, because they mark a process as running
    /// inside another agent.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    /// Absolute paths outside the workspace that the agent writes for itself, such as its settings.
    /// A directory ends with a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own_paths: Vec<String>,
    /// Absolute paths of other tools' credentials that the agent reads. A sandbox leaves them
    /// visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) credentials: Vec<String>,
    /// Arguments that make the program print its version; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) version: Vec<String>,
    /// The model to use; `None` if the agent chooses.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Whether the agent's cost can be determined.
    pub(crate) reports_cost: bool,
    /// Whether the agent runs on a terminal, where the prompt is typed, instead of on pipes.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// A regular expression that matches a screen ready for the prompt. If `None`, the screen is
    /// ready once it shows text and stops changing.
    #[serde(default)]
    pub(crate) ready: Option<String>,
}

impl Agent {
    /// Returns how a person can allow a denied action, given as the tool's name and what it was
    /// used on; `None` if that is unknown.
    pub(crate) fn allow_hint(&self, denial: &str) -> Option<String> {
        let (tool, about) = denial.split_once(' ')?;
        let rule = self.allow.iter().find(|rule| rule.tool == tool)?;
        // A shortened command would allow something else.
        let is_whole = !about.is_empty() && !about.ends_with('…');
        let about = about.replace('\\', "\\\\").replace('"', "\\\"");
        is_whole.then(|| rule.hint.replace("{about}", &about))
    }

    /// Returns the level of `--approve` above this one; `None` if there is none, or if the user's
    /// own command decides.
    pub(crate) fn next_approval(&self) -> Option<&'static str> {
        match self.approve? {
            Approve::None => Some("edits"),
            Approve::Edits => Some("all"),
            Approve::All => None,
        }
    }

    /// Returns the rule for an exit status; `None` if the status has no special meaning.
    pub(crate) fn exit_rule(&self, exit: ProcessExit) -> Option<&ExitCodeRule> {
        self.exit_codes
            .iter()
            .find(|rule| Some(rule.code) == exit.code)
    }
}

/// How a person can allow one action of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowRule {
    /// The name of the tool that was denied.
    pub(crate) tool: String,
    /// What to do. `{about}` is replaced with what the tool was used on.
    pub(crate) hint: String,
}

/// The name of an output format. The table of formats is in `agent::decode::dialect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct DialectName(pub(crate) String);

impl DialectName {
    /// Returns whether the format is an event stream (one JSON object per line) that marks the
    /// final message. All other formats are plain text.
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
    /// A regular expression for the message. A capture group named `reset` matches the time at
    /// which the limit resets.
    pub(crate) pattern: String,
    /// The kind of failure that the message reports.
    pub(crate) means: FailureKind,
}

/// The way an agent gets its prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PromptDelivery {
    /// The prompt is written to standard input.
    #[default]
    Stdin,
    /// The prompt is the last argument.
    Argument,
    /// The prompt is in a file whose path is the last argument.
    File,
}

/// The actions that an agent may take without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Approve {
    /// Read files only.
    None,
    /// Change files in the workspace.
    Edits,
    /// Take any action.
    All,
}

/// An exit code that identifies the cause of an agent's failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExitCodeRule {
    /// The exit code.
    pub(crate) code: i32,
    /// The meaning of the exit code.
    pub(crate) means: ExitMeaning,
    /// A hint for the user about fixing the failure.
    pub(crate) hint: String,
}

/// The meaning of an agent's exit code.
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
    /// Returns the meaning for people, as a clause about the agent.
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
            Self::Permission => FailureKind::Permission,
            Self::Limit => FailureKind::UsageLimit,
        })
    }
}
