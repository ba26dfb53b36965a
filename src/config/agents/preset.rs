//! Agent presets: the command and the output format of each known agent. Presets are data; none has
//! code of its own.

use crate::config::keys::key;
use crate::config::layers::{merge, remove_nulls};
use crate::config::sandbox::{CredentialPath, OwnSandbox};
use crate::config::validate::normalize;
use crate::config::{ConfigError, LayerStack, Origin, check_pattern, config_error};
use crate::engine::plan::{
    AllowRule, DialectName, ExitCodeRule, ExitMeaning, FailurePattern, PromptDelivery,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

macro_rules! embedded_presets {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../presets/agents/", $name, ".toml")))),*]
    };
}

/// The embedded presets, in the order in which ralph looks for an installed agent.
const EMBEDDED: [(&str, &str); 12] = embedded_presets![
    "claude",
    "codex",
    "amp",
    "gemini",
    "opencode",
    "copilot",
    "cursor-agent",
    "qwen",
    "goose",
    "aider",
    "droid",
    "pi",
];

/// Error messages that any known agent may repeat.
const COMMON_FAILURES: &str = include_str!("../../../presets/failures.toml");

/// The command and the output format of one agent: a file in `presets/agents/`, or an entry of the
/// setting `agents`. docs/presets.md describes every field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct AgentPreset {
    pub(crate) title: String,
    pub(crate) command: Vec<String>,
    pub(crate) headless: Vec<String>,
    #[serde(rename = "signs")]
    pub(crate) headless_markers: Vec<String>,
    pub(crate) stream: Vec<String>,
    pub(crate) dialect: DialectName,
    pub(crate) ready: Option<String>,
    pub(crate) prompt: PromptDelivery,
    #[serde(rename = "prompt-words")]
    pub(crate) prompt_args: Vec<String>,
    pub(crate) model: Vec<String>,
    pub(crate) model_hint: String,
    pub(crate) approve: ApprovalLevels,
    pub(crate) exit: Vec<PresetExit>,
    pub(crate) denied: Vec<String>,
    pub(crate) allow: Vec<AllowRule>,
    pub(crate) error_lines: Vec<String>,
    pub(crate) success_lines: Vec<String>,
    #[serde(rename = "reason")]
    pub(crate) failure_patterns: Vec<FailurePattern>,
    pub(crate) budget: Vec<String>,
    pub(crate) install: String,
    pub(crate) login: String,
    pub(crate) login_files: Vec<String>,
    pub(crate) login_variables: Vec<String>,
    #[serde(rename = "keys")]
    pub(crate) api_key_variables: Vec<String>,
    #[serde(rename = "inside")]
    pub(crate) session_variables: Vec<String>,
    pub(crate) own_paths: Vec<String>,
    pub(crate) own_sandbox: OwnSandbox,
    pub(crate) credentials: Vec<CredentialPath>,
    pub(crate) version: Vec<String>,
    pub(crate) notes: String,
    pub(crate) tested: String,
}

/// The agent's arguments for each level of `--approve`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApprovalLevels {
    pub(crate) none: ApprovalArgs,
    pub(crate) edits: ApprovalArgs,
    pub(crate) all: ApprovalArgs,
}

/// Arguments and environment variables that select one approval level.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApprovalArgs {
    #[serde(rename = "words")]
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// What the agent may do, as a clause after "you may". The agent reads it after a denial.
    pub(crate) allows: String,
}

impl ApprovalArgs {
    /// Returns whether both select the same level: the agent cannot tell them apart.
    pub(super) fn is_same_level(&self, other: &Self) -> bool {
        self.args == other.args && self.env == other.env
    }
}

/// The meaning of one of the agent's exit codes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresetExit {
    pub(crate) code: i32,
    pub(crate) means: ExitMeaning,
    #[serde(default)]
    pub(crate) hint: String,
}

/// Loads all presets like [`presets`]. An error names the settings file it comes from.
pub(crate) fn load_presets(
    stack: &LayerStack,
    custom: &BTreeMap<String, Value>,
) -> Result<Vec<(String, AgentPreset)>, ConfigError> {
    presets(custom).map_err(|error| match stack.origin(&["agents"]) {
        Origin::File(path) => ConfigError {
            message: format!("{path}: {}", error.message),
            ..error
        },
        _ => error,
    })
}

/// Returns the embedded presets in their order, changed by the setting `agents`, followed by the
/// user's custom agents.
pub(crate) fn presets(
    custom: &BTreeMap<String, Value>,
) -> Result<Vec<(String, AgentPreset)>, ConfigError> {
    let mut all: Vec<(String, Value)> = EMBEDDED
        .iter()
        .map(|(name, text)| ((*name).to_owned(), parse_embedded(text)))
        .collect();
    for (name, changes) in custom {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, Value::Object(known))) => {
                merge(known, changes.as_object().unwrap_or(&Map::new()));
            }
            _ => all.push((name.clone(), changes.clone())),
        }
    }
    let common = common_failures();
    let mut presets = Vec::new();
    for (name, value) in all {
        let mut preset = parse_preset(&name, value)?;
        if EMBEDDED.iter().any(|(known, _)| *known == name) {
            preset.failure_patterns.extend_from_slice(&common);
        }
        // Compiling patterns is slow, and the embedded ones are known to be valid.
        if custom.contains_key(&name) {
            check_patterns(&name, &preset)?;
        }
        presets.push((name, preset));
    }
    Ok(presets)
}

fn check_patterns(name: &str, preset: &AgentPreset) -> Result<(), ConfigError> {
    let lines = [
        ("denied", &preset.denied),
        ("errorLines", &preset.error_lines),
        ("successLines", &preset.success_lines),
    ];
    let lines = lines
        .into_iter()
        .flat_map(|(key, patterns)| patterns.iter().map(move |pattern| (key, pattern)));
    let reasons = preset
        .failure_patterns
        .iter()
        .map(|rule| ("reason.pattern", &rule.pattern));
    let ready = preset.ready.iter().map(|pattern| ("ready", pattern));
    let mut patterns = lines.chain(reasons).chain(ready);
    patterns.try_for_each(|(key, pattern)| check_pattern(&format!("agents.{name}.{key}"), pattern))
}

fn common_failures() -> Vec<FailurePattern> {
    #[derive(Deserialize)]
    struct Rows {
        reason: Vec<FailurePattern>,
    }
    let rows: Rows = toml::from_str(COMMON_FAILURES).expect("the embedded table is valid");
    rows.reason
}

fn parse_embedded(text: &str) -> Value {
    let value: Map<String, Value> = toml::from_str(text).expect("an embedded preset is valid TOML");
    let all = normalize(key("agents"), &json!({ "known": value }), "presets")
        .expect("an embedded preset has valid keys");
    all["known"].clone()
}

fn parse_preset(name: &str, mut value: Value) -> Result<AgentPreset, ConfigError> {
    let path = format!("agents.{name}");
    remove_nulls(&mut value);
    let preset: AgentPreset = match serde_json::from_value(value) {
        Ok(preset) => preset,
        Err(error) => {
            return config_error(
                format!("{path}: {error}"),
                "see docs/presets.md for the keys an agent accepts",
            );
        }
    };
    if preset.command.first().is_none_or(String::is_empty) {
        return config_error(
            format!("{path}: the required key command is missing"),
            "add the program to run, for example command = [\"my-agent\"]",
        );
    }
    Ok(preset)
}

impl AgentPreset {
    /// Returns the command that prints the agent's version, as far as a person asks for it.
    pub(crate) fn version_command(&self) -> Vec<String> {
        let mut command = vec![self.command[0].clone()];
        command.extend_from_slice(&self.version);
        if self.version.is_empty() {
            // Without an argument, most agents would start an interactive session.
            command.push("--version".into());
        }
        command
    }
}

pub(in crate::config) fn preset_for_program<'a>(
    presets: &'a [(String, AgentPreset)],
    program: &str,
) -> Option<&'a (String, AgentPreset)> {
    let base = program.rsplit('/').next().unwrap_or_default();
    presets.iter().find(|(_, preset)| preset.command[0] == base)
}

/// Returns the install instructions for a known agent's program; `None` if they are unknown.
pub(crate) fn install_hint(program: &str, presets: &[(String, AgentPreset)]) -> Option<String> {
    let (_, preset) = preset_for_program(presets, program)?;
    (!preset.install.is_empty()).then(|| match preset.login.as_str() {
        "" => format!("install it: {}", preset.install),
        login => format!("install it: {}; then log in: {login}", preset.install),
    })
}

impl PresetExit {
    pub(super) fn to_rule(&self, preset: &AgentPreset) -> ExitCodeRule {
        let login = self.means == ExitMeaning::Login && self.hint.is_empty();
        let hint = if login {
            format!("log in: {}", preset.login)
        } else {
            self.hint.clone()
        };
        ExitCodeRule {
            code: self.code,
            means: self.means,
            hint,
        }
    }
}
