//! Runs git: diffs since a loop started, commits, worktrees, and the repository's status.
//!
//! A diff does not change the user's repository: it works on a copy of the index and writes objects
//! to ralph's own scratch directory, so the index, HEAD, refs, working tree, stash and object
//! database stay the same. Commands that only look run no program that the repository's settings
//! name: `look` builds them.
//!
//! Only `worktree`, the SCM tasks of `working_tree` and `checkpoint` write to the repository.
//! Checkpoints write objects, and refs below `refs/ralph`.

mod bounded_text;
pub(crate) mod checkpoint;
mod command;
mod commit_content;
mod content;
mod diff;
pub(crate) mod exclude;
pub(crate) mod head;
pub(crate) mod ignored;
mod inner;
pub(crate) mod locks;
mod look;
mod overlay;
pub(crate) mod project;
#[cfg(feature = "cli")]
pub(crate) mod recorded;
#[cfg(feature = "cli")]
mod rewind;
mod shadow;
mod skipped;
mod status;
#[cfg(feature = "cli")]
pub(crate) mod summary;
#[cfg(test)]
mod tests;
#[cfg(feature = "cli")]
pub(crate) mod transfer;
pub(crate) mod unsaved_work;
mod untracked;
mod working_tree;
pub(crate) mod worktree;
mod worktree_files;

pub(crate) use content::{MeasuredContent, TreeContent};
pub(crate) use diff::DiffBase;
pub(crate) use inner::path_name;
pub(crate) use inner::{all_submodules, submodule_tree};
#[cfg(feature = "cli")]
pub(crate) use project::repository;
pub(crate) use project::{checkout_top, git_dirs_of, project};
#[cfg(feature = "cli")]
pub(crate) use status::is_tracked;
pub(crate) use status::{TreeStatus, is_ignored, moved_working_tree};
pub(crate) use working_tree::{WorkingTree, WorkingTreeError};

/// Maximum size of the output that is read from one git command, in bytes.
const READ_MAX: usize = 8 << 20;

/// Maximum number of paths in a summary of changed files.
const PATHS_SHOWN: usize = 20;
