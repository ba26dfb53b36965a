//! Puts a working tree back to a checkpoint, and leaves alone what no checkpoint contains: ignored
//! and skipped files, the index, HEAD, and repositories inside the tree.

use super::checkpoint::{Checkpoint, UNDO};
use super::content::{SkippedFiles, TreeContent, split};
use super::shadow::ShadowRepository;
use std::collections::{BTreeMap, BTreeSet};
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
        let entries = Entries::read(&shadow, present)?;
        let changes = changes(&shadow, present, &target.tree)?;
        let added = changes.iter().filter(|(kind, _)| *kind == 'A');
        for (_, path) in added.filter(|(_, path)| self.is_obstructed(path, &entries)) {
            kept.entry(path.clone()).or_insert(IGNORED);
        }
        for path in self.newly_unignored(&shadow, &target.tree, &changes)? {
            kept.entry(path).or_insert(IGNORED);
        }
        let tree = self.without(&target.tree, &kept, &entries)?;
        let applied = changes_to_apply(&shadow, present, &tree)?;
        if !applied.is_empty() {
            self.forget_stored();
            let args = ["read-tree", "-m", "-u", "--no-recurse-submodules"];
            shadow.git(&[&args[..], &[present, &tree]].concat())?;
        }
        kept.retain(|path, _| {
            let differs = changes.iter().any(|(_, other)| other == path);
            differs || target.skipped.contains_key(path) || skipped.contains_key(path)
        });
        Ok(Rewound {
            changed: applied,
            kept,
        })
    }

    /// Returns whether something that no checkpoint contains is in the way of a new file.
    fn is_obstructed(&self, path: &[u8], entries: &Entries) -> bool {
        let full = self.join(path);
        let mut dirs = full.ancestors().skip(1);
        let in_the_way = dirs
            .by_ref()
            .take_while(|dir| *dir != self.top)
            .find(|dir| dir.symlink_metadata().is_ok_and(|data| !data.is_dir()));
        if let Some(file) = in_the_way {
            return !self.is_entry(file, entries);
        }
        match full.symlink_metadata() {
            Err(_) => false,
            Ok(data) if data.is_dir() => !self.is_all_entries(&full, entries),
            Ok(_) => true,
        }
    }

    /// Returns whether every file below a directory is in the tree.
    fn is_all_entries(&self, dir: &Path, entries: &Entries) -> bool {
        let Ok(list) = fs::read_dir(dir) else {
            return false;
        };
        list.flatten().all(|entry| {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.is_all_entries(&path, entries),
                _ => self.is_entry(&path, entries),
            }
        })
    }

    fn is_entry(&self, path: &Path, entries: &Entries) -> bool {
        let path = path.strip_prefix(&self.top).unwrap_or(path);
        entries.0.contains_key(path.as_os_str().as_bytes())
    }

    /// Returns the files to be deleted that the target's own rules ignore: they were there already,
    /// and only a change of these rules made them part of a later checkpoint.
    fn newly_unignored(
        &self,
        shadow: &ShadowRepository<'_>,
        target: &str,
        changes: &[(char, Vec<u8>)],
    ) -> Result<Vec<Vec<u8>>, String> {
        let is_rules = |path: &[u8]| path == b".gitignore" || path.ends_with(b"/.gitignore");
        let mut deleted = changes.iter().filter(|(kind, _)| *kind == 'D').peekable();
        if deleted.peek().is_none() || !changes.iter().any(|(_, path)| is_rules(path)) {
            return Ok(Vec::new());
        }
        let deleted: Vec<&[u8]> = deleted.map(|(_, path)| &path[..]).collect();
        // A directory with nothing but the target's rules.
        let dir = self.scratch.join("rules");
        let _ = fs::remove_dir_all(&dir);
        let tree = Entries::read(shadow, target)?;
        for (path, entry) in tree.0.iter().filter(|(path, _)| is_rules(path)) {
            let file = dir.join(OsStr::from_bytes(path));
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
        entries: &Entries,
    ) -> Result<String, String> {
        if kept.is_empty() {
            return Ok(target.to_owned());
        }
        let settings = self.settings()?;
        let shadow =
            ShadowRepository::open(&self.top, &self.scratch, settings, "target-index", true)?;
        let _ = fs::remove_file(shadow.index());
        shadow.git(&["read-tree", target])?;
        let mut list = Vec::new();
        for path in kept.keys() {
            match entries.0.get(path) {
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

/// The files of a tree, by their path.
struct Entries(BTreeMap<Vec<u8>, TreeEntry>);

struct TreeEntry {
    mode: String,
    id: String,
}

impl Entries {
    fn read(shadow: &ShadowRepository<'_>, tree: &str) -> Result<Self, String> {
        let output = shadow.git(&["ls-tree", "-r", "-z", "--full-tree", tree])?;
        // `<mode> <type> <ID>`, a tab, and the path.
        let entries = output.stdout.split(|byte| *byte == 0).filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let fields = String::from_utf8_lossy(&line[..tab]);
            let mut fields = fields.split(' ');
            let (mode, id) = (fields.next()?.to_owned(), fields.nth(1)?.to_owned());
            Some((line[tab + 1..].to_vec(), TreeEntry { mode, id }))
        });
        Ok(Self(entries.collect()))
    }
}

/// Lists the changes from one tree to another.
fn changes(
    shadow: &ShadowRepository<'_>,
    from: &str,
    to: &str,
) -> Result<Vec<(char, Vec<u8>)>, String> {
    let args = ["diff-tree", "-r", "-z", "--name-status", "--no-renames"];
    let output = shadow.git(&[&args[..], &[from, to]].concat())?;
    let fields = split(&output.stdout);
    let pairs = fields.chunks_exact(2);
    Ok(pairs
        .map(|pair| (char::from(pair[0][0]), pair[1].clone()))
        .collect())
}

/// Lists the changes that are applied to the working tree. A change of type is a modification; the
/// commit of a submodule is not applied.
fn changes_to_apply(
    shadow: &ShadowRepository<'_>,
    from: &str,
    to: &str,
) -> Result<Vec<(char, Vec<u8>)>, String> {
    let before: BTreeSet<Vec<u8>> = submodules(&Entries::read(shadow, from)?);
    let after = submodules(&Entries::read(shadow, to)?);
    let changes = changes(shadow, from, to)?.into_iter();
    let files = changes.filter(|(_, path)| !before.contains(path) && !after.contains(path));
    Ok(files
        .map(|(kind, path)| (if kind == 'T' { 'M' } else { kind }, path))
        .collect())
}

fn submodules(entries: &Entries) -> BTreeSet<Vec<u8>> {
    let links = entries.0.iter().filter(|(_, entry)| entry.mode == "160000");
    links.map(|(path, _)| path.clone()).collect()
}
