//! How a repository stands right now, in a few words for a person.

use super::command::{Trouble, git, run};
use std::path::Path;
use std::time::Duration;

/// How a repository stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The branch; none if a commit is checked out without one.
    pub branch: Option<String>,
    /// Files that differ from the last commit, untracked ones included.
    pub changed: u32,
    /// Whether there are more.
    pub at_least: bool,
}

/// More than this is not counted.
const READ_MAX: usize = 1 << 20;
/// A person waits for the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How the repository of this directory stands; none where there is none.
pub fn glance(dir: &Path) -> Result<Option<Glance>, String> {
    let mut call = git(dir);
    call.args([
        "status",
        "--porcelain=v2",
        "--branch",
        "--no-renames",
        "--ignore-submodules=dirty",
    ]);
    let output = match run(&mut call, READ_MAX, PATIENCE) {
        Ok(output) => output,
        Err(Trouble::NotInstalled) => return Ok(None),
        Err(trouble) => return Err(trouble.sentence()),
    };
    if output.code != Some(0) && !output.cut {
        let outside = output.stderr.contains("not a git repository");
        return if outside {
            Ok(None)
        } else {
            Err(output.complaint("status"))
        };
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let branch = text
        .lines()
        .find_map(|line| line.strip_prefix("# branch.head "));
    let changed = text.lines().filter(|line| !line.starts_with('#')).count() as u32;
    let branch = branch
        .filter(|branch| *branch != "(detached)")
        .map(str::to_owned);
    Ok(Some(Glance {
        branch,
        changed,
        at_least: output.cut,
    }))
}
