//! The plugins' own files, as they are written here: with the program that its hooks call, and a version that changes
//! with them.

use super::json::{Json, Part};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A file below the plugin's directory, and its text.
pub(crate) type File = (&'static str, String);

const MANIFEST: &str = "ralph/.claude-plugin/plugin.json";
/// The hook that only newer clients know.
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

/// The hooks for Codex, which go among those of the user.
pub(crate) const CODEX_HOOKS: &str = include_str!("../../../plugin/codex/hooks.json");

/// The skills for Codex: only a person calls them, never the model.
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

/// The files for Claude Code. A client that does not know the event of failures would drop every hook of a file that
/// names it: it gets no such file.
pub(crate) fn claude(program: &str, knows_failure: bool) -> Vec<File> {
    let wanted = CLAUDE
        .into_iter()
        .filter(|(path, _)| *path != FAILURE || knows_failure);
    let mut files: Vec<File> = wanted
        .map(|(path, text)| (path, calling(text, program)))
        .collect();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    // Old clients copy a plugin once for each version, and look no further.
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

/// Every file that any client may get.
pub(crate) fn claude_names() -> impl Iterator<Item = &'static str> {
    CLAUDE.into_iter().map(|(path, _)| path)
}

/// The skills for Codex.
pub(crate) fn codex() -> Vec<File> {
    let policies = POLICIES.map(|path| (path, POLICY));
    SKILLS
        .into_iter()
        .chain(policies)
        .map(|(path, text)| (path, text.to_owned()))
        .collect()
}

/// The names of those skills.
pub(crate) fn codex_skills() -> impl Iterator<Item = &'static str> {
    SKILLS
        .into_iter()
        .filter_map(|(path, _)| path.split('/').next())
}

/// The same text, with this program where it says `ralph hook`.
pub(crate) fn calling(text: &str, program: &str) -> String {
    let command = Value::from(format!("{program} hook ")).to_string();
    text.replace("\"ralph hook ", command.trim_end_matches('"'))
}

fn manifest(text: &str, version: &str, knows_failure: bool) -> String {
    let mut json = Json::read(text).expect("the plugin's manifest is an object");
    let mut set = |key: &str, value: &str| {
        json.set(&[Part::Key(key.to_owned())], &value.into())
            .expect("an object has room for a key");
    };
    set("version", version);
    if knows_failure {
        set("hooks", "./hooks/failure.json");
    }
    json.text().to_owned()
}
