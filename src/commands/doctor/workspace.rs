//! What a loop would find in the current directory.

use super::report::Workspace;
use crate::git::summary::glance;
use std::path::Path;

pub(crate) fn look(here: &Path, settings_trouble: Option<String>) -> Workspace {
    let (found, trouble) = match glance(here) {
        Ok(found) => (found, None),
        Err(trouble) => (None, Some(trouble)),
    };
    let layers = ["settings", "settings.local"];
    let settings = layers.iter().flat_map(|layer| {
        ["json", "toml", "yaml", "yml"].map(|end| format!(".ralph/{layer}.{end}"))
    });
    Workspace {
        path: here.display().to_string(),
        git: found.is_some() || trouble.is_some(),
        branch: found.as_ref().and_then(|found| found.branch.clone()),
        changed_files: found.map(|found| found.changed),
        trouble,
        prompt_file: here.join("PROMPT.md").is_file(),
        settings: settings.filter(|path| here.join(path).exists()).collect(),
        settings_trouble,
    }
}
