//! Adds, inspects and removes a loop's git worktree.

use super::command;
use super::command::{GitError, GitOutput};
use super::working_tree::{WorkingTree, WorkingTreeError};
use super::{READ_MAX, inner, untracked};
use crate::engine::format::shell_quote;
use crate::engine::plan::Worktree;
use crate::os;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for the checkout of a whole tree, including filters, hooks, and downloads for a partial
/// clone.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(1800);

/// How many branches, newest first, are searched for the changes of a worktree.
const BRANCHES_COMPARED: &str = "--count=50";

/// Environment variables that select a repository, working tree or index. A process that inherits
/// one would work in the user's own checkout, regardless of its current directory.
const LOCATION_VARIABLES: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
];

/// Pathspecs that exclude ralph's own files, which are not work that could be lost.
const EXCLUDE_RALPH_FILES: [&str; 2] = [
    ":(top,exclude,glob)**/.ralph/task/**",
    ":(top,exclude,glob)**/.ralph/guardrail_*.log",
];

/// Returns the name of an environment variable that is set and would make git ignore the worktree;
/// `None` if there is none.
pub(crate) fn redirecting_variable() -> Option<&'static str> {
    LOCATION_VARIABLES
        .into_iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The repository to add a worktree to, found from one of its directories.
#[derive(Debug)]
pub(crate) struct WorktreeSource {
    tree: WorkingTree,
    /// The path of the directory, relative to the top of the working tree.
    pub(crate) prefix: PathBuf,
    /// The common `.git` directory of all worktrees.
    pub(crate) repository: PathBuf,
    /// The ID of the HEAD commit; `None` before the first commit.
    pub(crate) head: Option<String>,
    /// The current branch; `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
}

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

impl WorktreeSource {
    /// Finds the repository that contains `dir`.
    pub(crate) fn find(dir: &Path) -> Result<Self, WorkingTreeError> {
        let tree = WorkingTree::find(&[], dir)?;
        let failed = |error: GitError| WorkingTreeError::GitFailed(error.message());
        let mut command = command::git(dir);
        command.args([
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-prefix",
        ]);
        let output = command::run(&mut command, READ_MAX, command::TIMEOUT).map_err(failed)?;
        let mut lines = output
            .stdout
            .split_inclusive(|byte| *byte == b'\n')
            .map(command::parse_path);
        let (Some(repository), Some(prefix), Some(0)) = (lines.next(), lines.next(), output.code)
        else {
            return Err(WorkingTreeError::GitFailed(
                output.error_message("rev-parse"),
            ));
        };
        let head = tree.head_commit().map_err(WorkingTreeError::GitFailed)?;
        let branch = trimmed_stdout(
            &tree
                .git(&["symbolic-ref", "--quiet", "--short", "HEAD"])
                .map_err(failed)?,
        );
        Ok(Self {
            tree,
            prefix,
            repository,
            head,
            branch,
        })
    }

    /// Returns the top directory of the working tree.
    pub(crate) fn top(&self) -> &Path {
        self.tree.top()
    }

    /// Returns the files that differ from the HEAD commit.
    pub(crate) fn changed_files(&self) -> Result<Vec<String>, String> {
        self.tree.changed_files()
    }

    /// Returns git's error message if no committer identity is configured; `None` if one is
    /// configured.
    pub(crate) fn missing_identity(&self) -> Option<String> {
        self.tree.missing_identity()
    }

    pub(crate) fn is_valid_branch_name(&self, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        let is_valid_ref = self
            .tree
            .git(&["check-ref-format", &name])
            .is_ok_and(|output| output.code == Some(0));
        is_valid_ref && !branch.starts_with('-') && branch != "HEAD"
    }

    /// Returns the ID of a branch's newest commit; `None` if the branch does not exist.
    pub(crate) fn branch_tip(&self, branch: &str) -> Option<String> {
        trimmed_stdout(
            &self
                .tree
                .git(&[
                    "rev-parse",
                    "--quiet",
                    "--verify",
                    &format!("refs/heads/{branch}^{{commit}}"),
                ])
                .ok()?,
        )
    }

    /// Returns the path of the worktree in which a branch is checked out; `None` if it is not
    /// checked out.
    pub(crate) fn checkout_of(&self, branch: &str) -> Option<PathBuf> {
        let list = self
            .tree
            .git(&["worktree", "list", "--porcelain", "-z"])
            .ok()?
            .stdout;
        let wanted = format!("branch refs/heads/{branch}");
        let mut worktree = None;
        for field in list.split(|byte| *byte == 0) {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                worktree = Some(command::parse_path(path));
            } else if field == wanted.as_bytes() {
                return worktree;
            }
        }
        None
    }

    /// Adds the worktree. Fails if `is_canceled` returns `true` before the worktree is complete. If
    /// only a hook failed after the checkout, succeeds and returns git's error as a warning; `None`
    /// otherwise.
    pub(crate) fn add_worktree(
        &self,
        plan: &Worktree,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Option<String>, String> {
        let mut command = command::git_with_hooks(self.top());
        // If this process is killed, the next one removes the unfinished worktree. Git must no
        // longer be writing to it by then.
        os::set_parent_death_signal(&mut command);
        command.args(["worktree", "add", "--quiet"]);
        if plan.new_branch {
            command
                .args(["--no-track", "-b", &plan.branch])
                .arg(&plan.path)
                .arg(&plan.base);
        } else {
            command.arg(&plan.path).arg(&plan.branch);
        }
        let output =
            command::run_cancellable(&mut command, READ_MAX, CHECKOUT_TIMEOUT, is_canceled)
                .map_err(GitError::message)?;
        if output.code == Some(0) {
            return Ok(None);
        }
        let error = output.error_message("worktree add");
        if find_tree(plan).is_ok() {
            Ok(Some(error))
        } else {
            Err(error)
        }
    }
}

/// Returns whether the worktree's directory exists and is linked to a repository.
pub(crate) fn exists(plan: &Worktree) -> bool {
    fs::symlink_metadata(plan.path.join(".git")).is_ok()
}

/// Returns an error message for a missing or broken worktree, with the command that restores it.
pub(crate) fn missing_message(plan: &Worktree) -> String {
    let [path, repository] =
        [&plan.path, &plan.repository].map(|path| shell_quote(&path.to_string_lossy()));
    let git = format!("git --git-dir {repository} worktree");
    if plan.path.exists() {
        return format!("{path} is no longer a git worktree; to repair it, run `{git} repair`");
    }
    format!(
        "the worktree {path} no longer exists; to restore it, run `{git} add -f {path} {}`",
        shell_quote(&plan.branch)
    )
}

/// Opens the worktree, and checks that git recognizes it.
fn find_tree(plan: &Worktree) -> Result<WorkingTree, String> {
    match WorkingTree::find(&[], &plan.path) {
        Ok(tree) if tree.is_at(&plan.path) => Ok(tree),
        Err(WorkingTreeError::GitFailed(why)) => Err(why),
        _ => Err(format!(
            "git does not recognize {} as a worktree",
            plan.path.display()
        )),
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
        let count = trimmed_stdout(&git_in_repository(plan, &args, command::TIMEOUT)?)
            .and_then(|count| count.parse().ok());
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
    let git =
        |args: &[&str]| trimmed_stdout(&git_in_repository(plan, args, command::TIMEOUT).ok()?);
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

/// Removes the worktree and everything in it. A worktree with submodules is removed only with
/// `force`, because the submodules' commits are stored only there.
pub(crate) fn remove(plan: &Worktree, force: bool) -> Result<(), String> {
    if !force && find_tree(plan).is_ok_and(|tree| tree.has_git_file("modules")) {
        return Err("it contains submodules, whose commits may exist nowhere else".into());
    }
    remove_with(plan, &["--force"])
}

fn remove_with(plan: &Worktree, options: &[&str]) -> Result<(), String> {
    if plan.repository.is_dir() {
        let path = plan.path.to_string_lossy();
        let args = [&["worktree", "remove"], options, &[&path]].concat();
        let output = git_in_repository(plan, &args, CHECKOUT_TIMEOUT)?;
        let is_unknown = output.stderr.contains("is not a working tree");
        if output.code != Some(0) && !is_unknown {
            return Err(output.error_message("worktree remove"));
        }
    }
    match fs::remove_dir_all(&plan.path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", plan.path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns whether the repository has a branch of this name.
pub(crate) fn has_branch(plan: &Worktree, branch: &str) -> bool {
    let name = format!("refs/heads/{branch}");
    git_in_repository(
        plan,
        &["show-ref", "--verify", "--quiet", &name],
        command::TIMEOUT,
    )
    .is_ok_and(|output| output.code == Some(0))
}

/// Returns the ID of the newest commit on the worktree's branch; `None` if the branch does not
/// exist.
fn branch_tip(plan: &Worktree) -> Option<String> {
    let name = format!("refs/heads/{}^{{commit}}", plan.branch);
    trimmed_stdout(
        &git_in_repository(
            plan,
            &["rev-parse", "--quiet", "--verify", &name],
            command::TIMEOUT,
        )
        .ok()?,
    )
}

/// Deletes the worktree's branch. Returns the ID of its last commit; `None` if the branch does not
/// exist.
pub(crate) fn delete_branch(plan: &Worktree) -> Result<Option<String>, String> {
    let Some(tip) = branch_tip(plan) else {
        return Ok(None);
    };
    let output = git_in_repository(
        plan,
        &["branch", "--quiet", "-D", "--", &plan.branch],
        command::TIMEOUT,
    )?;
    if output.code == Some(0) {
        Ok(Some(tip))
    } else {
        Err(output.error_message("branch -D"))
    }
}

/// Removes the worktree of a loop that never started, and its branch if the branch is new and has
/// no commits of its own.
pub(crate) fn roll_back(plan: &Worktree) -> Result<(), String> {
    // Git locks a worktree until it is complete, and removes a locked one only if forced twice.
    remove_with(plan, &["--force", "--force"])?;
    if plan.new_branch && branch_tip(plan).as_ref() == Some(&plan.base) {
        delete_branch(plan)?;
    }
    Ok(())
}

/// Returns whether the checked-out commit has submodules, which git does not check out in a new
/// worktree.
pub(crate) fn has_submodules(plan: &Worktree) -> bool {
    plan.path.join(".gitmodules").is_file()
}

/// Runs git on the repository that the worktree belongs to. This works even if the user's checkout
/// has moved.
fn git_in_repository(
    plan: &Worktree,
    args: &[&str],
    timeout: Duration,
) -> Result<GitOutput, String> {
    let mut command = command::git_with_hooks(&plan.repository);
    command.env("GIT_DIR", &plan.repository).args(args);
    command::run(&mut command, READ_MAX, timeout).map_err(GitError::message)
}

/// Returns the output without surrounding whitespace; `None` if it is empty or git failed.
fn trimmed_stdout(output: &GitOutput) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(text).filter(|text| output.code == Some(0) && !text.is_empty())
}
