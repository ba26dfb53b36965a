//! Replaces the content of every source file in a view, to find out whether a check looks at them.

use super::baseline::walk_workspace;
use super::check_script::scripts;
use super::guards::{is_in_ignored_directory, table};
use super::manifest::as_path;
use super::patterns::PatternSet;
use super::{ViewChange, ViewContent};
use crate::git;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a workspace by what they are for.
#[derive(Default)]
pub(crate) struct SourceFiles {
    /// Sources: neither tests and settings, nor lists of dependencies.
    pub(crate) sources: Vec<PathBuf>,
    /// Tests, fixtures and snapshots.
    pub(crate) tests: Vec<PathBuf>,
    /// Files in languages that ralph does not know, and other data.
    pub(crate) others: Vec<PathBuf>,
}

/// Documents, which are no data either.
const DOCUMENTS: [&str; 8] = [
    "*.md",
    "*.rst",
    "*.txt",
    "*.adoc",
    "README*",
    "LICENSE*",
    "CHANGELOG*",
    "AUTHORS*",
];

impl SourceFiles {
    /// Lists the files that git does not ignore, by their paths in the workspace. Scripts that the
    /// checks execute are no sources.
    pub(crate) fn list(workspace: &Path, checks: &[String]) -> io::Result<Self> {
        let workspace = std::fs::canonicalize(workspace)?;
        let scripts = checks.iter().flat_map(|check| scripts(check, &workspace));
        let scripts: Vec<PathBuf> = scripts.collect();
        let documents = PatternSet::new(DOCUMENTS);
        let ignored = git::ignored::ignored_paths(&workspace);
        let is_ignored = |path: &[u8]| match &ignored {
            Some(ignored) => ignored.contains(path),
            None => is_in_ignored_directory(path, false, false),
        };
        let mut found = Self::default();
        for entry in &walk_workspace(&workspace)?.entries {
            if !entry.is_file() {
                continue;
            }
            let matches = table().matches(&entry.path);
            let path = workspace.join(as_path(&entry.path));
            let list = if matches.is_test() {
                &mut found.tests
            } else if scripts.contains(&path) || matches.is_guard(true) {
                continue;
            } else if matches.is_source() {
                &mut found.sources
            } else if !documents.is_match(&entry.path) {
                &mut found.others
            } else {
                continue;
            };
            if !is_ignored(&entry.path) {
                list.push(path);
            }
        }
        Ok(found)
    }

    /// Returns a view in which every source file has this text.
    pub(crate) fn with_sources(&self, text: &str) -> Vec<ViewChange> {
        let sources = self.sources.iter();
        sources
            .map(|path| ViewChange {
                path: path.clone(),
                content: ViewContent::Text(text.as_bytes().to_vec()),
            })
            .collect()
    }
}

/// A text that no compiler or interpreter accepts.
pub(crate) const GARBLED: &str = ")]} ralph selftest: this is not code {[(\n";
