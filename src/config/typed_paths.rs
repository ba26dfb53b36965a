//! Resolves the relative paths of a command line that was typed in a subdirectory of the workspace.

use super::agents::split_names;
use super::keys::{SettingKind, table};
use super::layers::Layer;
use crate::engine::plan::SCRIPT;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Makes the paths in the flags and in the agent's command relative to the workspace. `dir` is the
/// current directory, relative to the workspace.
pub(crate) fn resolve_typed_paths(flags: &mut Layer, command: &mut [String], dir: &Path) {
    if dir.as_os_str().is_empty() {
        return;
    }
    for key in table().iter().filter(|key| key.kind == SettingKind::Path) {
        if let Some(Value::String(path)) = flags.values.get_mut(&key.name) {
            *path = from_workspace(dir, path);
        }
    }
    if let Some(Value::String(names)) = flags
        .values
        .get_mut("agent")
        .and_then(|agent| agent.get_mut("name"))
    {
        let resolved = split_names(names)
            .into_iter()
            .map(|name| program(dir, name));
        *names = resolved.collect::<Vec<_>>().join(",");
    }
    if let Some(first) = command.first_mut() {
        *first = program(dir, first);
    }
}

/// Resolves the path of a script or of a program; a bare name is looked up elsewhere.
fn program(dir: &Path, name: &str) -> String {
    match name.strip_prefix(SCRIPT) {
        Some(file) => format!("{SCRIPT}{}", from_workspace(dir, file)),
        None if name.contains('/') => from_workspace(dir, name),
        None => name.to_owned(),
    }
}

fn from_workspace(dir: &Path, path: &str) -> String {
    // `components` drops `./`.
    let joined: PathBuf = dir.join(path).components().collect();
    joined.display().to_string()
}
