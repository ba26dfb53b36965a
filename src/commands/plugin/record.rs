//! Records what `install` changed in the clients' files, so that `uninstall` can undo exactly that.

use super::json::JsonUndo;
use super::steps::FileStep;
use crate::lifecycle::error::CommandError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// All changed files. They are stored as JSON, so the field names must not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstallRecord {
    pub(crate) files: Vec<RecordedFile>,
    #[serde(default)]
    pub(crate) appended: Vec<AppendedText>,
    /// Directories that did not exist before, each after the ones that contain it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) created_dirs: Vec<PathBuf>,
}

/// Text that was appended to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppendedText {
    pub(crate) client: String,
    pub(crate) file: PathBuf,
    /// Whether the file did not exist before.
    pub(crate) is_new: bool,
    pub(crate) text: String,
}

/// One changed JSON file with the data for undoing its changes, oldest change first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedFile {
    pub(crate) client: String,
    pub(crate) file: PathBuf,
    #[serde(rename = "was")]
    pub(crate) original: OriginalContent,
    #[serde(rename = "undo")]
    pub(crate) changes: Vec<RecordedChange>,
}

/// One change to a JSON file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedChange {
    #[serde(rename = "change")]
    pub(crate) undo: JsonUndo,
    /// Whether to undo the change even if the user has changed the value since, because only ralph
    /// uses the key.
    pub(crate) is_ours: bool,
}

/// The content of the file before the first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OriginalContent {
    Absent,
    /// The file contained only this whitespace.
    Blank(String),
    Filled,
}

impl InstallRecord {
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(CommandError::broken(format!(
                    "cannot read {}: {error}",
                    path.display()
                )));
            }
        };
        serde_json::from_str(&text).map_err(|error| {
            CommandError::usage(
                format!("{} is damaged: {error}", path.display()),
                "this file records what ralph changed; if you delete it, uninstalling removes only keys that are certainly ralph's",
            )
        })
    }

    /// Returns whether nothing is left to undo. Directories are removed as far as they are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.appended.is_empty()
    }

    /// Adds the directories that these steps are going to create.
    pub(crate) fn add_created_dirs(&mut self, steps: &[FileStep]) {
        for path in steps.iter().flat_map(FileStep::written_paths) {
            let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
            let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
            missing.retain(|dir| !self.created_dirs.contains(dir));
            self.created_dirs.extend(missing.into_iter().rev());
        }
    }

    /// Removes the created directories that are empty by now.
    pub(crate) fn remove_created_dirs(&mut self) {
        let mut dirs = std::mem::take(&mut self.created_dirs);
        dirs.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
        dirs.retain(|dir| fs::remove_dir(dir).is_err() && dir.exists());
        dirs.reverse();
        self.created_dirs = dirs;
    }

    pub(crate) fn to_json(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }

    pub(crate) fn get(&self, file: &Path) -> Option<&RecordedFile> {
        self.files.iter().find(|entry| entry.file == file)
    }

    /// Returns `current`, and the directories of all files that were changed for a client and for
    /// which `filter` returns true.
    pub(crate) fn dirs(
        &self,
        client: &str,
        current: PathBuf,
        filter: impl Fn(&Path) -> bool,
    ) -> BTreeSet<PathBuf> {
        let files = self
            .files
            .iter()
            .filter(|entry| entry.client == client && filter(&entry.file));
        files
            .filter_map(|entry| Some(entry.file.parent()?.to_owned()))
            .chain([current])
            .collect()
    }

    /// Replaces a file's entry. An entry without changes is dropped.
    pub(crate) fn put(&mut self, entry: RecordedFile) {
        self.files.retain(|old| old.file != entry.file);
        if !entry.changes.is_empty() {
            self.files.push(entry);
        }
    }
}
