//! Finds work in a loop's worktree that exists nowhere else, before the worktree is removed.

use super::command::GitError;
use super::worktree::{branch_tip, exists, find_tree, look_at_repository, trimmed_stdout};
use super::{inner, untracked};
use crate::engine::plan::Worktree;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

/// Pathspecs that exclude ralph's own files, which are not work that could be lost.
const EXCLUDE_RALPH_FILES: [&str; 2] = [
    ":(top,exclude,glob)**/.ralph/task/**",
    ":(top,exclude,glob)**/.ralph/guardrail_*.log",
];

/// How many branches, newest first, are searched for the changes of a worktree.
const BRANCHES_COMPARED: &str = "--count=50";

/// Work in a loop's worktree that exists nowhere else.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct UnsavedWork {
    /// Paths of uncommitted files, quoted as git quotes them.
    pub(crate) files: Vec<String>,
    /// Number of commits on the worktree's branch, or at its HEAD, that no other branch or tag
    /// contains, and whose changes no other branch contains either.
    pub(crate) commits: u32,
    /// Nested repositories with work that exists only there, each with its path and what it has:
    /// `app (2 commits)`.
    pub(crate) nested: Vec<String>,
}

impl UnsavedWork {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.commits == 0 && self.nested.is_empty()
    }
}

/// Returns the work that would be lost if the worktree were removed, together with its branch if
/// ralph created the branch.
pub(crate) fn find_unsaved_work(plan: &Worktree) -> Result<UnsavedWork, String> {
    let mut unsaved = UnsavedWork::default();
    let mut tips = Vec::new();
    if exists(plan) {
        let tree = find_tree(plan)?;
        // Not `changed_files`, which leaves out changes inside a submodule and settings in
        // `.ralph`. They would be lost as well.
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--",
            ":/",
        ];
        let args: Vec<&str> = args.into_iter().chain(EXCLUDE_RALPH_FILES).collect();
        let output = tree.git(&args).map_err(GitError::message)?;
        if output.code != Some(0) && !output.truncated {
            return Err(output.error_message("status"));
        }
        let entries = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|entry| entry.len() > 3);
        let mut nested = tree.recorded_nested(&plan.base)?;
        for path in entries.map(|entry| &entry[3..]) {
            match path {
                // Only a nested repository ends with a slash.
                [path @ .., b'/'] => nested.push(path.to_vec()),
                path => unsaved.files.push(untracked::quote(path)),
            }
        }
        let stray = inner::stray_submodules(&plan.path);
        unsaved
            .files
            .extend(stray.map(|path| untracked::quote(path.as_os_str().as_bytes())));
        nested.sort_unstable();
        nested.dedup();
        for path in nested {
            let name = untracked::quote(&path);
            unsaved.files.retain(|file| *file != name);
            let path = plan.path.join(OsStr::from_bytes(&path));
            let work = inner::unsaved_work(&path, &plan.path);
            unsaved
                .nested
                .extend(work.map(|work| format!("{name} ({work})")));
        }
        tips.extend(tree.head_commit()?);
    } else if let Ok(entries) = fs::read_dir(&plan.path) {
        // Without git, every file may be unsaved work.
        unsaved.files = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
    }
    if !plan.repository.is_dir() {
        return Ok(unsaved);
    }
    let branch = format!("refs/heads/{}", plan.branch);
    if plan.new_branch && branch_tip(plan).is_some() {
        tips.push(branch.clone());
    }
    if tips.is_empty() {
        return Ok(unsaved);
    }
    for tip in tips {
        let mut args = vec!["rev-list", "--count", &tip, "--not"];
        let exclude = format!("--exclude={branch}");
        args.extend(plan.new_branch.then_some(&exclude[..]));
        // Not `--all`: it includes the HEAD of this worktree.
        args.push("--glob=*");
        let count =
            trimmed_stdout(&look_at_repository(plan, &args)?).and_then(|count| count.parse().ok());
        let count: u32 = count.ok_or_else(|| "git rev-list printed no count".to_owned())?;
        if count > 0 && !has_equal_changes(plan, &tip) {
            unsaved.commits = unsaved.commits.max(count);
        }
    }
    Ok(unsaved)
}

/// Returns whether another branch contains the changes up to `tip` although it does not contain the
/// commits: after a squash merge, a rebase or cherry-picks.
fn has_equal_changes(plan: &Worktree, tip: &str) -> bool {
    let git = |args: &[&str]| trimmed_stdout(&look_at_repository(plan, args).ok()?);
    let list = [
        "for-each-ref",
        "--sort=-committerdate",
        "--format=%(refname)",
        BRANCHES_COMPARED,
        "refs/heads",
        "refs/remotes",
    ];
    let own = format!("refs/heads/{}", plan.branch);
    let branches = git(&list).unwrap_or_default();
    let mut branches = branches
        .lines()
        .filter(|branch| *branch != own || !plan.new_branch);
    branches.any(|branch| {
        let range = format!("{branch}...{tip}");
        let picked = [
            "rev-list",
            "--count",
            "--cherry-pick",
            "--right-only",
            &range,
        ];
        if git(&picked).as_deref() == Some("0") {
            return true;
        }
        // If merging changes nothing, the branch has all changes. This proves nothing if the
        // commits cancel each other out.
        let tree_of =
            |revision: &str| git(&["rev-parse", "--verify", &format!("{revision}^{{tree}}")]);
        let base = git(&["merge-base", branch, tip]).and_then(|base| tree_of(&base));
        base.is_some()
            && base != tree_of(tip)
            && git(&["merge-tree", "--write-tree", branch, tip]) == tree_of(branch)
    })
}
