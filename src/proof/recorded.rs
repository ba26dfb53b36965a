//! A recorded state of a workspace, which is compared with the baseline in place of the current one.

use super::manifest::{Entry, Manifest};
use super::{ViewChange, ViewContent};
use crate::engine::touched::TouchedFiles;
use crate::git::path_name;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A recorded state. The default is the current one.
#[derive(Debug, Default)]
pub(crate) struct RecordedState<'a> {
    /// How the recorded files differ from the current ones, by their path in the workspace: a file
    /// with the recorded content, or `None` if there was none.
    pub(crate) files: BTreeMap<Vec<u8>, Option<PathBuf>>,
    /// What was touched at that time. Ignored files and files outside the workspace are not
    /// recorded; those that were touched only later are of no interest.
    pub(crate) touched: Option<&'a TouchedFiles>,
}

impl RecordedState<'_> {
    /// Puts the recorded files into a list of the current ones.
    pub(super) fn apply_to(&self, manifest: &mut Manifest) {
        if self.files.is_empty() {
            return;
        }
        let is_recorded = |entry: &Entry| self.files.contains_key(&entry.path);
        manifest.entries.retain(|entry| !is_recorded(entry));
        for (path, file) in &self.files {
            let stat = file.as_ref().map(rustix::fs::lstat);
            if let Some(Ok(stat)) = stat {
                let entry = Entry::from_stat(path.clone(), &stat);
                manifest.entries.push(entry);
            }
        }
        manifest.sort();
    }

    /// Returns the file with the recorded content of a path; `None` if it is the current one.
    pub(super) fn file(&self, path: &[u8]) -> Option<&Path> {
        self.files.get(path)?.as_deref()
    }

    pub(super) fn has_touched_ignored(&self, path: &[u8]) -> bool {
        self.touched
            .is_none_or(|touched| touched.ignored.may_contain(&path_name(path)))
    }

    pub(super) fn has_touched_outside(&self, path: &[u8]) -> bool {
        self.touched
            .is_none_or(|touched| touched.outside.may_contain(&path_name(path)))
    }

    /// Returns how a view shows the recorded files of a workspace, and `restores` on top of them.
    pub(crate) fn view_changes(
        &self,
        workspace: &Path,
        restores: Vec<ViewChange>,
    ) -> Vec<ViewChange> {
        let mut changes: Vec<ViewChange> = Vec::new();
        let covered: HashSet<&Path> = restores.iter().map(|restore| &*restore.path).collect();
        for (path, file) in &self.files {
            let path = workspace.join(OsStr::from_bytes(path));
            if path.ancestors().any(|path| covered.contains(path)) {
                continue;
            }
            let content = match file {
                Some(file) => ViewContent::Original(file.clone()),
                None => ViewContent::Absent,
            };
            changes.push(ViewChange { path, content });
        }
        changes.extend(restores);
        changes
    }
}
