//! What `install` has changed in files that are not ralph's, so that `uninstall` can take just that back.

use super::json::Undo;
use crate::lifecycle::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// All files that were changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) files: Vec<Entry>,
    #[serde(default)]
    pub(crate) appended: Vec<Appended>,
}

/// A text that was added at the end of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Appended {
    pub(crate) client: String,
    pub(crate) file: PathBuf,
    /// Whether there was no such file before.
    pub(crate) is_new: bool,
    pub(crate) text: String,
}

/// One file, and what takes the changes in it back, the last first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) client: String,
    pub(crate) file: PathBuf,
    pub(crate) was: Was,
    pub(crate) undo: Vec<Kept>,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) change: Undo,
    /// Whether it goes even if somebody has changed the value since.
    pub(crate) is_ours: bool,
}

/// What lay there before the first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Was {
    Absent,
    /// Nothing but this white space.
    Blank(String),
    Filled,
}

impl Record {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(Failure::broken(format!(
                    "cannot read {}: {error}",
                    path.display()
                )));
            }
        };
        serde_json::from_str(&text).map_err(|error| {
            Failure::usage(
                format!("{} is broken: {error}", path.display()),
                "it says what was changed where; remove it, and only keys that are surely ralph's are taken away",
            )
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.appended.is_empty()
    }

    pub(crate) fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }

    pub(crate) fn of(&self, file: &Path) -> Option<&Entry> {
        self.files.iter().find(|entry| entry.file == file)
    }

    /// The directories of a client in which something was changed, and this one.
    pub(crate) fn dirs(
        &self,
        client: &str,
        here: PathBuf,
        counts: impl Fn(&Path) -> bool,
    ) -> BTreeSet<PathBuf> {
        let files = self
            .files
            .iter()
            .filter(|entry| entry.client == client && counts(&entry.file));
        files
            .filter_map(|entry| Some(entry.file.parent()?.to_owned()))
            .chain([here])
            .collect()
    }

    /// What is known of a file from now on; an entry without changes is forgotten.
    pub(crate) fn put(&mut self, entry: Entry) {
        self.files.retain(|old| old.file != entry.file);
        if !entry.undo.is_empty() {
            self.files.push(entry);
        }
    }
}
