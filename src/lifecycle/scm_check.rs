//! Checks, before a loop starts, whether its SCM tasks can work.

use super::error::CommandError;
use crate::config::PlanDraft;
use crate::config::keys::nearest;
use crate::engine::format::plural;
use crate::engine::scm::CommitTask;
use crate::git::{TreeStatus, WorkingTree, WorkingTreeError, locks};
use std::path::Path;

/// Returns an error if a task cannot work, else warnings about tasks that may fail.
pub(crate) fn check_scm_tasks(draft: &PlanDraft) -> Result<Vec<String>, CommandError> {
    let (plan, name) = (draft.plan(), draft.config.display_name("scm"));
    let tasks = &plan.scm.tasks;
    let Some(first) = tasks.first() else {
        return Ok(Vec::new());
    };
    let requested = format!("{name} {first}");
    let command = plan.scm.command.join(" ");
    let error =
        |why: WorkingTreeError| working_tree_error(&requested, &why, &command, &plan.workspace);
    let tree = WorkingTree::find(&plan.scm.command, &plan.workspace).map_err(error)?;
    check_commands(&tree, name.as_str(), tasks)?;
    let status = tree
        .status()
        .map_err(|why| error(WorkingTreeError::GitFailed(why)))?;
    let mut warnings = Vec::new();
    if plan.proof.checks.is_empty() {
        warnings.push(format!(
            "{name} {} never runs: SCM tasks need green checks, and this loop has none; add --check CMD",
            tasks.join(", ")
        ));
    }
    let commits = tasks.iter().any(|task| CommitTask::parse(task).is_some());
    if let (true, Some(why)) = (commits, &status.missing_identity) {
        return Err(CommandError::usage(
            format!("git has no committer identity: {why}"),
            "run `git config user.name \"…\" && git config user.email \"…\"` to set one",
        ));
    }
    let pushes = |task: &String| task.split_whitespace().next() == Some("push");
    let plain_push = tasks.iter().any(|task| task == "push");
    warnings.extend(status_warnings(
        &status,
        commits,
        tasks.iter().any(pushes),
        plain_push,
    ));
    Ok(warnings)
}

/// Returns an error if a task does not begin with a command of git.
fn check_commands(tree: &WorkingTree, name: &str, tasks: &[String]) -> Result<(), CommandError> {
    let first = |task: &String| shlex::split(task)?.into_iter().next();
    // Options for git itself may precede the command.
    let mut words = tasks.iter().filter_map(first);
    let Some(known) = words
        .any(|word| !word.starts_with('-'))
        .then(|| tree.command_names())
        .flatten()
    else {
        return Ok(());
    };
    for word in tasks.iter().filter_map(first) {
        if word.starts_with('-') || known.contains(&word) {
            continue;
        }
        let hint = match nearest(&word, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "name a git command, such as commit or push".into(),
        };
        return Err(CommandError::usage(
            format!("{name}: git has no command {word:?}"),
            hint,
        ));
    }
    Ok(())
}

fn status_warnings(
    status: &TreeStatus,
    commits: bool,
    pushes: bool,
    plain_push: bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if commits && !status.changed_files.is_empty() {
        warnings.push(format!(
            "the loop's first commit will include your uncommitted changes: {}",
            file_list(&status.changed_files)
        ));
    }
    if let Some(operation) = status.operation_in_progress {
        warnings.push(format!(
            "{operation} is in progress in this repository: a commit may conclude it, or fail"
        ));
    }
    warnings.extend(locks::advice(&status.left_locks));
    if pushes && !status.has_remote {
        warnings.push("this repository has no remote: git push will fail".into());
    } else if pushes && status.detached {
        warnings.push("HEAD is detached: git push will fail unless you name a destination".into());
    } else if plain_push && !status.has_upstream {
        warnings.push(
            "this branch has no upstream: git push will fail; \
             use --scm \"push origin HEAD\", or run `git push -u` once"
                .into(),
        );
    }
    warnings
}

/// Formats a list of files as `5 files (a, b, c, …)`.
pub(crate) fn file_list(files: &[String]) -> String {
    const MAX_NAMES: usize = 3;
    let names = files[..MAX_NAMES.min(files.len())].join(", ");
    let more = if files.len() > MAX_NAMES { ", …" } else { "" };
    format!("{} ({names}{more})", plural(files.len() as u64, "file"))
}

/// Returns the error for a feature that needs a git working tree in a directory without one.
/// `requested` is the name of the feature's flag or setting.
pub(super) fn working_tree_error(
    requested: &str,
    why: &WorkingTreeError,
    git: &str,
    dir: &Path,
) -> CommandError {
    let dir = dir.display();
    match why {
        WorkingTreeError::GitNotInstalled => CommandError::usage(
            format!("{requested} needs git, but the program {git} was not found"),
            format!("install {git}, or check your PATH"),
        ),
        WorkingTreeError::NotARepository => CommandError::usage(
            format!("{requested} needs a git repository, but {dir} is not in one"),
            format!("run `git init`, or leave out {requested}"),
        ),
        WorkingTreeError::Bare => CommandError::usage(
            format!("{requested} needs a working tree, but {dir} is in a bare repository"),
            "clone the repository and start the loop in the clone",
        ),
        WorkingTreeError::GitFailed(why) => CommandError::usage(
            format!("{requested} cannot work in {dir}: {why}"),
            "run `git status` for details",
        ),
    }
}
