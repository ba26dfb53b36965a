//! Finds repositories inside a working tree: submodules, and nested repositories, whose files no
//! commit of the outer repository contains.

use super::command::{self, GitError};
use super::untracked::quote;
use super::working_tree::{WORK, WorkingTree};
use super::{READ_MAX, look};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Formats a path that git printed, for messages.
pub(crate) fn path_name(path: &[u8]) -> String {
    quote(path)
}

/// How the working tree differs from the HEAD commit.
#[derive(Debug, Default)]
pub(crate) struct TreeChanges {
    /// The files that a commit would contain, including untracked ones but not ralph's own.
    pub(crate) files: Vec<String>,
    /// Submodules with changes that only a commit inside them can contain.
    pub(crate) dirty_submodules: Vec<String>,
    /// The paths of untracked nested repositories, relative to the top of the working tree.
    pub(crate) nested: Vec<Vec<u8>>,
}

impl WorkingTree {
    /// Returns the current branch; `None` if HEAD is detached.
    pub(crate) fn current_branch(&self) -> Option<String> {
        let output = self
            .git(&["symbolic-ref", "--quiet", "--short", "HEAD"])
            .ok()
            .filter(|output| output.code == Some(0))?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Counts the commits on `branch` since `base` that HEAD does not contain.
    pub(crate) fn count_left_commits(&self, branch: &str, base: &str) -> u32 {
        let branch = format!("refs/heads/{branch}");
        let args = ["rev-list", "--count", &branch, "--not", base, "HEAD", "--"];
        let output = self.git(&args).ok();
        let count = output.and_then(|output| String::from_utf8(output.stdout).ok());
        count
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Compares the working tree with the HEAD commit.
    pub(crate) fn changes(&self) -> Result<TreeChanges, String> {
        let mut args = vec![
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=none",
            "--",
        ];
        args.extend(WORK);
        let output = self.git(&args).map_err(GitError::message)?;
        if output.code != Some(0) && !output.truncated {
            return Err(output.error_message("status"));
        }
        let mut changes = TreeChanges::default();
        for entry in output.stdout.split(|byte| *byte == 0) {
            changes.add(entry);
        }
        let stray = stray_submodules(self.top());
        let stray = stray.map(|path| quote(path.as_os_str().as_bytes()));
        changes.dirty_submodules.extend(stray);
        Ok(changes)
    }

    /// Returns the directories that the index records as repositories although they are not
    /// submodules, and whose files the index therefore lacks. Those in the tree `base` are left
    /// out.
    pub(crate) fn recorded_nested(&self, base: &str) -> Result<Vec<Vec<u8>>, String> {
        let args = [
            "diff",
            "--cached",
            "--raw",
            "-z",
            "--no-renames",
            "--ignore-submodules=none",
            "--diff-filter=AT",
            base,
            "--",
        ];
        let output = self.git(&args).map_err(GitError::message)?;
        if output.code != Some(0) && !output.truncated {
            return Err(output.error_message("diff"));
        }
        let mut fields = output.stdout.split(|byte| *byte == 0);
        let mut paths = Vec::new();
        // `:<old mode> <new mode> <old ID> <new ID> <status>`, then the path.
        while let (Some(modes), Some(path)) = (fields.next(), fields.next()) {
            if modes.get(8..14) == Some(b"160000") {
                paths.push(path.to_vec());
            }
        }
        if !paths.is_empty() {
            let declared = declared_submodules(self.top());
            paths.retain(|path| {
                let path = Path::new(OsStr::from_bytes(path));
                !declared.contains(path) && !is_empty_dir(&self.top().join(path))
            });
        }
        Ok(paths)
    }
}

impl TreeChanges {
    /// Adds an entry of `git status --porcelain=v2`.
    fn add(&mut self, entry: &[u8]) {
        let fields = match entry.first() {
            Some(b'1') => 9,
            Some(b'u') => 11,
            Some(b'?') => 2,
            _ => return,
        };
        let mut parts = entry.splitn(fields, |byte| *byte == b' ').skip(1);
        if fields == 2 {
            match parts.next() {
                // With `--untracked-files=all`, only a nested repository ends with a slash.
                Some([path @ .., b'/']) => self.nested.push(path.to_vec()),
                Some(path) => self.files.push(quote(path)),
                None => {}
            }
            return;
        }
        let (Some(kind), Some(submodule), Some(path)) = (parts.next(), parts.next(), parts.last())
        else {
            return;
        };
        // `S<C if the commit differs><M if modified><U if it has untracked files>`, or `N...`.
        let is_dirty = submodule.starts_with(b"S") && submodule.get(2..) != Some(b"..");
        if is_dirty {
            self.dirty_submodules.push(quote(path));
        }
        let only_dirty = is_dirty && kind == b".M" && submodule.get(1) == Some(&b'.');
        if !only_dirty {
            self.files.push(quote(path));
        }
    }
}

/// Returns the submodules that are checked out in the working tree at `top`, relative to it.
pub(super) fn submodules(top: &Path) -> Vec<PathBuf> {
    let declared = declared_submodules(top).into_iter();
    declared
        .filter(|path| top.join(path).join(".git").exists())
        .collect()
}

/// The number of levels of submodules inside submodules that are examined.
const DEPTH_MAX: usize = 4;

/// Returns the directories of all submodules that are checked out in the working tree at `top`, also
/// of those inside submodules.
pub(crate) fn all_submodules(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![top.to_owned()];
    for _ in 0..DEPTH_MAX {
        let inner = level.iter().flat_map(|dir| {
            let paths = submodules(dir).into_iter();
            paths.map(|path| dir.join(path)).collect::<Vec<_>>()
        });
        level = inner.collect();
        found.extend_from_slice(&level);
    }
    found
}

/// Returns the working tree of a submodule, given its git directory. The settings there name it,
/// whatever `.gitmodules` says.
pub(crate) fn submodule_tree(git_dir: &Path) -> Option<PathBuf> {
    let args = ["config", "--file", "config", "-z", "--get", "core.worktree"];
    let mut command = look::own_git(git_dir);
    let output = command::run(command.args(args), READ_MAX, command::TIMEOUT).ok()?;
    let path = output.stdout.strip_suffix(b"\0")?;
    Some(git_dir.join(OsStr::from_bytes(path)))
}

/// Returns the submodules that are not checked out, but whose directory contains files. Git does not
/// look at them.
pub(super) fn stray_submodules(top: &Path) -> impl Iterator<Item = PathBuf> {
    let declared = declared_submodules(top).into_iter();
    declared.filter(move |path| {
        let path = top.join(path);
        !path.join(".git").exists() && !is_empty_dir(&path)
    })
}

/// Returns the paths in `.gitmodules`.
fn declared_submodules(top: &Path) -> BTreeSet<PathBuf> {
    if !top.join(".gitmodules").is_file() {
        return BTreeSet::new();
    }
    let args = [
        "config",
        "--file",
        ".gitmodules",
        "-z",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ];
    let mut command = look::git(top, &args);
    let Ok(output) = command::run(&mut command, READ_MAX, command::TIMEOUT) else {
        return BTreeSet::new();
    };
    let entries = output.stdout.split(|byte| *byte == 0);
    // The key, a newline and the value.
    let values = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\n').nth(1));
    values
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        // A repository is untrusted input: stay inside its working tree.
        .filter(|path| {
            path.components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        })
        .collect()
}

fn is_empty_dir(path: &Path) -> bool {
    std::fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none())
}

/// Says which work exists only in the repository at `path`; `None` if none does. `removed` is the
/// directory that will be removed together with it.
pub(super) fn unsaved_work(path: &Path, removed: &Path) -> Option<String> {
    let not_readable = || Some("not readable".into());
    let Ok(tree) = WorkingTree::find(&[], path) else {
        return not_readable();
    };
    if !tree.is_at(path) {
        // Its `.git` has been deleted: the files belong to no repository.
        return Some("uncommitted files".into());
    }
    let status = ["status", "--porcelain=v1", "--untracked-files=all"];
    if !tree
        .git(&status)
        .is_ok_and(|output| output.code == Some(0) && output.stdout.is_empty())
    {
        return Some("uncommitted files".into());
    }
    let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let common = tree.git(&common).ok().map(|output| {
        let path = command::parse_path(&output.stdout);
        std::fs::canonicalize(&path).unwrap_or(path)
    });
    let removed = std::fs::canonicalize(removed).unwrap_or_else(|_| removed.to_owned());
    let is_lost = common.is_none_or(|common| common.starts_with(removed));
    let Ok(head) = tree.head_commit() else {
        return not_readable();
    };
    let mut args = vec!["rev-list", "--count"];
    args.extend(head.as_deref());
    // Of a repository that is removed, only commits that a remote has as well remain.
    if is_lost {
        args.extend(["--all", "--not", "--remotes"]);
    } else {
        args.extend(["--not", "--glob=*"]);
    }
    let Ok(output) = tree.git(&args) else {
        return not_readable();
    };
    match String::from_utf8_lossy(&output.stdout).trim() {
        "0" => None,
        "1" => Some("1 commit".into()),
        "" => not_readable(),
        count => Some(format!("{count} commits")),
    }
}
