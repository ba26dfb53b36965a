//! Which agents are known, and what gets one of them.

use serde::Deserialize;

/// What is known of an agent.
#[derive(Debug, Deserialize)]
pub(super) struct Preset {
    pub(super) title: String,
    pub(super) command: Vec<String>,
    pub(super) install: String,
    pub(super) login: String,
    pub(super) version: Vec<String>,
}

macro_rules! known {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../presets/agents/", $name, ".toml")))),*]
    };
}

/// All agents that are known, by name, the most likely first.
pub(super) fn presets() -> Vec<(String, Preset)> {
    let known = known![
        "claude",
        "codex",
        "gemini",
        "opencode",
        "copilot",
        "cursor-agent",
        "amp",
        "droid",
        "goose",
        "qwen",
        "pi",
        "aider",
    ];
    known
        .into_iter()
        .map(|(name, text)| (name.to_owned(), toml::from_str(text).expect("presets are right")))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_preset_can_be_read() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/presets/agents")).unwrap();
        assert_eq!(super::presets().len(), files.count());
    }
}
