//! Lets an agent commit, but not prepare commands for the user's next call of git: hooks and
//! settings of the repository are read-only.

use super::layout::{Access, Layout};
use crate::git;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a git directory that name programs, or that lead to other git directories.
const GUARDED: [&str; 5] = ["config", "config.worktree", "hooks", "gitdir", "commondir"];
/// The depth to which the git directories of submodules are searched.
const MODULES_DEPTH: u32 = 4;

/// Makes the git directories of a workspace writable, except what runs programs.
pub(super) fn add(layout: &mut Layout, workspace: &Path) {
    let dirs = add_writable(layout, workspace);
    let mut inner = Vec::new();
    if let Some(common) = dirs.first() {
        // The worktrees of other loops are invisible, so `git worktree prune` would forget them.
        layout.add(&common.join("worktrees"), Access::Read);
        inner = modules(&common.join("modules"), MODULES_DEPTH);
        for module in &inner {
            guard(layout, module);
        }
    }
    for dir in &dirs {
        layout.add(dir, Access::Write);
        guard(layout, dir);
    }
    // In a linked worktree this is a file. Replaced, it would lead to a repository of the agent's.
    if let Some(top) = git::checkout_top(workspace) {
        let entry = top.join(".git");
        if entry.is_file() {
            layout.add(&entry, Access::Read);
        }
    }
    // The same goes for submodules. The directories above are mounts of their own, which the agent
    // cannot rename.
    for entry in inner_git_entries(workspace, &inner) {
        let dirs = entry.ancestors().skip(1);
        for dir in dirs.take_while(|dir| *dir != workspace && dir.starts_with(workspace)) {
            layout.add(dir, Access::Write);
        }
        if entry.is_dir() {
            guard(layout, &entry);
        } else {
            layout.add(&entry, Access::Read);
        }
    }
}

/// Makes the git directories of a workspace writable as a whole. Returns them, the shared one first.
pub(super) fn add_writable(layout: &mut Layout, workspace: &Path) -> Vec<PathBuf> {
    let workspace = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    let dirs = git::git_dirs_of(&workspace);
    for dir in &dirs {
        layout.add(dir, Access::Write);
    }
    dirs
}

/// Returns the directories of hooks of the workspace's repository and of its submodules, whether or
/// not they exist.
pub(super) fn hooks_dirs(workspace: &Path) -> Vec<PathBuf> {
    let workspace = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    let Some(common) = git::git_dirs_of(&workspace).into_iter().next() else {
        return Vec::new();
    };
    let modules = modules(&common.join("modules"), MODULES_DEPTH);
    let nested = inner_git_entries(&workspace, &modules);
    let nested = nested.into_iter().filter(|entry| entry.is_dir());
    let all = [common].into_iter().chain(modules).chain(nested);
    all.map(|dir| dir.join("hooks")).collect()
}

/// Returns the entry `.git` of every submodule that is checked out: a file, or a directory. The agent
/// can change `.gitmodules`, but not the settings in the git directories of submodules.
fn inner_git_entries(workspace: &Path, modules: &[PathBuf]) -> Vec<PathBuf> {
    let top = git::checkout_top(workspace);
    let declared = top.iter().flat_map(|top| git::all_submodules(top));
    let known = modules
        .iter()
        .filter_map(|module| git::submodule_tree(module));
    let trees = declared.chain(known);
    trees.map(|dir| dir.join(".git")).collect()
}

fn guard(layout: &mut Layout, git_dir: &Path) {
    for name in GUARDED {
        layout.add(&git_dir.join(name), Access::Read);
    }
}

/// Returns the git directories of submodules below `dir`.
fn modules(dir: &Path, depth: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    dirs.flat_map(|path| {
        if path.join("HEAD").is_file() {
            let inner = modules(&path.join("modules"), depth.saturating_sub(1));
            return [vec![path], inner].concat();
        }
        match depth {
            0 => Vec::new(),
            _ => modules(&path, depth - 1),
        }
    })
    .collect()
}
