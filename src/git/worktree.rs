//! Adds, inspects and removes a loop's git worktree.

use super::command;
use super::command::{GitError, GitOutput};
use super::working_tree::{WorkingTree, WorkingTreeError};
use super::{READ_MAX, locks, look, worktree_files};
use crate::engine::format::shell_quote;
use crate::engine::plan::Worktree;
use crate::os;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Timeout for the checkout of a whole tree, including filters, hooks, and downloads for a partial
/// clone.
const CHECKOUT_TIMEOUT: Duration = Duration::from_secs(1800);

/// Environment variables that select a repository, working tree or index. A process that inherits
/// one would work in the user's own checkout, regardless of its current directory.
const LOCATION_VARIABLES: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
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

impl WorktreeSource {
    /// Finds the repository that contains `dir`.
    pub(crate) fn find(dir: &Path) -> Result<Self, WorkingTreeError> {
        let tree = WorkingTree::find(&[], dir)?;
        let failed = |error: GitError| WorkingTreeError::GitFailed(error.message());
        let args = [
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-prefix",
        ];
        let mut command = look::git(dir, &args);
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
        let run = |dir: &Path, args: &[&str]| {
            let mut command = command::git_with_hooks(dir);
            // If this process is killed, the next one removes the unfinished worktree. Git must no
            // longer be writing to it by then.
            os::set_parent_death_signal(&mut command);
            command.args(args);
            let output =
                command::run_cancellable(&mut command, READ_MAX, CHECKOUT_TIMEOUT, is_canceled)
                    .map_err(GitError::message)?;
            if output.code == Some(0) {
                Ok(())
            } else {
                Err(output.error_message(args.first().unwrap_or(&"")))
            }
        };
        if let Some(reason) = worktree_files::lock_reason(plan) {
            return Err(locked_message(plan, &reason));
        }
        if let Some(place) = self
            .checkout_of(&plan.branch)
            .filter(|place| place.exists())
        {
            let place = place.display();
            return Err(format!("{} is checked out in {place}", plan.branch));
        }
        if plan.new_branch {
            run(
                self.top(),
                &["branch", "--no-track", &plan.branch, &plan.base],
            )?;
        }
        // Only git can write the references of this format.
        let populated = if plan.repository.join("reftable").is_dir() {
            let path = plan.path.to_string_lossy();
            run(
                self.top(),
                &["worktree", "add", "--quiet", &path, &plan.branch],
            )
        } else {
            worktree_files::register(plan, &self.inherited_files())
                .map_err(|error| format!("cannot register it in the repository: {error}"))?;
            // Not `reset` or `checkout`: these would lock the packed references of the repository,
            // and the lock would stay there if they were killed.
            let checkout = [
                "read-tree",
                "--reset",
                "-u",
                "--no-recurse-submodules",
                "HEAD",
            ];
            run(&plan.path, &checkout)?;
            // Git reads a file that is as new as the index again, and without its filter it would
            // look changed. Writing the index again makes it newer than every file.
            run(
                &plan.path,
                &["update-index", "-q", "--refresh", "--force-write-index"],
            )?;
            let none = "0".repeat(plan.base.len());
            let hook = ["hook", "run", "--ignore-missing", "post-checkout", "--"];
            run(&plan.path, &[&hook[..], &[&none, &plan.base, "1"]].concat())
        };
        match populated {
            Err(error) if find_tree(plan).is_ok() => Ok(Some(error)),
            result => result.map(|()| None),
        }
    }

    /// Returns the files that a new worktree gets from the one it is created in, as with `git
    /// worktree add`: the patterns of a sparse checkout, and settings for one worktree.
    fn inherited_files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let is_set = |key: &str| {
            let output = self.tree.git(&["config", "--type=bool", key]).ok();
            output.and_then(|output| trimmed_stdout(&output)).as_deref() == Some("true")
        };
        let path = |name: &str| {
            let output = self.tree.git(&["rev-parse", "--git-path", name]).ok()?;
            Some(self.top().join(command::parse_path(&output.stdout)))
        };
        let mut files = Vec::new();
        let patterns = "info/sparse-checkout";
        if is_set("core.sparseCheckout")
            && let Some(text) = path(patterns).and_then(|path| fs::read(path).ok())
        {
            files.push((patterns, text));
        }
        let settings = "config.worktree";
        if is_set("extensions.worktreeConfig")
            && let Some(text) = path(settings).and_then(|path| fs::read(path).ok())
        {
            // These describe the other worktree, and are valid in no other.
            let is_own = |line: &[u8]| {
                let key = line.split(|byte| *byte == b'=').next().unwrap_or_default();
                let key = key.trim_ascii().to_ascii_lowercase();
                key == b"bare" || key == b"worktree"
            };
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            let lines = lines.filter(|line| !is_own(line));
            files.push((settings, lines.flatten().copied().collect()));
        }
        files
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
pub(super) fn find_tree(plan: &Worktree) -> Result<WorkingTree, String> {
    match WorkingTree::find(&[], &plan.path) {
        // Ralph has checked it out with its filters, at the user's request.
        Ok(tree) if tree.is_at(&plan.path) => Ok(tree.with_filters()),
        Err(WorkingTreeError::GitFailed(why)) => Err(why),
        _ => Err(format!(
            "git does not recognize {} as a worktree",
            plan.path.display()
        )),
    }
}

/// Removes the worktree and everything in it. A worktree with submodules is removed only with
/// `force`, because the submodules' commits are stored only there.
pub(crate) fn remove(plan: &Worktree, force: bool) -> Result<(), String> {
    if !force && find_tree(plan).is_ok_and(|tree| tree.has_git_file("modules")) {
        return Err("it contains submodules, whose commits may exist nowhere else".into());
    }
    if let Some(reason) = worktree_files::lock_reason(plan) {
        return Err(locked_message(plan, &reason));
    }
    worktree_files::remove(plan, None).map_err(|error| error.to_string())
}

fn locked_message(plan: &Worktree, reason: &str) -> String {
    let [path, repository] =
        [&plan.path, &plan.repository].map(|path| shell_quote(&path.to_string_lossy()));
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(" ({reason})")
    };
    format!(
        "it is locked{reason}; to unlock it, run `git --git-dir {repository} worktree unlock {path}`"
    )
}

/// Returns whether the repository has a branch of this name.
pub(crate) fn has_branch(plan: &Worktree, branch: &str) -> bool {
    let name = format!("refs/heads/{branch}");
    look_at_repository(plan, &["show-ref", "--verify", "--quiet", &name])
        .is_ok_and(|output| output.code == Some(0))
}

/// Returns the ID of the newest commit on the worktree's branch; `None` if the branch does not
/// exist.
pub(super) fn branch_tip(plan: &Worktree) -> Option<String> {
    let name = format!("refs/heads/{}^{{commit}}", plan.branch);
    trimmed_stdout(&look_at_repository(plan, &["rev-parse", "--quiet", "--verify", &name]).ok()?)
}

/// Deletes the worktree's branch. Returns the ID of its last commit; `None` if the branch does not
/// exist.
pub(crate) fn delete_branch(plan: &Worktree) -> Result<Option<String>, String> {
    // Also if the branch is gone: git deletes it before it releases the lock.
    remove_own_locks(plan);
    let Some(tip) = branch_tip(plan) else {
        return Ok(None);
    };
    let name = format!("refs/heads/{}", plan.branch);
    // Git rewrites the repository's settings when it deletes a branch, even if they do not mention
    // it. If it were killed, the lock on the settings would stay there.
    let section = format!("branch.{}.", plan.branch);
    let settings = look_at_repository(plan, &["config", "--local", "--name-only", "--list"])?;
    let has_settings = String::from_utf8_lossy(&settings.stdout)
        .lines()
        .any(|key| key.starts_with(&section));
    let args = if has_settings {
        ["branch", "-D", "--", &plan.branch]
    } else {
        ["update-ref", "-d", &name, &tip]
    };
    let mut command = command::git_with_hooks(&plan.repository);
    command.env("GIT_DIR", &plan.repository).args(args);
    let output =
        command::run(&mut command, READ_MAX, command::TIMEOUT).map_err(GitError::message)?;
    if output.code == Some(0) {
        return Ok(Some(tip));
    }
    Err(locks::explain(
        output.error_message(args[0]),
        &left_locks(plan),
    ))
}

/// Removes locks in the worktree, and on its branch, that killed git processes left. Returns those
/// that were removed.
pub(crate) fn remove_own_locks(plan: &Worktree) -> Vec<PathBuf> {
    locks::remove_left(own_locks(plan), &[&plan.path, &plan.repository])
}

/// Returns the lock files of the worktree and its branch.
fn own_locks(plan: &Worktree) -> Vec<PathBuf> {
    let mut found = worktree_files::lock_files(plan);
    let branch = format!("refs/heads/{}.lock", plan.branch);
    found.push(plan.repository.join(branch));
    found.retain(|path| path.exists());
    found
}

/// Says how to remove locks that killed git processes left in the repository; `None` if there are
/// none.
pub(crate) fn lock_advice(plan: &Worktree) -> Option<String> {
    locks::advice(&left_locks(plan))
}

/// Returns locks of the repository that killed git processes left, and that keep a branch from
/// being created or deleted.
fn left_locks(plan: &Worktree) -> Vec<PathBuf> {
    let names = ["packed-refs.lock", "config.lock"];
    let mut found: Vec<PathBuf> = names.map(|name| plan.repository.join(name)).into();
    let dirs = [&plan.path, &plan.from, &plan.repository].map(PathBuf::as_path);
    found.retain(|path| locks::is_left(path, &dirs));
    found
}

/// Removes the worktree of a loop that never started, and its branch if the branch is new and has
/// no commits of its own. `begun` is when its creation began.
pub(crate) fn roll_back(plan: &Worktree, begun: Option<SystemTime>) -> Result<(), String> {
    worktree_files::remove(plan, begun).map_err(|error| error.to_string())?;
    remove_own_locks(plan);
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

/// Looks at the repository that the worktree belongs to. This works even if the user's checkout has
/// moved.
pub(super) fn look_at_repository(plan: &Worktree, args: &[&str]) -> Result<GitOutput, String> {
    let mut command = look::git(&plan.repository, args);
    command.env("GIT_DIR", &plan.repository);
    command::run(&mut command, READ_MAX, command::TIMEOUT).map_err(GitError::message)
}

/// Returns the output without surrounding whitespace; `None` if it is empty or git failed.
pub(super) fn trimmed_stdout(output: &GitOutput) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(text).filter(|text| output.code == Some(0) && !text.is_empty())
}
