//! Decides whether an agent can run in the sandbox that the user asks for.

use super::agents::AgentPreset;
use super::{ConfigError, LayerStack, billing, config_error};
use crate::engine::plan::{Agent, Sandbox};
use crate::os::regular_file;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// How to find out whether an agent runs its commands in a sandbox of its own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OwnSandbox {
    /// Whether it does so unless its arguments say otherwise.
    pub(crate) always: bool,
    /// Arguments that turn it on. A space separates an argument from its value.
    pub(crate) on: Vec<String>,
    /// Arguments that turn it off, although it is on otherwise.
    pub(crate) off: Vec<String>,
    /// Environment variables that turn it on.
    pub(crate) variables: Vec<String>,
    /// Settings of the agent that turn it on.
    pub(crate) settings: Vec<AgentSetting>,
}

/// A value in one of the agent's own settings files, in JSON.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSetting {
    /// The file: in the home directory, or else in the workspace.
    pub(crate) file: String,
    /// The names of the objects and of the value, separated by dots.
    pub(crate) key: String,
}

/// Another tool's credentials that an agent reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialPath {
    pub(crate) path: String,
    /// The variable that makes the agent use them; empty if it always does.
    #[serde(default)]
    pub(crate) variable: String,
}

/// Maximum size of an agent's settings file, in bytes.
const SETTINGS_MAX: u64 = 1 << 20;

impl OwnSandbox {
    /// Returns what turns the agent's own sandbox on; `None` if it is off.
    fn active_by(&self, agent: &Agent, workspace: &Path) -> Option<String> {
        let has = |words: &String| has_words(&agent.command, words);
        if self.off.iter().any(has) {
            return None;
        }
        if let Some(words) = self.on.iter().find(|words| has(words)) {
            return Some(words.clone());
        }
        let is_set = |name: &&String| {
            let value = std::env::var(name).unwrap_or_default();
            !matches!(value.as_str(), "" | "0" | "false")
        };
        if let Some(name) = self.variables.iter().find(is_set) {
            return Some(name.clone());
        }
        let setting = self.settings.iter().find(|one| one.is_on(workspace));
        if let Some(AgentSetting { file, key }) = setting {
            return Some(format!("{key} in {file}"));
        }
        self.always.then(|| "its default".to_owned())
    }
}

impl AgentSetting {
    fn is_on(&self, workspace: &Path) -> bool {
        let path = if self.file.starts_with(['~', '$']) {
            billing::expand(&self.file)
        } else {
            Some(workspace.join(&self.file))
        };
        let text = path.and_then(|path| regular_file::read(&path, SETTINGS_MAX, true).ok());
        let text = text.map(|(bytes, _)| bytes).unwrap_or_default();
        let root: Value = serde_json::from_slice(&text).unwrap_or_default();
        let value = self.key.split('.').fold(&root, |value, name| &value[name]);
        !matches!(value, Value::Null | Value::Bool(false))
    }
}

/// Returns whether a command has this argument, or this argument and value: `--sandbox enabled` and
/// `--sandbox=enabled`.
fn has_words(command: &[String], words: &str) -> bool {
    match words.split_once(' ') {
        None => {
            let with_value = format!("{words}=");
            let is_flag = words.starts_with("--");
            let mut args = command.iter();
            args.any(|arg| arg == words || (is_flag && arg.starts_with(&with_value)))
        }
        Some((flag, value)) => {
            let joined = format!("{flag}={value}");
            command.contains(&joined)
                || command
                    .windows(2)
                    .any(|pair| pair[0] == flag && pair[1] == value)
        }
    }
}

/// Returns the paths of other tools' credentials that an agent reads.
pub(super) fn credentials(preset: &AgentPreset) -> Vec<String> {
    let is_used = |one: &&CredentialPath| {
        one.variable.is_empty()
            || std::env::var(&one.variable).is_ok_and(|value| !value.is_empty() && value != "0")
    };
    let used = preset.credentials.iter().filter(is_used);
    used.filter_map(|one| billing::expand(&one.path))
        .filter_map(|path| path.into_os_string().into_string().ok())
        .collect()
}

/// Rejects an agent that does not work in the sandbox, or that runs outside ralph's control.
pub(super) fn check_agent(
    stack: &LayerStack,
    kind: Sandbox,
    agent: &Agent,
    preset: Option<&AgentPreset>,
    workspace: &Path,
) -> Result<(), ConfigError> {
    let flag = stack.display_name("sandbox");
    if agent.command.is_empty() {
        return config_error(
            format!("{flag}: a function of the host program cannot run in a sandbox"),
            "run a command as the agent, or leave the sandbox out",
        );
    }
    let own = preset.filter(|_| kind == Sandbox::Landlock);
    let own = own.and_then(|preset| preset.own_sandbox.active_by(agent, workspace));
    match own {
        None => Ok(()),
        Some(by) => config_error(
            format!(
                "{flag}: {} runs commands in a sandbox of its own ({by}), which does not work inside Landlock",
                agent.name
            ),
            "use --sandbox=bwrap, in which it works, or turn the agent's own sandbox off",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_and_its_value_are_found_in_both_spellings() {
        let command = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (line, words, expected) in [
            ("gemini --sandbox", "--sandbox", true),
            ("gemini --sandbox=docker", "--sandbox", true),
            ("gemini --sandboxed", "--sandbox", false),
            ("gemini -s", "-s", true),
            ("cursor-agent --sandbox enabled", "--sandbox enabled", true),
            ("cursor-agent --sandbox=enabled", "--sandbox enabled", true),
            (
                "cursor-agent --sandbox disabled",
                "--sandbox enabled",
                false,
            ),
            ("cursor-agent enabled --sandbox", "--sandbox enabled", false),
        ] {
            assert_eq!(has_words(&command(line), words), expected, "{line}");
        }
    }

    #[test]
    fn a_sandbox_of_an_agents_own_is_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let agent = |line: &str| Agent {
            command: line.split(' ').map(str::to_owned).collect(),
            ..Agent::default()
        };
        let codex = OwnSandbox {
            always: true,
            off: vec!["--yolo".into(), "--sandbox danger-full-access".into()],
            ..OwnSandbox::default()
        };
        let active = |own: &OwnSandbox, line: &str| own.active_by(&agent(line), dir.path());
        assert!(active(&codex, "codex exec").is_some());
        assert!(active(&codex, "codex exec --sandbox read-only").is_some());
        assert_eq!(active(&codex, "codex exec --yolo"), None);
        assert_eq!(
            active(&codex, "codex exec --sandbox=danger-full-access"),
            None
        );
        let claude = OwnSandbox {
            settings: vec![AgentSetting {
                file: "settings.json".into(),
                key: "sandbox.enabled".into(),
            }],
            ..OwnSandbox::default()
        };
        assert_eq!(active(&claude, "claude"), None);
        let file = dir.path().join("settings.json");
        std::fs::write(&file, r#"{"sandbox": {"enabled": false}}"#).unwrap();
        assert_eq!(active(&claude, "claude"), None);
        std::fs::write(&file, r#"{"sandbox": {"enabled": true}}"#).unwrap();
        let by = active(&claude, "claude").unwrap();
        assert_eq!(by, "sandbox.enabled in settings.json");
    }
}
