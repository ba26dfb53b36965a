//! What a baseline covers: the workspace, and the paths outside it that matter to its checks.

use super::check_script::{add_sourced, scripts};
use super::encoding::{ManifestReader, put_bytes, put_number};
use super::manifest::as_path;
use super::settings_paths::VariablePaths;
use crate::git;
use crate::git::ignored::IgnoredPaths;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What a caller knows about a loop when its baseline is taken.
pub(crate) struct BaselineSpec<'a> {
    pub(crate) workspace: &'a Path,
    /// The user's home directory.
    pub(crate) home: Option<&'a Path>,
    /// The directories of `PATH`.
    pub(crate) path_dirs: Vec<PathBuf>,
    /// Where tools look for settings besides the home directory.
    pub(crate) settings: VariablePaths,
    /// The commands of the checks.
    pub(crate) checks: Vec<&'a str>,
    /// Patterns of further guards, from `--protect`.
    pub(crate) protect: &'a [String],
    /// Absolute paths that ralph and the agent may change: their own settings and state.
    pub(crate) own: Vec<PathBuf>,
    /// Whether sources are copied too, because no checkpoint contains them.
    pub(crate) copies_sources: bool,
}

/// A [`BaselineSpec`] as it is stored, with what follows from it at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) workspace: PathBuf,
    pub(super) home: Option<PathBuf>,
    pub(super) path_dirs: Vec<PathBuf>,
    pub(super) settings: VariablePaths,
    /// The scripts that the checks execute, whether or not they exist.
    pub(super) scripts: Vec<PathBuf>,
    pub(super) own: Vec<PathBuf>,
    /// The git directories of the workspace: its own, and the one that all worktrees share.
    pub(super) git_dirs: Vec<PathBuf>,
    pub(super) protect: Vec<String>,
    /// The paths that git ignored.
    pub(super) ignored: IgnoredPaths,
    /// Whether git could be asked.
    pub(super) has_git: bool,
}

impl Scope {
    pub(super) fn new(spec: &BaselineSpec<'_>) -> io::Result<Self> {
        let workspace = std::fs::canonicalize(spec.workspace)?;
        let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let mut path_dirs: Vec<PathBuf> = spec
            .path_dirs
            .iter()
            .filter(|dir| dir.is_absolute())
            .map(real)
            .collect();
        path_dirs.retain(|dir| !dir.starts_with(&workspace));
        path_dirs.sort();
        path_dirs.dedup();
        let mut all: Vec<PathBuf> = Vec::new();
        for script in spec
            .checks
            .iter()
            .flat_map(|check| scripts(check, &workspace))
        {
            // A script in a system directory is a program like any other in PATH.
            if script.starts_with(&workspace) || !path_dirs.contains(&parent(&script)) {
                all.extend(
                    std::fs::canonicalize(&script)
                        .ok()
                        .filter(|target| *target != script),
                );
                all.push(script);
            }
        }
        all.sort();
        all.dedup();
        add_sourced(&mut all, &workspace);
        all.sort();
        let ignored = git::ignored::ignored_paths(&workspace);
        let mut settings = spec.settings.clone();
        let home = spec.home.map(|home| real(&home.to_owned()));
        settings.resolve(&workspace, home.as_deref());
        Ok(Self {
            settings,
            home,
            own: spec.own.iter().map(real).collect(),
            path_dirs,
            scripts: all,
            git_dirs: git::git_dirs_of(&workspace),
            protect: spec.protect.to_vec(),
            has_git: ignored.is_some(),
            ignored: ignored.unwrap_or_default(),
            workspace,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.workspace.as_os_str().as_bytes());
        put_paths(out, self.home.as_slice());
        put_paths(out, &self.path_dirs);
        put_paths(out, &self.scripts);
        put_paths(out, &self.own);
        put_paths(out, &self.git_dirs);
        put_list(out, self.protect.iter().map(String::as_bytes));
        put_list(out, self.ignored.iter());
        put_number(out, self.has_git.into());
        let settings = &self.settings;
        for dirs in [
            settings.dirs.iter().map(|(dir, _)| dir).collect::<Vec<_>>(),
            settings.dirs.iter().map(|(_, usual)| usual).collect(),
            settings.files.iter().collect(),
            settings.modules.iter().collect(),
            settings.environments.iter().collect(),
        ] {
            put_list(out, dirs.iter().map(|path| path.as_os_str().as_bytes()));
        }
    }

    /// Reads a scope. Those of the first format have no settings besides the home directory.
    pub(super) fn read(from: &mut ManifestReader<'_>, is_first_format: bool) -> io::Result<Self> {
        let mut scope = Self {
            workspace: as_path(from.bytes()?).to_owned(),
            home: read_paths(from)?.pop(),
            path_dirs: read_paths(from)?,
            scripts: read_paths(from)?,
            own: read_paths(from)?,
            git_dirs: read_paths(from)?,
            protect: read_list(from, |text| String::from_utf8_lossy(text).into_owned())?,
            ignored: IgnoredPaths::new(read_list(from, <[u8]>::to_vec)?),
            has_git: from.number()? != 0,
            settings: VariablePaths::default(),
        };
        if !is_first_format {
            let dirs = read_paths(from)?;
            scope.settings = VariablePaths {
                dirs: dirs.into_iter().zip(read_paths(from)?).collect(),
                files: read_paths(from)?,
                modules: read_paths(from)?,
                environments: read_paths(from)?,
            };
        }
        Ok(scope)
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

fn put_paths(out: &mut Vec<u8>, paths: &[PathBuf]) {
    put_list(out, paths.iter().map(|path| path.as_os_str().as_bytes()));
}

fn put_list<'a>(out: &mut Vec<u8>, items: impl ExactSizeIterator<Item = &'a [u8]>) {
    put_number(out, items.len() as u64);
    items.for_each(|item| put_bytes(out, item));
}

fn read_paths(from: &mut ManifestReader<'_>) -> io::Result<Vec<PathBuf>> {
    read_list(from, |bytes| as_path(bytes).to_owned())
}

fn read_list<T>(from: &mut ManifestReader<'_>, item: impl Fn(&[u8]) -> T) -> io::Result<Vec<T>> {
    (0..from.number()?)
        .map(|_| Ok(item(from.bytes()?)))
        .collect()
}
