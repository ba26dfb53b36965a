//! What an agent touched since the start of a loop, besides and including the sources.

use serde::{Deserialize, Serialize};

/// Maximum number of files that a list names. Its total counts all of them.
const NAMED_MAX: usize = 20;

/// The files that are not as they were at the start of a loop, in rings by what they can influence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TouchedFiles {
    /// Tests, settings and scripts that judge the work.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub guards: TouchedList,
    /// New tests, settings and check scripts that have no original to compare with.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub first_guards: TouchedList,
    /// Files that git ignores: dependencies and build output.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub ignored: TouchedList,
    /// Files outside the workspace: programs, and settings of the user and of the repository.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub outside: TouchedList,
    /// All other files of the workspace.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub sources: TouchedList,
    /// Why some originals cannot be put back. A person has to look at these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl TouchedFiles {
    /// Returns whether anything besides sources was touched.
    pub fn is_sources_only(&self) -> bool {
        let others = [
            &self.guards,
            &self.first_guards,
            &self.ignored,
            &self.outside,
        ];
        others.iter().all(|list| list.is_empty()) && self.unknown.is_empty()
    }
}

/// Files of one ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TouchedList {
    /// How many files were touched.
    pub total: u64,
    /// The first of them. A directory in which everything is new is named once, with a slash at the
    /// end.
    pub files: Vec<TouchedFile>,
}

impl TouchedList {
    /// Returns whether no file was touched.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Counts `files` files, and names them by `path` if there is room.
    pub(crate) fn add(&mut self, path: impl FnOnce() -> String, change: FileChange, files: u64) {
        self.total += files;
        if self.files.len() < NAMED_MAX {
            let path = path();
            self.files.push(TouchedFile { path, change });
        }
    }
}

/// A file that is not as it was at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TouchedFile {
    /// The path: relative to the workspace, or absolute if it is outside.
    pub path: String,
    /// What happened to the file.
    pub change: FileChange,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileChange {
    /// It did not exist at the start.
    New,
    /// It is another file, or has changed.
    Changed,
    /// It does not exist any more.
    Deleted,
}
