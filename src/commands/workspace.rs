//! Chooses the workspace of a command: the top of the repository, so that its settings and checks
//! apply, or with `--here` the current directory.

use crate::config::has_settings;
use crate::git;
use crate::lifecycle::error::CommandError;
use crate::ui::print::note;
use std::path::{Path, PathBuf};

/// The workspace, and where the user is in it.
pub(crate) struct ChosenWorkspace {
    pub(crate) path: PathBuf,
    /// The current directory, relative to the workspace; empty if they are the same.
    pub(crate) current_dir: PathBuf,
}

impl ChosenWorkspace {
    /// Chooses the workspace, and says so if it is not the current directory.
    pub(crate) fn choose(here: bool) -> Result<Self, CommandError> {
        let chosen = Self::find(here)?;
        if let Some(text) = chosen.note() {
            note(text);
        }
        Ok(chosen)
    }

    /// Chooses the workspace.
    pub(crate) fn find(here: bool) -> Result<Self, CommandError> {
        let current = current_dir()?;
        // A repository that ignores the current directory has nothing to do with the work there.
        let top = git::checkout_top(&current)
            .filter(|top| !here && (*top == current || !git::is_ignored(&current)));
        let current_dir = top
            .and_then(|top| current.strip_prefix(top).ok())
            .unwrap_or(Path::new(""))
            .to_owned();
        let path = top.map(Path::to_owned).unwrap_or(current);
        Ok(Self { path, current_dir })
    }

    /// Returns a path that was typed in the current directory, relative to the workspace.
    pub(crate) fn typed_path(&self, path: &Path) -> PathBuf {
        self.current_dir.join(path)
    }

    fn note(&self) -> Option<String> {
        if self.current_dir.as_os_str().is_empty() {
            return None;
        }
        let unused = self
            .current_dir
            .ancestors()
            .filter(|dir| !dir.as_os_str().is_empty())
            .find(|dir| has_settings(&self.path.join(dir)));
        let unused =
            unused.map(|dir| format!(" and uses the settings in {}/.ralph", dir.display()));
        Some(format!(
            "the workspace is the top of the repository, {}; --here stays in {}{}",
            self.path.display(),
            self.current_dir.display(),
            unused.unwrap_or_default()
        ))
    }
}

/// Returns the canonical current directory.
pub(crate) fn current_dir() -> Result<PathBuf, CommandError> {
    let dir = std::env::current_dir().and_then(std::fs::canonicalize);
    dir.map_err(|error| {
        CommandError::broken(format!("cannot find the current directory: {error}"))
            .with_hint("cd to a directory that exists")
    })
}
