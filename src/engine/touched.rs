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
    /// Tests and settings among the sources, because the task or a person allows to change them.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub allowed: TouchedList,
    /// Files that can turn a check green, and whose change a person has accepted.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub accepted: TouchedList,
    /// Deleted sources whose tests are in no other source. They are among the guards too.
    #[serde(skip_serializing_if = "TouchedList::is_empty")]
    pub lost_tests: TouchedList,
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

    /// Returns the lists of files that can turn a check green, with their names for people.
    fn rings(&self) -> [(&'static str, &TouchedList); 4] {
        [
            ("test or settings file", &self.guards),
            ("new test or settings file", &self.first_guards),
            ("ignored file", &self.ignored),
            ("file outside the workspace", &self.outside),
        ]
    }

    /// Returns the touched files that can turn a check green, as far as their names are known.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let rings = self.rings().map(|(_, ring)| ring);
        rings.into_iter().flat_map(TouchedList::names)
    }

    /// Returns whether [`names`](Self::names) returns every touched file.
    pub(crate) fn has_all_names(&self) -> bool {
        let rings = self.rings();
        rings
            .iter()
            .all(|(_, ring)| ring.total <= ring.files.len() as u64)
    }

    /// Returns whether git may convert files in another way than at the start, because its settings or
    /// attributes were touched.
    pub(crate) fn may_convert_otherwise(&self) -> bool {
        let is_git = |name: &str| {
            let mut parts = name.split('/');
            parts.any(|part| matches!(part, ".git" | "git" | ".gitconfig" | ".gitattributes"))
        };
        !self.has_all_names() || self.names().any(is_git)
    }

    /// Describes how many files were touched: `2 test or settings files, 1 ignored file`. Empty if
    /// none were.
    pub(crate) fn describe(&self) -> String {
        let rings = self.rings();
        let touched = rings.iter().filter(|(_, ring)| !ring.is_empty());
        let counts: Vec<String> = touched
            .map(|(name, ring)| match ring.total {
                1 => format!("1 {name}"),
                total => format!("{total} {}", name.replacen("file", "files", 1)),
            })
            .collect();
        counts.join(", ")
    }

    /// Says that tests are gone; `None` if none are.
    pub(crate) fn describe_lost_tests(&self) -> Option<String> {
        let first = &self.lost_tests.files.first()?.path;
        Some(match self.lost_tests.total {
            1 => format!("the tests that were in {first} are in no other source"),
            _ => format!(
                "the tests that were in {first} and other deleted files are in no other source"
            ),
        })
    }

    /// Applies `edit` to every path.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let rings = [
            &mut self.guards,
            &mut self.first_guards,
            &mut self.ignored,
            &mut self.outside,
            &mut self.sources,
            &mut self.allowed,
            &mut self.accepted,
            &mut self.lost_tests,
        ];
        for file in rings.into_iter().flat_map(|ring| &mut ring.files) {
            edit(&mut file.path);
        }
        self.unknown.iter_mut().for_each(edit);
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

    /// Returns the paths that are named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    /// Returns whether the list names a path, or may contain it because it does not name every file.
    pub(crate) fn may_contain(&self, path: &str) -> bool {
        let is_named = |file: &TouchedFile| match file.path.strip_suffix('/') {
            Some(dir) => {
                let rest = path.strip_prefix(dir);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            None => file.path == path,
        };
        self.files.len() >= NAMED_MAX || self.files.iter().any(is_named)
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
