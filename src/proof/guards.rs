//! Recognizes the files that judge an agent's work, by the rows of `presets/guards.toml` and by the
//! user's own patterns.

use super::patterns::PatternSet;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The rows of `presets/guards.toml`, whose header describes the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuardRows {
    #[serde(rename = "ecosystem")]
    ecosystems: Vec<Ecosystem>,
    #[serde(rename = "manifest")]
    pub(super) manifests: Vec<MergeRow>,
    ignored: IgnoredNames,
    pub(super) outside: OutsideRow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Ecosystem {
    name: String,
    sources: Vec<String>,
    tests: Vec<String>,
    settings: Vec<String>,
    shadows: Vec<String>,
    manifests: Vec<String>,
    locks: Vec<String>,
}

/// How one kind of manifest is merged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MergeRow {
    pub(super) name: String,
    pub(super) format: ManifestFormat,
    pub(super) keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ManifestFormat {
    Json,
    Toml,
    Lines,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct IgnoredNames {
    directories: Vec<String>,
    without_git: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct OutsideRow {
    pub(super) depth: usize,
    pub(super) skip: Vec<String>,
    pub(super) dir_variables: BTreeMap<String, String>,
    pub(super) file_variables: Vec<String>,
    pub(super) module_variables: Vec<String>,
    pub(super) environment_variables: Vec<String>,
}

pub(super) fn rows() -> &'static GuardRows {
    static ROWS: OnceLock<GuardRows> = OnceLock::new();
    ROWS.get_or_init(|| {
        toml::from_str(include_str!("../../presets/guards.toml"))
            .expect("the embedded table is valid")
    })
}

/// Returns whether the path has a directory of dependencies or build output in it.
pub(super) fn is_in_ignored_directory(path: &[u8], is_dir: bool, has_git: bool) -> bool {
    let names = &rows().ignored;
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    if !is_dir {
        parts.pop();
    }
    let is_listed =
        |part: &[u8], names: &[String]| names.iter().any(|name| name.as_bytes() == part);
    parts.iter().any(|part| {
        is_listed(part, &names.directories) || (!has_git && is_listed(part, &names.without_git))
    })
}

/// The name of an ecosystem that stands for all of them.
const ANY: &str = "any";

/// What a guard is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardClass {
    Tests,
    Settings,
    /// A file that takes the place of a runner. It is a guard only if it is new.
    Shadow,
    /// A file with dependencies and settings.
    Manifest,
}

/// A row's list of patterns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Guards(GuardClass),
    Sources,
    Locks,
}

/// What the rows say about a path.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The guards it is one of, with the indexes of their ecosystems.
    pub(super) guards: Vec<(usize, GuardClass)>,
    /// Ecosystems of which it is a source.
    sources: Vec<usize>,
    is_lock: bool,
}

impl Matches {
    /// Returns whether the path judges the work. `is_new` means that it was not there at the start.
    pub(super) fn is_guard(&self, is_new: bool) -> bool {
        let counts = |(_, class): &(usize, GuardClass)| is_new || *class != GuardClass::Shadow;
        !self.is_lock && self.guards.iter().any(counts)
    }

    pub(super) fn is_source(&self) -> bool {
        !self.is_lock && !self.sources.is_empty()
    }

    pub(super) fn is_test(&self) -> bool {
        let is_test = |(_, class): &(usize, GuardClass)| *class == GuardClass::Tests;
        !self.is_lock && self.guards.iter().any(is_test)
    }

    pub(super) fn is_manifest(&self) -> bool {
        let is_manifest = |(_, class): &(usize, GuardClass)| *class == GuardClass::Manifest;
        !self.is_lock && self.guards.iter().any(is_manifest)
    }
}

/// All patterns of the rows, compiled.
pub(super) struct GuardTable {
    set: PatternSet,
    lists: Vec<(usize, List)>,
}

/// Returns the compiled rows.
pub(super) fn table() -> &'static GuardTable {
    static TABLE: OnceLock<GuardTable> = OnceLock::new();
    TABLE.get_or_init(GuardTable::from_rows)
}

impl GuardTable {
    fn from_rows() -> Self {
        let mut patterns: Vec<&String> = Vec::new();
        let mut lists = Vec::new();
        for (index, row) in rows().ecosystems.iter().enumerate() {
            let all = [
                (&row.tests, List::Guards(GuardClass::Tests)),
                (&row.settings, List::Guards(GuardClass::Settings)),
                (&row.shadows, List::Guards(GuardClass::Shadow)),
                (&row.manifests, List::Guards(GuardClass::Manifest)),
                (&row.sources, List::Sources),
                (&row.locks, List::Locks),
            ];
            for (list, kind) in all {
                patterns.extend(list);
                lists.resize(patterns.len(), (index, kind));
            }
        }
        Self {
            set: PatternSet::new(patterns),
            lists,
        }
    }

    pub(super) fn matches(&self, path: &[u8]) -> Matches {
        let mut matches = Matches::default();
        self.set.find(path, &mut |index| {
            let (ecosystem, list) = self.lists[index];
            match list {
                List::Guards(class) => matches.guards.push((ecosystem, class)),
                List::Sources => matches.sources.push(ecosystem),
                List::Locks => matches.is_lock = true,
            }
        });
        matches
    }
}

/// Which ecosystems a workspace used at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ecosystems {
    tested: Vec<bool>,
    used: Vec<bool>,
}

impl Ecosystems {
    pub(super) fn new() -> Self {
        let none = vec![false; rows().ecosystems.len()];
        Self {
            tested: none.clone(),
            used: none,
        }
    }

    /// Takes a file of the start into account.
    pub(super) fn add(&mut self, matches: &Matches) {
        for (ecosystem, class) in &matches.guards {
            self.used[*ecosystem] = true;
            if *class == GuardClass::Tests {
                self.tested[*ecosystem] = true;
                self.tested[any()] = true;
            }
        }
        for ecosystem in &matches.sources {
            self.used[*ecosystem] = true;
        }
    }

    /// Returns whether a new guard is the first of its kind: nothing at the start could judge the
    /// work in its place, so the view keeps it. A manifest is always kept.
    pub(super) fn is_first(&self, matches: &Matches) -> bool {
        matches.guards.iter().all(|(ecosystem, class)| match class {
            GuardClass::Tests => !self.tested[*ecosystem],
            GuardClass::Manifest => true,
            GuardClass::Settings | GuardClass::Shadow => !self.used[*ecosystem],
        })
    }
}

fn any() -> usize {
    let mut rows = rows().ecosystems.iter();
    rows.position(|row| row.name == ANY)
        .expect("a row for all ecosystems")
}
