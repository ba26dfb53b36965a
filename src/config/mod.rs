//! Turns embedded defaults, settings files and flags into a complete, validated plan.
//!
//! Each source becomes a [`Layer`] of values, validated against the table in [`keys`]. A
//! [`LayerStack`] merges the layers into [`Settings`], which have a value for every key.
//! [`Config::draft_plan`] turns settings into a [`PlanDraft`], and [`PlanDraft::into_plan`]
//! completes the plan.

pub(crate) mod agents;
pub(crate) mod billing;
#[cfg(feature = "cli")]
mod file;
pub(crate) mod keys;
pub(crate) mod layers;
mod plan_draft;
pub(crate) mod prices;
mod proof;
#[cfg(feature = "cli")]
pub(crate) mod replay;
pub(crate) mod sandbox;
#[cfg(feature = "cli")]
pub(crate) mod schema;
pub(crate) mod scm;
pub(crate) mod settings;
#[cfg(feature = "cli")]
mod strict_value;
pub(crate) mod task;
mod template;
#[cfg(feature = "cli")]
pub(crate) mod trust;
#[cfg(feature = "cli")]
mod typed_paths;
pub(crate) mod units;
pub(crate) mod url;
pub(crate) mod validate;

use crate::agent::redact::Redactor;
use crate::engine::plan::Agent;
use crate::engine::session::ClientSession;
use agents::AgentPreset;
#[cfg(feature = "cli")]
pub(crate) use file::{
    SettingsFile, SettingsFiles, SettingsPaths, has_settings, reject_parent_settings,
};
pub(crate) use layers::{Layer, LayerStack, Origin};
pub(crate) use plan_draft::PlanDraft;
pub(crate) use proof::{NO_TIMEOUT, check_glob};
pub(crate) use settings::Settings;
use std::borrow::Cow;
use std::path::PathBuf;
#[cfg(feature = "cli")]
pub(crate) use typed_paths::resolve_typed_paths;
use units::Millis;

/// The configuration of one run: settings and agent presets, merged and validated once.
pub(crate) struct Config {
    pub(crate) stack: LayerStack,
    pub(crate) settings: Settings,
    /// All known agents by name, in the order in which ralph looks for an installed one.
    pub(crate) presets: Vec<(String, AgentPreset)>,
}

impl Config {
    /// Merges the layers and loads the agent presets.
    pub(crate) fn new(stack: LayerStack) -> Result<Self, ConfigError> {
        let settings = Settings::from_layers(&stack);
        let presets = agents::load_presets(&stack, &settings.agents)?;
        Ok(Self {
            stack,
            settings,
            presets,
        })
    }

    /// Returns the preset of an agent: by its name, or by the program that it runs.
    fn preset_of(&self, agent: &Agent) -> Option<&AgentPreset> {
        let known = self.presets.iter().find(|(name, _)| *name == agent.name);
        let program = agent.command.first().map(String::as_str);
        known
            .or_else(|| agents::preset_for_program(&self.presets, program.unwrap_or_default()))
            .map(|(_, preset)| preset)
    }

    /// Returns the name of a setting for messages, depending on the source of its value.
    pub(crate) fn display_name(&self, key: &str) -> String {
        self.stack.display_name(key)
    }
}

/// The parts of a run that are not settings: the task, the agent's command and the directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRequest {
    /// The task on the command line; `None` if it is in the settings.
    pub(crate) task: Option<String>,
    /// The agent's command after `--`; empty if there is none.
    pub(crate) command: Vec<String>,
    /// Whether the agent is a function in the host program instead of a command.
    pub(crate) function: bool,
    /// The client session that the loop runs in; `None` if ralph starts the agent itself.
    pub(crate) session: Option<SessionRequest>,
    /// The directory in which the loop works.
    pub(crate) workspace: PathBuf,
    /// Ralph's directory in the user's configuration directory; `None` if unknown.
    pub(crate) config_dir: Option<PathBuf>,
}

/// The client session in which a loop will run.
#[derive(Clone, Debug)]
pub(crate) struct SessionRequest {
    pub(crate) session: ClientSession,
    /// Maximum number of consecutive times that the client lets ralph continue an agent that uses
    /// no tool; `None` if the client has no such cap.
    pub(crate) block_cap: Option<u32>,
    /// Whether ralph can read what a turn has used, so that cost and token limits can act.
    pub(crate) reports_usage: bool,
}

/// An error in a flag, a key or a file, with a hint.
#[derive(Debug, PartialEq)]
pub(crate) struct ConfigError {
    /// A description of the error that names the flag, key or file.
    pub(crate) message: String,
    /// A hint for fixing the error.
    pub(crate) hint: String,
}

fn config_error<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError {
        message: message.into(),
        hint: hint.into(),
    })
}

fn nonzero_ms(duration: Millis) -> Option<u64> {
    Some(duration.0).filter(|ms| *ms > 0)
}

/// Rejects a name or path that contains the value of a secret variable. The journal and the names of
/// files contain names and paths as they are, because ralph could not use them otherwise. `what` is
/// the flag, setting or thing, for messages.
pub(crate) fn reject_secret(what: &str, text: &str) -> Result<(), ConfigError> {
    let Cow::Owned(redacted) = Redactor::from_env().redact_text(text) else {
        return Ok(());
    };
    config_error(
        format!("{what}: {redacted:?} contains the value of a secret variable"),
        "ralph stores names and paths as they are: choose another, or unset the variable",
    )
}

fn check_pattern(name: &str, pattern: &str) -> Result<(), ConfigError> {
    let Err(error) = regex::Regex::new(pattern) else {
        return Ok(());
    };
    let text = error.to_string();
    let reason = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let hint = if text.contains("look-around") {
        "Rust regular expressions have no look-around: describe what matches instead"
    } else {
        "use Rust regex syntax; put a backslash before a literal . ( [ { * + or ?"
    };
    config_error(
        format!("{name} {pattern:?} is not a valid pattern: {reason}"),
        hint,
    )
}

#[cfg(test)]
mod tests;
