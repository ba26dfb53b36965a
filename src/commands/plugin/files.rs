//! The embedded files of the plugins, with the path of this program in their hooks and a version
//! that changes with their content.

use super::json::{JsonDocument, PathPart};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The path of a file in the plugin's directory, and its text.
pub(crate) type PluginFile = (&'static str, String);

const MANIFEST: &str = "ralph/.claude-plugin/plugin.json";
/// The hook file for an event that only newer clients know.
pub(crate) const FAILURE: &str = "ralph/hooks/failure.json";

macro_rules! embedded {
    ($dir:literal: $($path:literal)*) => { [$(($path, include_str!(concat!("../../../plugin/", $dir, $path)))),*] };
}

const CLAUDE: [(&str, &str); 8] = embedded!("claude/":
    ".claude-plugin/marketplace.json"
    "ralph/.claude-plugin/plugin.json"
    "ralph/README.md"
    "ralph/commands/cancel-ralph.md"
    "ralph/commands/ralph-help.md"
    "ralph/commands/ralph-loop.md"
    "ralph/hooks/hooks.json"
    "ralph/hooks/failure.json"
);

/// The hooks for Codex, which are merged into the user's hooks.
pub(crate) const CODEX_HOOKS: &str = include_str!("../../../plugin/codex/hooks.json");

/// The skills for Codex. Their policy allows only the user to call them, never the model.
const SKILLS: [(&str, &str); 3] = embedded!("codex/skills/":
    "ralph-loop/SKILL.md"
    "cancel-ralph/SKILL.md"
    "ralph-help/SKILL.md"
);
const POLICY: &str = include_str!("../../../plugin/codex/skills/openai.yaml");
const POLICIES: [&str; 3] = [
    "ralph-loop/agents/openai.yaml",
    "cancel-ralph/agents/openai.yaml",
    "ralph-help/agents/openai.yaml",
];

/// Returns the files for Claude Code. A client that does not know the failure event would ignore
/// every hook in a file that mentions it, so it does not get that file.
pub(crate) fn claude_files(program: &str, knows_failure: bool) -> Vec<PluginFile> {
    let wanted = CLAUDE
        .into_iter()
        .filter(|(path, _)| *path != FAILURE || knows_failure);
    let mut files: Vec<PluginFile> = wanted
        .map(|(path, text)| (path, set_program(text, program)))
        .collect();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    // Old clients copy a plugin once per version and ignore later changes.
    let version = format!(
        "{}+{:08x}",
        env!("CARGO_PKG_VERSION"),
        hasher.finish() >> 32
    );
    if let Some((_, text)) = files.iter_mut().find(|(path, _)| *path == MANIFEST) {
        *text = manifest(text, &version, knows_failure);
    }
    files
}

/// The paths of all files that any version of Claude Code may get.
pub(crate) fn claude_paths() -> impl Iterator<Item = &'static str> {
    CLAUDE.into_iter().map(|(path, _)| path)
}

/// Returns the skill files for Codex.
pub(crate) fn codex_files() -> Vec<PluginFile> {
    let policies = POLICIES.map(|path| (path, POLICY));
    SKILLS
        .into_iter()
        .chain(policies)
        .map(|(path, text)| (path, text.to_owned()))
        .collect()
}

/// The names of the skills for Codex.
pub(crate) fn codex_skills() -> impl Iterator<Item = &'static str> {
    SKILLS
        .into_iter()
        .filter_map(|(path, _)| path.split('/').next())
}

/// Replaces `ralph hook` in a text with the same call of this program.
pub(crate) fn set_program(text: &str, program: &str) -> String {
    let command = Value::from(format!("{program} hook ")).to_string();
    text.replace("\"ralph hook ", command.trim_end_matches('"'))
}

fn manifest(text: &str, version: &str, knows_failure: bool) -> String {
    let mut json = JsonDocument::parse(text).expect("the plugin's manifest is an object");
    let mut set = |key: &str, value: &str| {
        json.set(&[PathPart::Key(key.to_owned())], &value.into())
            .expect("the key can be set");
    };
    set("version", version);
    if knows_failure {
        set("hooks", "./hooks/failure.json");
    }
    json.text().to_owned()
}
