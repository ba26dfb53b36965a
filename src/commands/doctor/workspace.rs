//! Inspects the current directory: git, prompt file and settings files.

use super::report::WorkspaceReport;
use crate::git::summary::summarize;
use std::path::Path;

pub(super) fn inspect(
    here: &Path,
    untrusted: Vec<String>,
    settings_error: Option<String>,
) -> WorkspaceReport {
    let (repository, git_error) = match summarize(here) {
        Ok(repository) => (repository, None),
        Err(error) => (None, Some(error)),
    };
    let layers = ["settings", "settings.local"];
    let settings = layers.iter().flat_map(|layer| {
        ["json", "toml", "yaml", "yml"].map(|extension| format!(".ralph/{layer}.{extension}"))
    });
    WorkspaceReport {
        path: here.display().to_string(),
        git: repository.is_some() || git_error.is_some(),
        branch: repository.as_ref().and_then(|found| found.branch.clone()),
        changed_files: repository.map(|found| found.changed_files),
        git_error,
        prompt_file: here.join("PROMPT.md").is_file(),
        settings: settings.filter(|path| here.join(path).exists()).collect(),
        untrusted,
        settings_error,
    }
}
