//! Finds the project that a workspace belongs to: the top of its repository, or of the main
//! repository if the workspace is in a linked worktree.
//!
//! This module reads files instead of running git, because an agent's git settings could change the
//! result.

use crate::os::regular_file;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a file that contains a path, in bytes.
const PATH_FILE_MAX: u64 = 8192;

/// Returns the top of the repository that contains `workspace`, or `workspace` itself outside any
/// repository.
pub(crate) fn project(workspace: &Path) -> PathBuf {
    let real = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    real.ancestors().find_map(project_top).unwrap_or(real)
}

/// Returns the `.git` directory that all worktrees of the repository that contains a workspace
/// share; `None` outside any repository.
pub(super) fn common_git_dir(workspace: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(workspace).ok()?;
    real.ancestors().find_map(|dir| Some(git_dirs(dir)?.common))
}

/// Returns the git directories of the checkout that contains a workspace: its own, and the one that
/// all worktrees share, if that is another. Returns none outside any repository.
pub(crate) fn git_dirs_of(workspace: &Path) -> Vec<PathBuf> {
    let Some(dirs) = workspace.ancestors().find_map(git_dirs) else {
        return Vec::new();
    };
    let mut all = vec![dirs.common, dirs.own];
    all.dedup();
    all
}

/// Returns the git directory of the working tree whose top is `top`; `None` if it is no such top.
pub(super) fn git_dir(top: &Path) -> Option<PathBuf> {
    git_dirs(top).map(|dirs| dirs.own)
}

/// Returns the top of the checkout that contains `dir`, whether of a main repository, a linked
/// worktree or a submodule; `None` outside any repository.
pub(crate) fn checkout_top(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| project_top(dir).is_some())
}

/// A repository, and the checkout of it that a workspace is in.
#[cfg(feature = "cli")]
pub(crate) struct Repository {
    /// The top of the main repository, or the workspace outside any.
    pub(crate) project: PathBuf,
    /// The top of the checkout.
    pub(crate) checkout: PathBuf,
}

/// Returns the repository that contains `workspace`. A checkout that only claims to be a linked
/// worktree of another repository, as an unpacked archive can, is a repository of its own: the
/// other one must list it.
#[cfg(feature = "cli")]
pub(crate) fn repository(workspace: &Path) -> Repository {
    let real = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    let checkout = checkout_top(&real).map_or_else(|| real.clone(), Path::to_owned);
    let project = project_top(&checkout).filter(|_| is_listed_worktree(&checkout));
    Repository {
        project: project.unwrap_or_else(|| checkout.clone()),
        checkout,
    }
}

/// Returns whether the repository that a linked worktree names has an entry for this worktree.
#[cfg(feature = "cli")]
fn is_listed_worktree(top: &Path) -> bool {
    let find = || {
        let git = top.join(".git");
        let git_dir = top.join(read_path_file(&git)?.strip_prefix("gitdir:")?.trim());
        let git_dir = fs::canonicalize(git_dir).ok()?;
        let back = read_path_file(&git_dir.join("gitdir"))?;
        let back = fs::canonicalize(git_dir.join(back.trim())).ok()?;
        let common = git_dirs(top)?.common;
        Some(git_dir.parent()? == common.join("worktrees") && back == fs::canonicalize(git).ok()?)
    };
    find().unwrap_or(false)
}

fn project_top(dir: &Path) -> Option<PathBuf> {
    let GitDirs {
        common, is_linked, ..
    } = git_dirs(dir)?;
    // A submodule is a separate project.
    if !is_linked {
        return Some(dir.to_owned());
    }
    if common.file_name().is_some_and(|name| name == ".git") {
        return common.parent().map(Path::to_owned);
    }
    Some(common)
}

/// The git directory of a working tree.
pub(super) struct GitDirs {
    /// The directory with the index and HEAD of this working tree.
    pub(super) own: PathBuf,
    /// The directory that all worktrees of the repository share.
    pub(super) common: PathBuf,
    /// Whether the working tree is a linked worktree.
    is_linked: bool,
}

/// Finds the git directory of the working tree whose top is `dir`; `None` if it is no such top.
pub(super) fn git_dirs(dir: &Path) -> Option<GitDirs> {
    let git = dir.join(".git");
    let data = fs::metadata(&git).ok()?;
    if data.is_dir() {
        return git.join("HEAD").exists().then_some(GitDirs {
            own: git.clone(),
            common: git,
            is_linked: false,
        });
    }
    let git_dir = dir.join(read_path_file(&git)?.strip_prefix("gitdir:")?.trim());
    let Some(common) = read_path_file(&git_dir.join("commondir")) else {
        return Some(GitDirs {
            own: git_dir.clone(),
            common: git_dir,
            is_linked: false,
        });
    };
    Some(GitDirs {
        common: fs::canonicalize(git_dir.join(common.trim())).ok()?,
        own: git_dir,
        is_linked: true,
    })
}

fn read_path_file(path: &Path) -> Option<String> {
    let (bytes, more) = regular_file::read(path, PATH_FILE_MAX, true).ok()?;
    String::from_utf8(bytes).ok().filter(|_| !more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command
            .current_dir(dir)
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(args);
        command
            .args(["--quiet"])
            .env_remove("GIT_DIR")
            .stdout(std::process::Stdio::null());
        assert!(command.status().unwrap().success(), "{args:?}");
    }

    #[test]
    fn a_worktree_belongs_to_the_project_of_its_repository() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
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
        let trusted = |dir: &Path| repository(dir).project;
        assert_eq!(trusted(&shop.join("a/b")), shop);
        assert_eq!(trusted(&tree), shop);
        assert_eq!(trusted(&root), root);
        let copy = root.join("copy");
        fs::create_dir(&copy).unwrap();
        fs::copy(tree.join(".git"), copy.join(".git")).unwrap();
        assert_eq!(project(&copy), shop);
        assert_eq!(trusted(&copy), copy, "the repository does not list it");
        let forged = copy.join("forged");
        fs::create_dir(&forged).unwrap();
        fs::write(copy.join(".git"), "gitdir: forged\n").unwrap();
        fs::write(forged.join("gitdir"), "../.git\n").unwrap();
        let common = format!("{}\n", shop.join(".git").display());
        fs::write(forged.join("commondir"), common).unwrap();
        assert_eq!(project(&copy), shop);
        assert_eq!(trusted(&copy), copy, "it lists itself");
        fs::write(shop.join("a/.git"), "gitdir: ../.git/modules/a\n").unwrap();
        assert_eq!(project(&shop.join("a/b")), shop.join("a"), "a submodule");
        fs::write(shop.join("a/.git"), "nonsense").unwrap();
        assert_eq!(project(&shop.join("a/b")), shop);
    }
}
