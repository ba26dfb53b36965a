//! Captures a repository's content when a loop starts, and later compares the working tree with it.

use super::bounded_text::BoundedText;
use super::command::{self, GitError, GitOutput};
use super::overlay::IndexOverlay;
use super::untracked::{UntrackedFiles, quote, with_prefix};
use super::{PATHS_SHOWN, READ_MAX, inner, look};
use crate::engine::event::is_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Options for `git diff` that make its output independent of the user's settings.
pub(super) const DIFF_OPTIONS: [&str; 9] = [
    "--no-color",
    "--no-relative",
    "--diff-algorithm=default",
    "--find-renames",
    // Rename detection takes quadratic time: skip it for thousands of files.
    "-l400",
    "-O/dev/null",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--no-exit-code",
];

/// Options for patches only: `--unified` implies `--patch`, even beside another format.
const PATCH_OPTIONS: [&str; 2] = ["--unified=3", "--inter-hunk-context=0"];

/// What a diff compares. Everything in `.ralph` is left out, except for the user's settings there; a
/// pathspec cannot exclude a directory and include a part of it, so these are compared separately.
const SCOPES: [&[&str]; 2] = [
    &[":(top,exclude,glob)**/.ralph/**"],
    &[
        ":(top,glob)**/.ralph/settings.*",
        ":(top,glob)**/.ralph/template.md",
    ],
];

/// Parts of the paths in the second scope.
const SETTINGS: [&str; 2] = [".ralph/settings.", ".ralph/template.md"];

/// The largest number of repositories inside one repository that are compared, and how deep they
/// may be nested.
const INNER_MAX: usize = 32;
const DEPTH_MAX: usize = 4;

/// A repository's content when the loop started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiffBase {
    pub(super) top: PathBuf,
    tree: String,
    untracked: UntrackedFiles,
    /// Whether it may track the user's settings in `.ralph`; `None` if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracks_settings: Option<bool>,
    /// Whether it had uncommitted changes. Only recorded for repositories inside another.
    #[serde(default, skip_serializing_if = "is_default")]
    was_dirty: bool,
    /// The submodules and nested repositories, by their path in this repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    inner: BTreeMap<PathBuf, DiffBase>,
}

/// The changes since the base as a patch, cut to a maximum number of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) text: String,
    /// Number of characters cut off at the end of the patch.
    pub(crate) dropped_chars: u64,
    /// If characters were cut off: all changed files, as `src/a.rs +3 −1`.
    pub(crate) files: Vec<String>,
    /// A hash of the changes of each file, by its name.
    pub(crate) hashes: BTreeMap<String, u64>,
    /// Whether `dropped_chars` is only a lower bound.
    pub(crate) at_least: bool,
    /// A note about changes that are not included; `None` if all are included.
    pub(crate) note: Option<String>,
}

/// The size of the changes since the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiffStat {
    /// Number of files created, changed, renamed or deleted.
    pub(crate) files: u32,
    /// Number of lines added. Binary and very large files count as zero.
    pub(crate) insertions: u64,
    /// Number of lines removed. Binary and very large files count as zero.
    pub(crate) deletions: u64,
    /// Number of files whose lines are not counted: they were untracked at the start, so their
    /// earlier content is not known.
    pub(crate) uncounted: u32,
    /// Paths of the first few files, quoted as git quotes them.
    pub(crate) paths: Vec<String>,
    /// Whether the numbers are only lower bounds.
    pub(crate) at_least: bool,
}

impl DiffBase {
    /// Captures the current content of the repository that contains `workspace`. Returns `None`
    /// outside a working tree, or if git is not installed. `scratch` must be kept as long as the
    /// base is used.
    pub(crate) fn capture(workspace: &Path, scratch: &Path) -> Result<Option<Self>, String> {
        let Some(top) = find_top(workspace)? else {
            return Ok(None);
        };
        if top.to_str().is_none() {
            return Err(
                "the repository's path is not valid UTF-8, so prompts contain no diff".into(),
            );
        }
        Self::capture_at(top, scratch, 0).map(Some)
    }

    fn capture_at(top: PathBuf, scratch: &Path, depth: usize) -> Result<Self, String> {
        let overlay = IndexOverlay::new(&top, scratch)?;
        // If a file is unreadable, git exits with 1 and the base contains the file's last staged
        // content.
        let added = overlay.git(&["add", "--update", "--ignore-errors"], READ_MAX)?;
        if added.code != Some(0) && added.code != Some(1) {
            return Err(added.error_message("add --update"));
        }
        let written = overlay.git_ok(&["write-tree", "--missing-ok"], READ_MAX)?;
        let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
        let untracked = UntrackedFiles::capture(&overlay)?;
        let nested = untracked.nested().map(PathBuf::from);
        let paths = inner::submodules(&top).into_iter().chain(nested);
        let paths = paths.filter(|path| depth < DEPTH_MAX && path.to_str().is_some());
        // A repository that git cannot read, such as one that another user owns, is left out.
        let inner = paths.take(INNER_MAX).filter_map(|path| {
            is_top(&top.join(&path)).then_some(())?;
            let base = Self::capture_at(top.join(&path), scratch, depth + 1).ok()?;
            Some((path, base))
        });
        let was_dirty = depth > 0 && {
            let status = overlay.git_ok(&["status", "--porcelain=v1"], READ_MAX)?;
            !status.stdout.is_empty()
        };
        Ok(Self {
            tracks_settings: Some(overlay.may_track(&SETTINGS)),
            was_dirty,
            inner: inner.collect(),
            top,
            tree,
            untracked,
        })
    }

    /// Returns whether a nested repository is new since the start; false if that is not known.
    pub(crate) fn is_new_nested(&self, path: &str) -> bool {
        self.untracked.knows(&format!("{path}/")) == Some(false)
            && !self.inner.contains_key(Path::new(path))
    }

    /// Returns whether a submodule had uncommitted changes at the start.
    pub(crate) fn was_dirty(&self, submodule: &str) -> bool {
        let base = self.inner.get(Path::new(submodule));
        base.is_some_and(|base| base.was_dirty)
    }

    /// Returns the changes since the base as a patch of at most `max_chars` characters: tracked
    /// files first, then untracked ones, then those in submodules and nested repositories.
    pub(crate) fn diff(&self, scratch: &Path, max_chars: usize) -> Result<Diff, String> {
        let mut patch = BoundedText::new(max_chars);
        let mut diff = Diff::default();
        self.add_patch("", scratch, &mut patch, &mut diff)?;
        let patch = patch.finish();
        Ok(Diff {
            text: patch.text,
            dropped_chars: patch.dropped,
            files: patch.files,
            hashes: patch.hashes,
            ..diff
        })
    }

    fn add_patch(
        &self,
        prefix: &str,
        scratch: &Path,
        patch: &mut BoundedText,
        diff: &mut Diff,
    ) -> Result<(), String> {
        let overlay = IndexOverlay::new(&self.top, scratch)?;
        let untracked = self.untracked.changes(&overlay, prefix)?;
        let mut budget = READ_MAX;
        for tracked in self.compare(&overlay, "--patch", prefix, &untracked.now_tracked)? {
            patch.push(&String::from_utf8_lossy(&tracked.stdout));
            budget = budget.saturating_sub(tracked.stdout.len());
            diff.at_least |= tracked.truncated;
        }
        diff.at_least |= !untracked.render(patch, budget);
        diff.note = diff.note.take().or(untracked.note);
        for (path, base) in self.inner_bases(&overlay) {
            // A repository that was deleted or damaged must not hide the other changes.
            let _ = base.add_patch(&inner_prefix(prefix, &path), scratch, patch, diff);
        }
        Ok(())
    }

    /// Returns the size of the changes since the base.
    pub(crate) fn stat(&self, scratch: &Path) -> Result<DiffStat, String> {
        let mut counts = LineCounts::default();
        let complete = self.add_counts("", scratch, &mut counts)?;
        Ok(DiffStat {
            files: u32::try_from(counts.files.len()).unwrap_or(u32::MAX),
            insertions: counts.files.values().map(|count| count.0).sum(),
            deletions: counts.files.values().map(|count| count.1).sum(),
            uncounted: counts.uncounted,
            paths: counts.files.into_keys().take(PATHS_SHOWN).collect(),
            at_least: !complete,
        })
    }

    /// Adds the numbers of added and removed lines by path. Returns whether they are complete.
    fn add_counts(
        &self,
        prefix: &str,
        scratch: &Path,
        counts: &mut LineCounts,
    ) -> Result<bool, String> {
        let overlay = IndexOverlay::new(&self.top, scratch)?;
        let untracked = self.untracked.changes(&overlay, prefix)?;
        let mut complete = untracked.note.is_none();
        for tracked in self.compare(&overlay, "--numstat", prefix, &untracked.now_tracked)? {
            parse_numstat(&tracked.stdout, prefix, &mut counts.files);
            complete &= !tracked.truncated;
        }
        complete &= untracked.count(READ_MAX, |name, lines| {
            counts.files.entry(name).or_default().0 += lines;
        });
        counts.uncounted += untracked.uncounted();
        for (path, base) in self.inner_bases(&overlay) {
            complete &= base
                .add_counts(&inner_prefix(prefix, &path), scratch, counts)
                .unwrap_or(true);
        }
        Ok(complete)
    }

    /// Returns the bases of the submodules and nested repositories that are there now. The base of
    /// a submodule that was checked out later is the commit that this repository recorded.
    fn inner_bases(&self, overlay: &IndexOverlay) -> BTreeMap<PathBuf, DiffBase> {
        let mut bases = self.inner.clone();
        bases.retain(|_, base| is_top(&base.top));
        for path in inner::submodules(&self.top).into_iter().take(INNER_MAX) {
            let Some(name) = path.to_str().filter(|_| !bases.contains_key(&path)) else {
                continue;
            };
            let recorded = overlay.git(
                &["rev-parse", "--verify", &format!("{}:{name}", self.tree)],
                READ_MAX,
            );
            if let Ok(recorded) = recorded.map(|output| output.stdout)
                && !recorded.is_empty()
                && is_top(&self.top.join(&path))
            {
                let base = Self {
                    top: self.top.join(&path),
                    tree: String::from_utf8_lossy(&recorded).trim().to_owned(),
                    untracked: UntrackedFiles::Known(BTreeMap::new()),
                    tracks_settings: None,
                    was_dirty: false,
                    inner: BTreeMap::new(),
                };
                bases.insert(path, base);
            }
        }
        bases
    }

    /// Compares the base with the working tree. `excluded` are files that were untracked at the
    /// start and are tracked now, but have not changed: an agent that runs `git add -A` did not
    /// write them.
    fn compare(
        &self,
        overlay: &IndexOverlay,
        format: &str,
        prefix: &str,
        excluded: &[String],
    ) -> Result<Vec<GitOutput>, String> {
        let prefixes = [
            format!("--src-prefix=a/{prefix}"),
            format!("--dst-prefix=b/{prefix}"),
        ];
        let mut args = vec!["diff", format, &prefixes[0], &prefixes[1]];
        match format {
            "--numstat" => args.push("-z"),
            _ => args.extend(PATCH_OPTIONS),
        }
        args.extend(DIFF_OPTIONS);
        args.extend([self.tree.as_str(), "--"]);
        let pathspecs: Vec<String> = excluded
            .iter()
            .map(|path| format!(":(top,exclude,literal){path}"))
            .collect();
        args.extend(pathspecs.iter().map(String::as_str));
        let has_settings = self.tracks_settings.unwrap_or(true) || overlay.may_track(&SETTINGS);
        let scopes = SCOPES.iter().take(if has_settings { 2 } else { 1 });
        scopes
            .map(|scope| overlay.git_ok(&[&args[..], scope].concat(), READ_MAX))
            .collect()
    }
}

/// Returns whether git recognizes `path` as the top of a working tree. If its `.git` is damaged, or
/// a variable such as `GIT_DIR` is set, git would use another repository.
fn is_top(path: &Path) -> bool {
    let found = find_top(path).ok().flatten();
    found.is_some() && found == std::fs::canonicalize(path).ok()
}

/// Returns the prefix of paths in a repository inside the one whose paths have `prefix`.
fn inner_prefix(prefix: &str, path: &Path) -> String {
    format!("{prefix}{}/", path.display())
}

/// Returns the top of the working tree that contains `workspace`; `None` outside a working tree.
pub(super) fn find_top(workspace: &Path) -> Result<Option<PathBuf>, String> {
    if !workspace.is_dir() {
        return Err(format!("{} is not a directory", workspace.display()));
    }
    let args = ["rev-parse", "--is-inside-work-tree", "--show-toplevel"];
    let mut command = look::git(workspace, &args);
    let output = match command::run(&mut command, READ_MAX, command::TIMEOUT) {
        Ok(output) => output,
        Err(GitError::NotInstalled) => return Ok(None),
        Err(GitError::Failed(why)) => return Err(why),
    };
    if output.code == Some(0)
        && let Some(path) = output.stdout.strip_prefix(b"true\n")
    {
        return Ok(Some(command::parse_path(path)));
    }
    // A bare repository or a `.git` directory has no working tree to compare with.
    if output.stdout.starts_with(b"false")
        || output.stderr.contains("not a git repository")
        || command::is_bare(&output)
    {
        return Ok(None);
    }
    Err(output.error_message("rev-parse"))
}

/// The numbers of added and removed lines by path.
pub(super) type FileCounts = BTreeMap<String, (u64, u64)>;

#[derive(Default)]
struct LineCounts {
    files: FileCounts,
    /// Number of files whose lines are not counted.
    uncounted: u32,
}

/// Adds the output of `git diff --numstat -z` to the counts. A path with a merge conflict occurs
/// twice.
pub(super) fn parse_numstat(bytes: &[u8], prefix: &str, counts: &mut FileCounts) {
    let mut fields = bytes.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        // For a rename the path is empty, and the old and the new path follow as separate fields.
        let path = if path.is_empty() {
            fields.nth(1).unwrap_or_default()
        } else {
            path
        };
        let number = |text: &[u8]| {
            str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        let count = counts.entry(with_prefix(prefix, &quote(path))).or_default();
        count.0 = count.0.max(number(added));
        count.1 = count.1.max(number(removed));
    }
}
