//! Finds the files and directories outside the home directory in which tools look for settings and
//! modules: the user's variables name them.

use super::guards::rows;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the variables of `presets/guards.toml` name. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VariablePaths {
    /// Directories of settings, each with its usual place in the home directory.
    pub(super) dirs: Vec<(PathBuf, PathBuf)>,
    pub(super) files: Vec<PathBuf>,
    /// Directories of modules, of which all programs of a language load some.
    pub(super) modules: Vec<PathBuf>,
    /// Environments: directories with a whole installation of packages.
    pub(super) environments: Vec<PathBuf>,
}

impl VariablePaths {
    /// Finds them by this process's variables, which the checks get as well.
    pub(crate) fn of_process() -> Self {
        Self::find(|name| std::env::var_os(name))
    }

    pub(super) fn find(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let rows = &rows().outside;
        let lists = |names: &[String]| -> Vec<PathBuf> {
            let values = names.iter().filter_map(|name| variable(name));
            let mut paths: Vec<PathBuf> = values
                .flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>())
                .filter(|path| is_named(path))
                .collect();
            paths.sort();
            paths.dedup();
            paths
        };
        let dirs = rows.dir_variables.iter().filter_map(|(name, usual)| {
            let dir = PathBuf::from(variable(name)?);
            is_named(&dir).then(|| (dir, PathBuf::from(usual)))
        });
        Self {
            dirs: dirs.collect(),
            files: lists(&rows.file_variables),
            modules: lists(&rows.module_variables),
            environments: lists(&rows.environment_variables),
        }
    }

    /// Replaces links, and removes what is in the workspace: it is compared there. A directory that
    /// contains the workspace or the home directory has everything in it, not only settings.
    pub(super) fn resolve(&mut self, workspace: &Path, home: Option<&Path>) {
        let real = |path: &mut PathBuf| {
            if let Ok(target) = std::fs::canonicalize(&*path) {
                *path = target;
            }
            let has_everything =
                workspace.starts_with(&*path) || home.is_some_and(|home| home.starts_with(&*path));
            !has_everything && !path.starts_with(workspace)
        };
        self.dirs.retain_mut(|(dir, _)| real(dir));
        for paths in [&mut self.modules, &mut self.environments] {
            paths.retain_mut(real);
        }
        // A link to a file is watched itself, and so is its target.
        let targets = self.files.iter().filter_map(|file| {
            let target = std::fs::canonicalize(file).ok()?;
            (target != *file).then_some(target)
        });
        let targets: Vec<PathBuf> = targets.collect();
        self.files.extend(targets);
        self.files.retain(|file| !file.starts_with(workspace));
    }
}

/// Returns whether a variable names one place. The root directory is no place for settings.
fn is_named(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}
