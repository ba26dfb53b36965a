//! Detects problems, before a loop starts, that would keep its work from being committed or pushed.

use super::READ_MAX;
use super::project::checkout_top;
use super::working_tree::WorkingTree;
use super::{command, look, worktree};
use std::fs;
use std::path::{Path, PathBuf};

/// The properties of a working tree that matter for commits and pushes.
#[derive(Debug, Default)]
pub(crate) struct TreeStatus {
    /// The files that differ from the HEAD commit.
    pub(crate) changed_files: Vec<String>,
    /// An unfinished operation, such as `a merge`; `None` if no operation is in progress.
    pub(crate) operation_in_progress: Option<&'static str>,
    /// Whether HEAD is detached.
    pub(crate) detached: bool,
    pub(crate) has_remote: bool,
    /// Whether a plain `git push` has a destination.
    pub(crate) has_upstream: bool,
    /// Git's error message if no committer identity is configured; `None` if one is configured.
    pub(crate) missing_identity: Option<String>,
    /// Locks that killed git processes left.
    pub(crate) left_locks: Vec<PathBuf>,
}

/// Files that exist while an operation is in progress, and the name of the operation.
const OPERATIONS: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
];

/// Returns whether git ignores `dir`, as a repository in the home directory ignores most others.
pub(crate) fn is_ignored(dir: &Path) -> bool {
    let mut command = look::git(dir, &["check-ignore", "--quiet", "."]);
    command::run(&mut command, READ_MAX, command::TIMEOUT)
        .is_ok_and(|output| output.code == Some(0))
}

/// Returns whether the repository that contains a file tracks it. Links to the file's directory are
/// resolved first, and the repository is found without git: a directory that looks like a repository
/// and was itself committed must not answer the question.
#[cfg(feature = "cli")]
pub(crate) fn is_tracked(file: &Path) -> Result<bool, String> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        return Ok(false);
    };
    let dir = std::fs::canonicalize(dir).map_err(|error| error.to_string())?;
    let Some(top) = checkout_top(&dir) else {
        return Ok(false);
    };
    let path = dir.strip_prefix(top).unwrap_or(&dir).join(name);
    // Where the file system ignores case, so must this.
    let args = ["--icase-pathspecs", "ls-files", "-z", "--"];
    let mut command = look::git(top, &args);
    command
        .env("GIT_DIR", top.join(".git"))
        .env("GIT_WORK_TREE", top)
        .env_remove("GIT_INDEX_FILE")
        .arg(path);
    let output = command::run(&mut command, READ_MAX, command::TIMEOUT)
        .map_err(command::GitError::message)?;
    match output.code {
        Some(0) => Ok(!output.stdout.is_empty()),
        _ => Err(output.error_message("ls-files")),
    }
}

impl WorkingTree {
    /// Returns the current status. A property that git cannot determine counts as no problem.
    pub(crate) fn status(&self) -> Result<TreeStatus, String> {
        let run = |args: &[&str]| self.git(args).ok();
        Ok(TreeStatus {
            changed_files: self.changed_files()?,
            operation_in_progress: OPERATIONS
                .iter()
                .find(|(file, _)| self.has_git_file(file))
                .map(|(_, operation)| *operation),
            detached: run(&["symbolic-ref", "--quiet", "HEAD"])
                .is_some_and(|output| output.code != Some(0)),
            has_remote: run(&["remote"]).is_none_or(|output| !output.stdout.is_empty()),
            has_upstream: self.has_upstream(),
            missing_identity: self.missing_identity(),
            left_locks: self.left_locks(),
        })
    }

    /// Returns git's error message if no committer identity is configured; `None` if one is
    /// configured.
    pub(super) fn missing_identity(&self) -> Option<String> {
        let identity = self.git(&["var", "GIT_COMMITTER_IDENT"]).ok()?;
        (identity.code != Some(0)).then(|| identity.error_message("var"))
    }

    fn has_upstream(&self) -> bool {
        let query = |args: &[&str]| {
            let output = self
                .git(args)
                .ok()
                .filter(|output| output.code == Some(0))?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        query(&["rev-parse", "--abbrev-ref", "@{upstream}"]).is_some()
            || query(&["config", "--bool", "push.autoSetupRemote"]).as_deref() == Some("true")
            || query(&["config", "push.default"])
                .is_some_and(|value| value == "current" || value == "matching")
    }

    /// Returns whether a file or directory called `name` exists in the working tree's `.git`
    /// directory.
    pub(super) fn has_git_file(&self, name: &str) -> bool {
        let output = self.git(&["rev-parse", "--git-path", name]).ok();
        output.is_some_and(|output| {
            self.top()
                .join(command::parse_path(&output.stdout))
                .exists()
        })
    }
}

/// Returns the directory that the configuration of the repository around `workspace` makes its
/// working tree; `None` if that is where the repository lies, as usual. An unpacked archive can have
/// any configuration.
pub(crate) fn moved_working_tree(workspace: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(workspace).ok()?;
    let expected = checkout_top(&real)?;
    // Git answers this also if the working tree does not contain the workspace at all.
    let mut command = look::git(&real, &["rev-parse", "--show-toplevel"]);
    let output = command::run(&mut command, READ_MAX, command::TIMEOUT).ok()?;
    let top = (output.code == Some(0)).then(|| command::parse_path(&output.stdout))?;
    let top = fs::canonicalize(&top).unwrap_or(top);
    (top != expected && worktree::redirecting_variable().is_none()).then_some(top)
}
