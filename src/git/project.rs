//! Which project a workspace belongs to: the top of its repository, and for a worktree that of the main one.
//!
//! Files say so, and no program is called: an agent's settings for git have no part in it.

use crate::os::regular;
use std::fs;
use std::path::{Path, PathBuf};

/// More than this is no path.
const LINK_MAX: u64 = 8192;

/// The top of the repository around a workspace; the workspace itself outside of any.
pub fn project(workspace: &Path) -> PathBuf {
    let real = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    real.ancestors().find_map(top).unwrap_or(real)
}

fn top(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    let data = fs::metadata(&git).ok()?;
    if data.is_dir() {
        return git.join("HEAD").exists().then(|| dir.to_owned());
    }
    let private = dir.join(word(&git)?.strip_prefix("gitdir:")?.trim());
    // A submodule has no other place: it is a project of its own.
    let Some(common) = word(&private.join("commondir")) else {
        return Some(dir.to_owned());
    };
    let common = fs::canonicalize(private.join(common.trim())).ok()?;
    if common.file_name().is_some_and(|name| name == ".git") {
        return common.parent().map(Path::to_owned);
    }
    Some(common)
}

fn word(path: &Path) -> Option<String> {
    let (bytes, more) = regular::read(path, LINK_MAX, true).ok()?;
    String::from_utf8(bytes).ok().filter(|_| !more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(dir: &Path, words: &[&str]) {
        let mut command = Command::new("git");
        command
            .current_dir(dir)
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(words);
        command
            .args(["--quiet"])
            .env_remove("GIT_DIR")
            .stdout(std::process::Stdio::null());
        assert!(command.status().unwrap().success(), "{words:?}");
    }

    #[test]
    fn a_worktree_belongs_to_the_project_of_its_repository() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let (shop, tree, bare) = (root.join("shop"), root.join("tree"), root.join("bare"));
        fs::create_dir_all(shop.join("a/b")).unwrap();
        assert_eq!(
            project(&shop.join("a/b")),
            shop.join("a/b"),
            "no repository"
        );
        git(&shop, &["init"]);
        assert_eq!(project(&shop.join("a/b")), shop);
        git(&shop, &["commit", "--allow-empty", "-m", "first"]);
        git(&shop, &["worktree", "add", "../tree"]);
        assert_eq!(project(&tree), shop);
        git(&root, &["clone", "--bare", "shop", "bare"]);
        git(&bare, &["worktree", "add", "-b", "other", "../of-bare"]);
        assert_eq!(project(&root.join("of-bare")), bare);
        fs::write(shop.join("a/.git"), "gitdir: ../.git/modules/a\n").unwrap();
        assert_eq!(project(&shop.join("a/b")), shop.join("a"), "a submodule");
        fs::write(shop.join("a/.git"), "nonsense").unwrap();
        assert_eq!(project(&shop.join("a/b")), shop);
    }
}
