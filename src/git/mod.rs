//! What changed in the workspace's repository since the loop began, seen without leaving a trace there; and,
//! in `keep`, the one door through which ralph writes to it.
//!
//! For a diff every call works on a copy of the index and writes its objects into ralph's own scratch directory, so
//! the user's index, HEAD, refs, working tree, stash and object database stay as they are. Two things
//! are not seen: uncommitted edits inside a submodule, and what a clean filter of the user (git-lfs)
//! writes elsewhere when git asks it about a modified file.

mod command;
mod obstacles;
mod overlay;
mod prefix;
mod project;
mod scm;
pub mod summary;
#[cfg(test)]
mod tests;
mod untracked;
pub mod worktree;

pub use obstacles::Standing;
pub use project::project;
pub use scm::{NoTree, Tree};

use command::Trouble;
use overlay::Overlay;
use prefix::Head;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use untracked::Untracked;

/// More than this is never read from one call of git; the rest is "more than".
const READ_MAX: usize = 8 << 20;

/// How many paths a summary names.
const PATHS_SHOWN: usize = 20;

/// Options that keep the user's settings from changing what a diff says.
const PLAIN: [&str; 15] = [
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
    // Rename detection is quadratic; a prompt does not need it among thousands of files.
    "-l400",
    "-O/dev/null",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--no-exit-code",
];

/// How the repository looked when the loop began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Base {
    top: PathBuf,
    tree: String,
    untracked: Untracked,
}

/// The head of what changed since the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// At most as many characters as were asked for.
    pub text: String,
    /// How many characters were cut off the end.
    pub dropped_chars: u64,
    /// Whether there was even more than `dropped_chars` says.
    pub at_least: bool,
    /// What could not be seen, in a sentence.
    pub note: Option<String>,
}

/// The size of what changed since the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files created, changed, renamed or deleted.
    pub files: u32,
    /// Lines added; binary and huge files add none.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// The first few files, quoted as git does where a name is odd.
    pub paths: Vec<String>,
    /// Whether there was more than could be counted.
    pub at_least: bool,
}

impl Base {
    /// Takes down how the repository around `workspace` looks now. There is none outside a working
    /// tree, or where git is not installed. `scratch` must live as long as the base is used.
    pub fn take(workspace: &Path, scratch: &Path) -> Result<Option<Self>, String> {
        let Some(top) = top_of(workspace)? else {
            return Ok(None);
        };
        if top.to_str().is_none() {
            return Err("the repository's path is not valid UTF-8, so no diff can be shown".into());
        }
        let overlay = Overlay::new(&top, scratch)?;
        // An unreadable file makes git exit 1 here; the base then has its last staged content.
        let added = overlay.git(&["add", "--update", "--ignore-errors"], READ_MAX)?;
        if added.code != Some(0) && added.code != Some(1) {
            return Err(added.complaint("add --update"));
        }
        let written = overlay.git_ok(&["write-tree", "--missing-ok"], READ_MAX)?;
        let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
        let untracked = Untracked::take(&overlay)?;
        Ok(Some(Self {
            top,
            tree,
            untracked,
        }))
    }

    /// What changed since the base, as text: tracked files first, then untracked ones.
    pub fn diff(&self, scratch: &Path, max_chars: usize) -> Result<Diff, String> {
        let overlay = Overlay::new(&self.top, scratch)?;
        let since = self.untracked.since(&overlay)?;
        let tracked = self.compare(&overlay, "--patch", &since.settled)?;
        let mut head = Head::new(max_chars);
        head.push(&String::from_utf8_lossy(&tracked.stdout));
        let at_least =
            tracked.cut || !since.render(&mut head, READ_MAX.saturating_sub(tracked.stdout.len()));
        let (text, dropped_chars) = head.finish();
        Ok(Diff {
            text,
            dropped_chars,
            at_least,
            note: since.note,
        })
    }

    /// How much changed since the base.
    pub fn changes(&self, scratch: &Path) -> Result<Changes, String> {
        let overlay = Overlay::new(&self.top, scratch)?;
        let since = self.untracked.since(&overlay)?;
        let tracked = self.compare(&overlay, "--numstat", &since.settled)?;
        let mut counts = numstat(&tracked.stdout);
        let counted = since.count(READ_MAX, |name, lines| {
            counts.entry(name).or_default().0 += lines;
        });
        Ok(Changes {
            files: u32::try_from(counts.len()).unwrap_or(u32::MAX),
            insertions: counts.values().map(|count| count.0).sum(),
            deletions: counts.values().map(|count| count.1).sum(),
            paths: counts.into_keys().take(PATHS_SHOWN).collect(),
            at_least: tracked.cut || !counted || since.note.is_some(),
        })
    }

    /// Compares the base with the working tree. `settled` are files that were untracked at the start,
    /// have not changed, and are tracked by now: an agent's `git add -A` did not write them.
    fn compare(
        &self,
        overlay: &Overlay,
        form: &str,
        settled: &[String],
    ) -> Result<command::Output, String> {
        let mut args = vec!["diff", form];
        if form == "--numstat" {
            args.push("-z");
        }
        args.extend(PLAIN);
        args.extend([self.tree.as_str(), "--"]);
        let excludes: Vec<String> = settled
            .iter()
            .map(|path| format!(":(top,exclude,literal){path}"))
            .collect();
        args.extend(excludes.iter().map(String::as_str));
        overlay.git_ok(&args, READ_MAX)
    }
}

/// The top of the working tree around `workspace`, if there is one.
fn top_of(workspace: &Path) -> Result<Option<PathBuf>, String> {
    if !workspace.is_dir() {
        return Err(format!("{} is not a directory", workspace.display()));
    }
    let mut command = command::git(workspace);
    command.args(["rev-parse", "--is-inside-work-tree", "--show-toplevel"]);
    let output = match command::run(&mut command, READ_MAX, command::PATIENCE) {
        Ok(output) => output,
        Err(Trouble::NotInstalled) => return Ok(None),
        Err(Trouble::Failed(why)) => return Err(why),
    };
    if output.code == Some(0)
        && let Some(path) = output.stdout.strip_prefix(b"true\n")
    {
        return Ok(Some(command::path_of(path)));
    }
    // A bare repository, or the inside of a `.git` directory, has no working tree to compare with.
    if output.stdout.starts_with(b"false") || output.stderr.contains("not a git repository") {
        return Ok(None);
    }
    Err(output.complaint("rev-parse"))
}

/// Reads `git diff --numstat -z`: added and removed lines by name. A path in conflict comes twice.
fn numstat(bytes: &[u8]) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut fields = bytes.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        // A rename leaves the path empty and names the old and the new one in fields of their own.
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
        let count = counts.entry(untracked::quote(path)).or_default();
        count.0 = count.0.max(number(added));
        count.1 = count.1.max(number(removed));
    }
    counts
}
