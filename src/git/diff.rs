//! Captures a repository's content when a loop starts, and later compares the working tree with it.

use super::bounded_text::BoundedText;
use super::command::{self, GitError, GitOutput};
use super::overlay::IndexOverlay;
use super::untracked::{UntrackedFiles, quote};
use super::{PATHS_SHOWN, READ_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Options for `git diff` that make its output independent of the user's settings.
const DIFF_OPTIONS: [&str; 15] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=default",
    "--find-renames",
    // Rename detection takes quadratic time: skip it for thousands of files.
    "-l400",
    "-O/dev/null",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--no-exit-code",
];

/// A repository's content when the loop started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiffBase {
    pub(super) top: PathBuf,
    tree: String,
    untracked: UntrackedFiles,
}

/// The changes since the base as a patch, cut to a maximum number of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) text: String,
    /// Number of characters cut off at the end of the patch.
    pub(crate) dropped_chars: u64,
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
        Ok(Some(Self {
            top,
            tree,
            untracked,
        }))
    }

    /// Returns the changes since the base as a patch of at most `max_chars` characters: tracked
    /// files first, then untracked ones.
    pub(crate) fn diff(&self, scratch: &Path, max_chars: usize) -> Result<Diff, String> {
        let overlay = IndexOverlay::new(&self.top, scratch)?;
        let untracked = self.untracked.changes(&overlay)?;
        let tracked = self.compare(&overlay, "--patch", &untracked.now_tracked)?;
        let mut patch = BoundedText::new(max_chars);
        patch.push(&String::from_utf8_lossy(&tracked.stdout));
        let budget = READ_MAX.saturating_sub(tracked.stdout.len());
        let at_least = tracked.truncated || !untracked.render(&mut patch, budget);
        let (text, dropped_chars) = patch.finish();
        Ok(Diff {
            text,
            dropped_chars,
            at_least,
            note: untracked.note,
        })
    }

    /// Returns the size of the changes since the base.
    pub(crate) fn stat(&self, scratch: &Path) -> Result<DiffStat, String> {
        let overlay = IndexOverlay::new(&self.top, scratch)?;
        let untracked = self.untracked.changes(&overlay)?;
        let tracked = self.compare(&overlay, "--numstat", &untracked.now_tracked)?;
        let mut counts = parse_numstat(&tracked.stdout);
        let complete = untracked.count(READ_MAX, |name, lines| {
            counts.entry(name).or_default().0 += lines;
        });
        Ok(DiffStat {
            files: u32::try_from(counts.len()).unwrap_or(u32::MAX),
            insertions: counts.values().map(|count| count.0).sum(),
            deletions: counts.values().map(|count| count.1).sum(),
            paths: counts.into_keys().take(PATHS_SHOWN).collect(),
            at_least: tracked.truncated || !complete || untracked.note.is_some(),
        })
    }

    /// Compares the base with the working tree. `excluded` are files that were untracked at the
    /// start and are tracked now, but have not changed: an agent that runs `git add -A` did not
    /// write them.
    fn compare(
        &self,
        overlay: &IndexOverlay,
        format: &str,
        excluded: &[String],
    ) -> Result<GitOutput, String> {
        let mut args = vec!["diff", format];
        if format == "--numstat" {
            args.push("-z");
        }
        args.extend(DIFF_OPTIONS);
        args.extend([self.tree.as_str(), "--"]);
        let pathspecs: Vec<String> = excluded
            .iter()
            .map(|path| format!(":(top,exclude,literal){path}"))
            .collect();
        args.extend(pathspecs.iter().map(String::as_str));
        overlay.git_ok(&args, READ_MAX)
    }
}

/// Returns the top of the working tree that contains `workspace`; `None` if there is none.
pub(super) fn find_top(workspace: &Path) -> Result<Option<PathBuf>, String> {
    if !workspace.is_dir() {
        return Err(format!("{} is not a directory", workspace.display()));
    }
    let mut command = command::git(workspace);
    command.args(["rev-parse", "--is-inside-work-tree", "--show-toplevel"]);
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
    if output.stdout.starts_with(b"false") || output.stderr.contains("not a git repository") {
        return Ok(None);
    }
    Err(output.error_message("rev-parse"))
}

/// Parses the output of `git diff --numstat -z` into the numbers of added and removed lines by
/// path. A path with a merge conflict occurs twice.
fn parse_numstat(bytes: &[u8]) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
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
        let count = counts.entry(quote(path)).or_default();
        count.0 = count.0.max(number(added));
        count.1 = count.1.max(number(removed));
    }
    counts
}
