//! Detects the checks of a repository: those of its top directory, and of projects of other kinds
//! in its subdirectories.

mod kinds;
mod node;
mod python;
mod readers;

use crate::engine::format::shell_quote;
use crate::os::{program, regular_file};
use std::fs;
use std::path::{Path, PathBuf};

/// The checks that one file implies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DetectedChecks {
    /// The file, relative to the top directory.
    pub(crate) file: String,
    /// The commands, each run in the directory `dir`.
    pub(crate) checks: Vec<String>,
    /// The project's directory, if it is not the top one.
    pub(crate) dir: Option<String>,
}

impl DetectedChecks {
    /// Returns a check as a command that runs in the top directory.
    pub(crate) fn command(&self, check: &str) -> String {
        self.dir.as_ref().map_or_else(
            || check.to_owned(),
            |dir| format!("cd {} && {check}", shell_quote(dir)),
        )
    }
}

/// Directories that may hold projects of someone else, or that are not the work itself.
const SKIPPED: [&str; 20] = [
    "benches",
    "build",
    "deps",
    "dist",
    "doc",
    "docs",
    "example",
    "examples",
    "fixtures",
    "fuzz",
    "node_modules",
    "out",
    "target",
    "template",
    "templates",
    "test",
    "testdata",
    "tests",
    "third_party",
    "vendor",
];

/// Directories that hold one project per subdirectory.
const GROUPS: [&str; 9] = [
    "apps", "crates", "libs", "modules", "packages", "projects", "services", "src", "tools",
];

/// Maximum number of projects in subdirectories: more need a check that a person writes.
const PROJECTS_MAX: usize = 12;

/// Detects the checks of the repository in this directory.
pub(crate) fn detect(path: &Path) -> Vec<DetectedChecks> {
    let top = kinds::detect(&ProjectDir { path });
    let mut all: Vec<DetectedChecks> = Vec::new();
    let covered: Vec<String> = top
        .iter()
        .filter(|found| !found.checks.is_empty())
        .map(|found| found.kind.clone())
        .collect();
    let is_whole = top
        .iter()
        .any(|found| found.whole && !found.checks.is_empty());
    all.extend(top.into_iter().map(|found| DetectedChecks {
        file: found.file,
        checks: found.checks,
        dir: None,
    }));
    if is_whole {
        return all;
    }
    let mut projects = 0;
    for dir in subdirectories(path) {
        let found = kinds::detect(&ProjectDir {
            path: &path.join(&dir),
        });
        let wanted = found
            .into_iter()
            .filter(|found| !found.checks.is_empty() && !covered.contains(&found.kind));
        let before = all.len();
        all.extend(wanted.map(|found| DetectedChecks {
            file: format!("{dir}/{}", found.file),
            checks: found.checks,
            dir: Some(dir.clone()),
        }));
        projects += usize::from(all.len() > before);
        if projects == PROJECTS_MAX {
            break;
        }
    }
    all
}

/// Returns the subdirectories that may hold a project, relative to the top directory.
fn subdirectories(top: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for name in child_directories(top) {
        if GROUPS.contains(&name.as_str()) {
            all.extend(
                child_directories(&top.join(&name))
                    .into_iter()
                    .map(|child| format!("{name}/{child}")),
            );
        }
        all.push(name);
    }
    all.sort();
    all
}

/// Returns the names of a directory's subdirectories, without links and hidden or skipped ones.
fn child_directories(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with(['.', '-']) && !SKIPPED.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

/// A directory to inspect.
struct ProjectDir<'a> {
    path: &'a Path,
}

/// Maximum number of bytes of a file to read.
const READ_MAX: u64 = 1 << 20;

impl ProjectDir<'_> {
    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the name of the file or directory that matches: a name that ends in `/` is a
    /// directory, `*` stands for the beginning of a file's name.
    fn find(&self, pattern: &str) -> Option<String> {
        if let Some(dir) = pattern.strip_suffix('/') {
            return self.path.join(dir).is_dir().then(|| pattern.to_owned());
        }
        let Some(ending) = pattern.strip_prefix('*') else {
            return self
                .path
                .join(pattern)
                .is_file()
                .then(|| pattern.to_owned());
        };
        let entries = fs::read_dir(self.path).ok()?.flatten();
        entries
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(ending))
            .min()
    }

    fn is_executable(&self, name: &str) -> bool {
        program::is_executable(&self.path.join(name))
    }

    /// Returns the text of a file; empty if it cannot be read.
    fn read(&self, name: &str) -> String {
        let bytes =
            regular_file::read(&self.path.join(name), READ_MAX, true).map(|(bytes, _)| bytes);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    /// Returns the directories that a workspace's patterns name: `packages/*`, or a directory.
    fn members(&self, patterns: &[String]) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = Vec::new();
        for pattern in patterns.iter().filter(|pattern| !pattern.starts_with('!')) {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            match pattern.split_once("/*") {
                Some((parent, _)) => {
                    let parent = self.path.join(parent);
                    let children = child_directories(&parent);
                    all.extend(children.iter().map(|name| parent.join(name)));
                }
                None if pattern == "*" => {
                    let children = child_directories(self.path);
                    all.extend(children.iter().map(|name| self.path.join(name)));
                }
                None => all.push(self.path.join(pattern)),
            }
        }
        all
    }
}
