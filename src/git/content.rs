//! Identifies the content of a working tree, and stores it: tracked and untracked files, but not
//! ignored ones.
//!
//! The ID is that of a git tree, so it does not depend on what is committed or staged. Private
//! indexes save reading unchanged files again. One describes the tree that was stored last; the
//! other identifies content without copying files into an object database.

use super::command;
use super::diff::find_top;
use super::overlay::copy_with_mtime;
use super::shadow::{ShadowRepository, ShadowSettings};
use super::skipped::SkipCause;
use super::status::is_ignored;
use super::{inner, look};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The number of levels of repositories inside repositories that are examined.
const DEPTH_MAX: usize = 4;

/// The file in which a client's session shows its loop. It changes with every iteration.
const LOOP_FILE: &[u8] = b".claude/ralph-loop.local.md";

/// Selects the files whose content git may convert.
const CONVERTED: &str =
    ":(top,exclude,attr:!text !eol !crlf !ident !filter !working-tree-encoding)";

/// The index of the tree that was stored last, and the one for identifying content.
const STORED: &str = "stored-index";
pub(super) const MEASURED: &str = "index";

/// A working tree whose content is identified and stored again and again.
#[derive(Debug)]
pub(crate) struct TreeContent {
    pub(super) top: PathBuf,
    /// The directory with the private indexes.
    pub(super) scratch: PathBuf,
    /// The number of repositories around this one.
    depth: usize,
    settings: OnceCell<ShadowSettings>,
    /// The tree that this process stored last.
    stored: RefCell<Option<String>>,
    /// Hashes of the files that are not stored.
    hashes: RefCell<HashMap<PathBuf, (FileIdentity, u64)>>,
    /// The commit of the checkpoint that this process took last.
    pub(super) newest: RefCell<Option<super::checkpoint::Checkpoint>>,
}

/// The files that a tree does not contain, by their path in it.
pub(crate) type SkippedFiles = BTreeMap<Vec<u8>, SkipCause>;

/// The content of the working tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredContent {
    /// The ID of a git tree, with hashes of what no tree contains.
    pub(crate) id: String,
    /// The files that have changed since the content was stored, or else measured, the last time.
    pub(crate) changed: Vec<Vec<u8>>,
}

/// A tree with the content of the working tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredTree {
    pub(super) id: String,
    pub(super) skipped: SkippedFiles,
}

/// How the working tree differs from an index.
#[derive(Default)]
struct TreeDifferences {
    files: Vec<Vec<u8>>,
    /// Repositories inside this one. The paths end with a slash.
    nested: Vec<Vec<u8>>,
    skipped: SkippedFiles,
}

/// The inode, size, modification and change time of a file, each time with its nanoseconds.
type FileIdentity = (u64, u64, [i64; 4]);

impl TreeContent {
    /// Finds the working tree that contains `workspace`; `None` if there is none, if it ignores the
    /// workspace, or if git is not installed. Files are written to `scratch`.
    pub(crate) fn find(workspace: &Path, scratch: &Path) -> Result<Option<Self>, String> {
        let top = find_top(workspace)?.filter(|top| top == workspace || !is_ignored(workspace));
        Ok(top.map(|top| Self::new(top, scratch.join("content"), 0)))
    }

    fn new(top: PathBuf, scratch: PathBuf, depth: usize) -> Self {
        Self {
            top,
            scratch,
            depth,
            settings: OnceCell::new(),
            stored: RefCell::default(),
            hashes: RefCell::default(),
            newest: RefCell::default(),
        }
    }

    /// Returns the ID of the current content.
    pub(crate) fn id(&self) -> Result<String, String> {
        self.measure().map(|content| content.id)
    }

    /// Identifies the current content. Equal content has equal IDs within one loop.
    pub(crate) fn measure(&self) -> Result<MeasuredContent, String> {
        let index = self.scratch.join(MEASURED);
        match self.try_measure() {
            // A crash may have damaged a private index.
            Err(_) if index.exists() || self.stored.borrow().is_some() => {
                self.forget_stored();
                let _ = fs::remove_file(index);
                self.try_measure()
            }
            result => result,
        }
    }

    fn try_measure(&self) -> Result<MeasuredContent, String> {
        let stored = self.stored.borrow().clone();
        let (tree, differences) = if let Some(tree) = stored {
            let stored = self.shadow(STORED, true)?;
            let differences = self.differences(&stored)?;
            if differences.files.is_empty() {
                (tree, differences)
            } else {
                let shadow = self.shadow(MEASURED, false)?;
                copy_with_mtime(stored.index(), shadow.index())
                    .map_err(|error| self.cannot_write(&error))?;
                (
                    self.update(&shadow, &differences.files, false)?,
                    differences,
                )
            }
        } else {
            let shadow = self.shadow(MEASURED, false)?;
            self.create_index(&shadow, false)?;
            let differences = self.differences(&shadow)?;
            (
                self.update(&shadow, &differences.files, false)?,
                differences,
            )
        };
        let nested = self.nested_hash(differences.nested)?;
        let skipped = self.skipped_hash(&differences.skipped);
        let id = match (nested, skipped) {
            (None, None) => tree,
            (Some(hash), None) | (None, Some(hash)) => format!("{tree}+{hash:016x}"),
            (Some(nested), Some(skipped)) => format!("{tree}+{nested:016x}+{skipped:016x}"),
        };
        let changed = differences.files;
        Ok(MeasuredContent { id, changed })
    }

    /// Writes the current content to the repository's object database.
    pub(super) fn store(&self) -> Result<StoredTree, String> {
        let index = self.scratch.join(STORED);
        let before = self.stored.take().filter(|_| index.exists());
        let store = |before: Option<String>| {
            let shadow = self.shadow(STORED, true)?;
            self.create_index(&shadow, true)?;
            let differences = self.differences(&shadow)?;
            let id = match before {
                Some(tree) if differences.files.is_empty() => tree,
                _ => self.update(&shadow, &differences.files, true)?,
            };
            let skipped = differences.skipped;
            Ok::<_, String>(StoredTree { id, skipped })
        };
        let tree = match store(before) {
            // A crash may have damaged the index, or objects that it names may be gone.
            Err(_) if index.exists() => {
                let _ = fs::remove_file(index);
                store(None)?
            }
            result => result?,
        };
        self.stored.replace(Some(tree.id.clone()));
        Ok(tree)
    }

    /// Forgets what was stored, after something else has changed the index.
    pub(super) fn forget_stored(&self) {
        self.stored.replace(None);
    }

    pub(super) fn settings(&self) -> Result<&ShadowSettings, String> {
        if let Some(known) = self.settings.get() {
            return Ok(known);
        }
        let settings = ShadowSettings::read(&self.top)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    pub(super) fn shadow(&self, index: &str, stores: bool) -> Result<ShadowRepository<'_>, String> {
        ShadowRepository::open(&self.top, &self.scratch, self.settings()?, index, stores)
    }

    /// Opens the index of the tree that was stored last.
    pub(super) fn stored_shadow(&self) -> Result<ShadowRepository<'_>, String> {
        self.shadow(STORED, true)
    }

    /// Creates a private index from the repository's own if it is missing. Of files that git
    /// converts, the repository has other bytes than the working tree, so they are read again.
    fn create_index(&self, target: &ShadowRepository<'_>, stores: bool) -> Result<(), String> {
        if target.index().exists() {
            return Ok(());
        }
        let settings = self.settings()?;
        let own = &settings.files.index;
        let shadow = self.shadow("new-index", stores)?;
        let _ = fs::remove_file(shadow.index());
        let mut is_copy = own.exists() && !has_shared_part(own);
        if is_copy {
            copy_with_mtime(own, shadow.index()).map_err(|error| self.cannot_write(&error))?;
            let mut command = look::git(&self.top, &["ls-files", "-z", "--", ":/", CONVERTED]);
            let mut files = if settings.converts_all() {
                self.tracked()?
            } else {
                split(&command::run_list(&mut command)?)
            };
            files.retain(|path| self.is_kept(path));
            if files.len() > 1000 {
                is_copy = false;
                let _ = fs::remove_file(shadow.index());
            } else if !files.is_empty() {
                let list = files.join(&0);
                shadow
                    .git_with_input(&["update-index", "--force-remove", "-z", "--stdin"], &list)?;
                Self::add(&shadow, &list, stores)?;
            }
        }
        if !is_copy && own.exists() {
            let mut files = self.tracked()?;
            files.retain(|path| self.is_kept(path));
            Self::add(&shadow, &files.join(&0), stores)?;
        }
        if shadow.index().exists() {
            fs::rename(shadow.index(), target.index())
                .map_err(|error| self.cannot_write(&error))?;
        }
        Ok(())
    }

    /// Returns the files in the repository's own index.
    fn tracked(&self) -> Result<Vec<Vec<u8>>, String> {
        let mut command = look::git(&self.top, &["ls-files", "-z"]);
        Ok(split(&command::run_list(&mut command)?))
    }

    /// Returns whether a tracked path is a file, link or submodule that a tree contains.
    fn is_kept(&self, path: &[u8]) -> bool {
        let full = self.join(path);
        let is_plain_dir = full.is_dir() && !full.is_symlink() && !full.join(".git").exists();
        !is_own_file(path) && !is_plain_dir && SkipCause::of(&full).is_none()
    }

    fn add(shadow: &ShadowRepository<'_>, list: &[u8], stores: bool) -> Result<(), String> {
        let mut args = vec!["update-index", "--add", "--remove", "--replace"];
        if !stores {
            args.push("--info-only");
        }
        args.extend(["-z", "--stdin"]);
        shadow.git_with_input(&args, list).map(drop)
    }

    /// Updates the index, and returns the ID of its tree.
    fn update(
        &self,
        shadow: &ShadowRepository<'_>,
        files: &[Vec<u8>],
        stores: bool,
    ) -> Result<String, String> {
        if !files.is_empty() {
            Self::add(shadow, &files.join(&0), stores)?;
        }
        let tree = shadow.text(&["write-tree", "--missing-ok"])?;
        // Git has replaced the index, with a mode that depends on the umask.
        if shadow.index().exists() {
            fs::set_permissions(shadow.index(), Permissions::from_mode(0o600))
                .map_err(|error| self.cannot_write(&error))?;
        }
        Ok(tree)
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        format!("cannot write to {}: {error}", self.scratch.display())
    }

    /// Compares the working tree with an index.
    fn differences(&self, shadow: &ShadowRepository<'_>) -> Result<TreeDifferences, String> {
        let args = [
            "ls-files",
            "-z",
            "--modified",
            "--others",
            "--exclude-standard",
        ];
        let mut paths = split(&shadow.git(&args)?.stdout);
        paths.retain(|path| !is_own_file(path));
        paths.sort_unstable();
        paths.dedup();
        let mut differences = TreeDifferences::default();
        for path in paths {
            if path.ends_with(b"/") {
                differences.nested.push(path);
            } else if let Some(why) = SkipCause::of(&self.join(&path)) {
                differences.skipped.insert(path, why);
            } else {
                differences.files.push(path);
            }
        }
        Ok(differences)
    }

    /// Returns a hash of the content of submodules and other repositories inside this one, given
    /// the latter's paths. `None` if there are none.
    fn nested_hash(&self, mut nested: Vec<Vec<u8>>) -> Result<Option<u64>, String> {
        let submodules = inner::submodules(&self.top).into_iter();
        nested.extend(submodules.map(|path| path.into_os_string().into_vec()));
        nested.retain(|path| self.join(path).join(".git").exists());
        if nested.is_empty() || self.depth == DEPTH_MAX {
            return Ok(None);
        }
        nested.sort_unstable();
        let mut all = DefaultHasher::new();
        for path in nested {
            let mut name = DefaultHasher::new();
            path.hash(&mut name);
            let scratch = self.scratch.join(format!("{:016x}", name.finish()));
            let inner = Self::new(self.join(&path), scratch, self.depth + 1);
            (&path, inner.id()?).hash(&mut all);
        }
        Ok(Some(all.finish()))
    }

    /// Returns a hash of the files that a tree does not contain; `None` if there are none. A file is
    /// read again only if it has changed.
    fn skipped_hash(&self, skipped: &SkippedFiles) -> Option<u64> {
        let mut known = self.hashes.borrow_mut();
        let mut all = DefaultHasher::new();
        for path in skipped.keys() {
            let full = self.join(path);
            let identity = fs::symlink_metadata(&full).ok().map(|data| {
                let times = [
                    data.mtime(),
                    data.mtime_nsec(),
                    data.ctime(),
                    data.ctime_nsec(),
                ];
                (data.ino(), data.len(), times)
            });
            let unchanged = known
                .get(&full)
                .filter(|(before, _)| Some(before) == identity.as_ref());
            let hash = match unchanged {
                Some((_, hash)) => *hash,
                None => content_hash(&full),
            };
            (path, hash).hash(&mut all);
            if let Some(identity) = identity {
                known.insert(full, (identity, hash));
            }
        }
        (!skipped.is_empty()).then(|| all.finish())
    }

    pub(super) fn join(&self, path: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(path))
    }
}

/// Returns a hash of a file's content. What cannot be read counts as empty.
fn content_hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Ok(mut file) = File::open(path) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            hasher.write(&buffer[..count]);
        }
    }
    hasher.finish()
}

/// Returns whether a path is one of ralph's own files in the workspace.
pub(super) fn is_own_file(path: &[u8]) -> bool {
    let is_loop_file = path
        .strip_suffix(LOOP_FILE)
        .is_some_and(|before| before.is_empty() || before.ends_with(b"/"));
    is_loop_file
        || path
            .split(|byte| *byte == b'/')
            .any(|part| part == b".ralph")
}

/// Splits a list of paths, each terminated by NUL.
pub(super) fn split(list: &[u8]) -> Vec<Vec<u8>> {
    let paths = list.split(|byte| *byte == 0);
    paths
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns whether a part of the index is in another file, which a copy would lack.
fn has_shared_part(index: &Path) -> bool {
    let siblings = index.parent().and_then(|dir| fs::read_dir(dir).ok());
    let mut names = siblings.into_iter().flatten().flatten();
    names.any(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex."))
}
