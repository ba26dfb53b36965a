//! Reads the commit that is checked out, and git's version.

use super::command::{self, GitOutput};
use super::{READ_MAX, look};
use std::path::Path;

/// The commit that is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) commit: String,
    pub(crate) tree: String,
}

/// Returns the commit that is checked out in a working tree; `None` before the first commit and
/// outside git.
pub(crate) fn head(dir: &Path) -> Option<Head> {
    let output = run(dir, &["rev-parse", "HEAD^{commit}", "HEAD^{tree}"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (commit, tree) = text.trim().split_once('\n')?;
    Some(Head {
        commit: commit.to_owned(),
        tree: tree.to_owned(),
    })
}

/// Returns git's version, such as `2.51.0`; `None` if git is not installed.
pub(crate) fn version(dir: &Path) -> Option<String> {
    let output = run(dir, &["--version"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("git version ");
    version.map(str::to_owned)
}

fn run(dir: &Path, args: &[&str]) -> Option<GitOutput> {
    let output = command::run(&mut look::git(dir, args), READ_MAX, command::TIMEOUT).ok()?;
    (output.code == Some(0)).then_some(output)
}
