//! The plugin's embedded files, with this program's path in their hooks and a version that changes
//! with their content.

use super::json::{JsonDocument, PathPart};
use crate::client::descriptor::{Client, HooksFileSpec};
use crate::engine::template;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A file's path relative to the plugin's directory, and its text.
pub(crate) type PluginFile = (String, String);

const MANIFEST: &str = "ralph/.claude-plugin/plugin.json";
/// The hook file for an event that only newer clients support.
pub(crate) const FAILURE: &str = "ralph/hooks/failure.json";

macro_rules! embedded {
    ($dir:literal: $($path:literal)*) => { [$(($path, include_str!(concat!("../../../plugin/", $dir, $path)))),*] };
}

const MARKETPLACE: [(&str, &str); 8] = embedded!("claude/":
    ".claude-plugin/marketplace.json"
    "ralph/.claude-plugin/plugin.json"
    "ralph/README.md"
    "ralph/commands/cancel-ralph.md"
    "ralph/commands/ralph-help.md"
    "ralph/commands/ralph-loop.md"
    "ralph/hooks/hooks.json"
    "ralph/hooks/failure.json"
);

/// The hooks to merge into a file that also contains the user's own.
const SHARED_HOOKS: &str = include_str!("../../../plugin/hooks-file/hooks.json");

/// Skills that start, cancel and explain a loop.
const SKILLS: [(&str, &str); 3] = embedded!("hooks-file/skills/":
    "ralph-loop/SKILL.md"
    "cancel-ralph/SKILL.md"
    "ralph-help/SKILL.md"
);
/// The policy file that allows only the user, never the model, to call a skill.
const SKILL_POLICY: &str = include_str!("../../../plugin/hooks-file/skills/openai.yaml");

/// Returns the files of the marketplace. Leaves out the failure hook if the client does not support
/// its event, because such a client ignores every hook in a file that mentions the event.
pub(crate) fn marketplace_files(program: &str, knows_failure: bool) -> Vec<PluginFile> {
    let wanted = MARKETPLACE
        .into_iter()
        .filter(|(path, _)| *path != FAILURE || knows_failure);
    let mut files: Vec<PluginFile> = wanted
        .map(|(path, text)| (path.to_owned(), set_program(text, program)))
        .collect();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    // Old clients copy a plugin once per version and ignore later changes, so every change of the
    // files needs a new version.
    let version = format!(
        "{}+{:08x}",
        env!("CARGO_PKG_VERSION"),
        hasher.finish() >> 32
    );
    if let Some((_, text)) = files.iter_mut().find(|(path, _)| path == MANIFEST) {
        *text = manifest(text, &version, knows_failure);
    }
    files
}

/// Returns the paths of all files that any version of the client may get.
pub(crate) fn marketplace_paths() -> impl Iterator<Item = &'static str> {
    MARKETPLACE.into_iter().map(|(path, _)| path)
}

/// Returns the hooks for a client: a JSON object of events.
pub(crate) fn shared_hooks(client: &Client, program: &str) -> String {
    set_program(&fill(SHARED_HOOKS, client, true), program)
}

/// Returns the skill files for a client.
pub(crate) fn skill_files(client: &Client, spec: &HooksFileSpec) -> Vec<PluginFile> {
    let skills = SKILLS.into_iter().map(|(path, text)| {
        let text = fill(text, client, spec.trust.is_some());
        (path.to_owned(), text)
    });
    let policies = skill_names().filter_map(|name| {
        let path = spec.skill_policy.as_ref()?;
        Some((format!("{name}/{path}"), SKILL_POLICY.to_owned()))
    });
    skills.chain(policies).collect()
}

/// Returns the names of the skills, which are also their directories.
pub(crate) fn skill_names() -> impl Iterator<Item = &'static str> {
    SKILLS
        .into_iter()
        .filter_map(|(path, _)| path.split('/').next())
}

/// Replaces the placeholders for values that differ between clients. `needs_trust` keeps the text
/// about hooks that the user has to trust.
fn fill(text: &str, client: &Client, needs_trust: bool) -> String {
    template::fill(text, &|name| match name {
        "client" => Some(client.name.clone()),
        "sigil" => Some(client.sigil.to_string()),
        "trust" => Some(if needs_trust { "true" } else { "" }.to_owned()),
        _ => None,
    })
}

/// Replaces `ralph` in hook commands with the path of this program.
fn set_program(text: &str, program: &str) -> String {
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
