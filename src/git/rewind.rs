//! Puts a working tree back to a checkpoint, and leaves alone what no checkpoint contains: ignored
//! and skipped files, the index, HEAD, and repositories inside the tree.

use super::checkpoint::{Checkpoint, UNDO};
use super::content::{SkippedFiles, TreeContent, split};
use super::shadow::ShadowRepository;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What a rewind did.
#[derive(Debug, Default)]
pub(crate) struct Rewound {
    /// The files that were changed, by their path: `A` added, `M` modified, `D` deleted.
    pub(crate) changed: Vec<(char, Vec<u8>)>,
    /// Files that differ, or may differ, and were left alone.
    pub(crate) kept: BTreeMap<Vec<u8>, &'static str>,
}

const IGNORED: &str = "ignored by git";

impl TreeContent {
    /// Puts the working tree back to `target`. The current content becomes the checkpoint `undo`
    /// first.
    pub(crate) fn rewind(&self, loop_id: &str, target: &Checkpoint) -> Result<Rewound, String> {
        let present = self.take_checkpoint(loop_id, UNDO)?;
        self.switch(&present.tree, &present.skipped, target)
    }

    /// Puts a working tree of ralph's own to `target`. The current content is not kept.
    #[cfg(feature = "fleet")]
    pub(crate) fn restore(&self, target: &Checkpoint) -> Result<Rewound, String> {
        let present = self.store()?;
        self.switch(&present.id, &present.skipped, target)
    }

    /// Replaces the content `present` with `target`.
    fn switch(
        &self,
        present: &str,
        skipped: &SkippedFiles,
        target: &Checkpoint,
    ) -> Result<Rewound, String> {
        let mut kept: BTreeMap<Vec<u8>, &'static str> = BTreeMap::new();
        for (path, why) in skipped.iter().chain(&target.skipped) {
            kept.insert(path.clone(), why.as_str());
        }
        let shadow = self.stored_shadow()?;
        let changes = TreeChange::list(&shadow, present, &target.tree)?;
        // What is in the way of new files, by their path.
        let added = changes.iter().filter(|change| change.kind == 'A');
        let obstacles: BTreeMap<&[u8], BTreeSet<Vec<u8>>> = added
            .map(|change| (&change.path[..], self.obstacles(&change.path)))
            .collect();
        let in_the_way: HashSet<Vec<u8>> = obstacles.values().flatten().cloned().collect();
        let known = if in_the_way.is_empty() {
            TreeEntries::new()
        } else {
            entries_where(&shadow, present, |path| in_the_way.contains(path))?
        };
        for (path, obstacles) in obstacles {
            if !obstacles
                .iter()
                .all(|obstacle| known.contains_key(obstacle))
            {
                kept.entry(path.to_vec()).or_insert(IGNORED);
            }
        }
        for path in self.newly_unignored(&shadow, &target.tree, &changes)? {
            kept.entry(path).or_insert(IGNORED);
        }
        let tree = self.without(&target.tree, &kept, (&shadow, present))?;
        let applied = changes_to_apply(TreeChange::list(&shadow, present, &tree)?);
        if !applied.is_empty() {
            self.forget_stored();
            let args = ["read-tree", "-m", "-u", "--no-recurse-submodules"];
            shadow.git(&[&args[..], &[present, &tree]].concat())?;
        }
        let differing: HashSet<&[u8]> = changes.iter().map(|change| &change.path[..]).collect();
        kept.retain(|path, _| {
            differing.contains(&path[..])
                || target.skipped.contains_key(path)
                || skipped.contains_key(path)
        });
        Ok(Rewound {
            changed: applied,
            kept,
        })
    }

    /// Returns the files that are in the way of a new file, by their path in the tree. An empty
    /// directory is not in the way.
    fn obstacles(&self, path: &[u8]) -> BTreeSet<Vec<u8>> {
        let full = self.join(path);
        let mut found = BTreeSet::new();
        let dirs = full.ancestors().skip(1).take_while(|dir| *dir != self.top);
        let mut dirs = dirs.filter(|dir| dir.symlink_metadata().is_ok_and(|data| !data.is_dir()));
        if let Some(file) = dirs.next() {
            found.insert(self.name_of(file));
        } else {
            self.add_files_at(&full, &mut found);
        }
        found
    }

    /// Adds the file at a path, or all files below it if it is a directory. A directory that cannot
    /// be read counts as a file.
    fn add_files_at(&self, path: &Path, found: &mut BTreeSet<Vec<u8>>) {
        match path.symlink_metadata() {
            Err(_) => return,
            Ok(data) if data.is_dir() => {
                if let Ok(list) = fs::read_dir(path) {
                    for entry in list.flatten() {
                        self.add_files_at(&entry.path(), found);
                    }
                    return;
                }
            }
            Ok(_) => {}
        }
        found.insert(self.name_of(path));
    }

    fn name_of(&self, path: &Path) -> Vec<u8> {
        let path = path.strip_prefix(&self.top).unwrap_or(path);
        path.as_os_str().as_bytes().to_vec()
    }

    /// Returns the files to be deleted that the target's own rules ignore: they were there already,
    /// and only a change of these rules made them part of a later checkpoint.
    fn newly_unignored(
        &self,
        shadow: &ShadowRepository<'_>,
        target: &str,
        changes: &[TreeChange],
    ) -> Result<Vec<Vec<u8>>, String> {
        let is_rules = |path: &[u8]| path == b".gitignore" || path.ends_with(b"/.gitignore");
        let deleted = changes.iter().filter(|change| change.kind == 'D');
        let deleted: Vec<&[u8]> = deleted.map(|change| &change.path[..]).collect();
        if deleted.is_empty() || !changes.iter().any(|change| is_rules(&change.path)) {
            return Ok(Vec::new());
        }
        // A directory with nothing but the target's rules.
        let dir = self.scratch.join("rules");
        let _ = fs::remove_dir_all(&dir);
        for (path, entry) in entries_where(shadow, target, is_rules)? {
            let file = dir.join(OsStr::from_bytes(&path));
            let text = shadow.git(&["cat-file", "blob", &entry.id])?.stdout;
            file.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&file, text))
                .map_err(|error| format!("cannot write to {}: {error}", file.display()))?;
        }
        fs::create_dir_all(&dir)
            .map_err(|error| format!("cannot write to {}: {error}", dir.display()))?;
        let settings = self.settings()?;
        let rules = ShadowRepository::open(&dir, &self.scratch, settings, "no-index", true)?;
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let ignored = rules.git_or_none(&args, &deleted.join(&0))?;
        let _ = fs::remove_dir_all(&dir);
        Ok(split(&ignored))
    }

    /// Returns the target's tree, with the entries of the present one for files that are kept.
    fn without(
        &self,
        target: &str,
        kept: &BTreeMap<Vec<u8>, &'static str>,
        present: (&ShadowRepository<'_>, &str),
    ) -> Result<String, String> {
        if kept.is_empty() {
            return Ok(target.to_owned());
        }
        let entries = entries_where(present.0, present.1, |path| kept.contains_key(path))?;
        let settings = self.settings()?;
        let shadow =
            ShadowRepository::open(&self.top, &self.scratch, settings, "target-index", true)?;
        let _ = fs::remove_file(shadow.index());
        shadow.git(&["read-tree", target])?;
        let mut list = Vec::new();
        for path in kept.keys() {
            match entries.get(path) {
                Some(entry) => list.extend(format!("{} {}\t", entry.mode, entry.id).into_bytes()),
                None => list.extend(format!("0 {}\t", "0".repeat(target.len())).into_bytes()),
            }
            list.extend(path);
            list.push(0);
        }
        shadow.git_with_input(&["update-index", "-z", "--index-info"], &list)?;
        let tree = shadow.text(&["write-tree", "--missing-ok"]);
        let _ = fs::remove_file(shadow.index());
        tree
    }
}

/// Files of a tree, by their path.
type TreeEntries = BTreeMap<Vec<u8>, TreeEntry>;

struct TreeEntry {
    mode: String,
    id: String,
}

/// Reads the files of a tree that the caller wants.
fn entries_where(
    shadow: &ShadowRepository<'_>,
    tree: &str,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<TreeEntries, String> {
    let mut found = TreeEntries::new();
    // `<mode> <type> <ID>`, a tab, and the path.
    let args = ["ls-tree", "-r", "-z", "--full-tree", tree];
    shadow.for_each_record(&args, |record| {
        let Some(tab) = record.iter().position(|byte| *byte == b'\t') else {
            return;
        };
        let (fields, path) = (&record[..tab], &record[tab + 1..]);
        if !is_wanted(path) {
            return;
        }
        let fields = String::from_utf8_lossy(fields);
        let mut fields = fields.split(' ').map(str::to_owned);
        if let (Some(mode), Some(id)) = (fields.next(), fields.nth(1)) {
            found.insert(path.to_vec(), TreeEntry { mode, id });
        }
    })?;
    Ok(found)
}

/// A file that differs between two trees.
struct TreeChange {
    /// `A` added, `M` modified, `D` deleted, `T` of another type.
    kind: char,
    path: Vec<u8>,
    /// Whether it is a submodule in one of the trees.
    is_submodule: bool,
}

impl TreeChange {
    /// Lists the changes from one tree to another.
    fn list(shadow: &ShadowRepository<'_>, from: &str, to: &str) -> Result<Vec<Self>, String> {
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to];
        let mut list = Vec::new();
        // A record such as `:100644 100755 <ID> <ID> M`, and one with the path.
        let mut info: Option<(char, bool)> = None;
        shadow.for_each_record(&args, |record| {
            if let Some((kind, is_submodule)) = info.take() {
                list.push(Self {
                    kind,
                    path: record.to_vec(),
                    is_submodule,
                });
                return;
            }
            let is_submodule =
                record.starts_with(b":160000") || record[..].get(8..14) == Some(b"160000");
            let kind = record.last().map_or('M', |kind| char::from(*kind));
            info = Some((kind, is_submodule));
        })?;
        Ok(list)
    }
}

/// Returns the changes that are applied to the working tree. A change of type is a modification;
/// the commit of a submodule is not applied.
fn changes_to_apply(changes: Vec<TreeChange>) -> Vec<(char, Vec<u8>)> {
    let files = changes.into_iter().filter(|change| !change.is_submodule);
    files
        .map(|change| match change.kind {
            'T' => ('M', change.path),
            kind => (kind, change.path),
        })
        .collect()
}
