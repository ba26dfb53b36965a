//! Summarizes a repository's current state for a person.

use super::command::{GitError, is_bare, run};
use super::look;
use std::path::Path;
use std::time::Duration;

/// A repository's branch and number of changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepoSummary {
    /// The current branch; `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
    /// Number of files that differ from the last commit, including untracked ones.
    pub(crate) changed_files: u32,
    /// Whether `changed_files` is only a lower bound.
    pub(crate) at_least: bool,
}

/// Maximum size of git's output that is read, in bytes.
const READ_MAX: usize = 1 << 20;
/// Timeout for git, shorter than usual because a person waits for the result.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Summarizes the repository that contains `dir`. Returns `None` outside a repository, or if git is
/// not installed.
pub(crate) fn summarize(dir: &Path) -> Result<Option<RepoSummary>, String> {
    let args = [
        "status",
        "--porcelain=v2",
        "--branch",
        "--no-renames",
        "--ignore-submodules=dirty",
    ];
    let mut command = look::git(dir, &args);
    let output = match run(&mut command, READ_MAX, TIMEOUT) {
        Ok(output) => output,
        Err(GitError::NotInstalled) => return Ok(None),
        Err(error) => return Err(error.message()),
    };
    if output.code != Some(0) && !output.truncated {
        let is_outside = output.stderr.contains("not a git repository") || is_bare(&output);
        return if is_outside {
            Ok(None)
        } else {
            Err(output.error_message("status"))
        };
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let branch = text
        .lines()
        .find_map(|line| line.strip_prefix("# branch.head "));
    let changed_files = text.lines().filter(|line| !line.starts_with('#')).count() as u32;
    let branch = branch
        .filter(|branch| *branch != "(detached)")
        .map(str::to_owned);
    Ok(Some(RepoSummary {
        branch,
        changed_files,
        at_least: output.truncated,
    }))
}
