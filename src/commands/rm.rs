//! `ralph rm`: removes loops that are not running, and never work that exists nowhere else unless
//! forced.

use super::open_loop::open_as_operator;
use crate::cli::RmArgs;
use crate::engine::format::{bytes, plural, shell_quote};
use crate::engine::plan::Worktree;
use crate::engine::{ExitCode, Liveness, State, Status};
use crate::git::checkpoint::Checkpoints;
use crate::git::unsaved_work::{UnsavedWork, find_unsaved_work};
use crate::git::worktree;
use crate::lifecycle::enclosing::{EnclosingLoop, check_operator};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::sweep_damaged_loop;
use crate::lifecycle::locks::lock_for_removal;
use crate::lifecycle::workspace_files::WorkspaceFiles;
use crate::lifecycle::worktree_request::{reject_git_redirection, remove_incomplete_loops};
use crate::os::disk;
use crate::sandbox::hooks;
use crate::store::children::{RunningLoops, loop_names};
use crate::store::{LoopDir, LoopLock, LoopView, StateDir, StoreError, cache};
use crate::ui::print::{print_message, warn, warn_all};
use std::path::Path;

/// An error lists at most this many files.
const MAX_SHOWN: usize = 3;

pub(crate) fn rm(args: &RmArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    if args.ended
        && !args.dry_run
        && let Some(inside) = EnclosingLoop::find(&state_dir)
    {
        return Err(inside.refuse("ralph rm --ended"));
    }
    let mut incomplete = Vec::new();
    if !args.dry_run {
        state_dir.remove_discarded();
        incomplete = remove_incomplete_loops(&state_dir);
    }
    if args.ended {
        return rm_ended(&state_dir, args);
    }
    let mut names = args.names.clone();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !incomplete.contains(name));
    let running = state_dir.running_loops();
    // Check all loops before removing the first.
    let mut loops = Vec::new();
    for name in &names {
        loops.push(RemovableLoop::find(&state_dir, name, args, &running)?);
    }
    let mut files = workspace_files(&state_dir, args);
    for name in incomplete.iter().filter(|name| args.names.contains(name)) {
        print_message(&format!(
            "removed ralph loop {name}, which had not started\n"
        ));
    }
    for removable in loops {
        removable.remove(args, files.as_mut())?;
    }
    Ok(ExitCode::Success)
}

/// Removes every loop that has ended, including archived ones. Skips a loop that cannot be removed,
/// with a warning.
fn rm_ended(state_dir: &StateDir, args: &RmArgs) -> Result<ExitCode, CommandError> {
    let (mut count, mut freed) = (0, 0);
    let mut files = workspace_files(state_dir, args);
    // Once for all of them. A loop that has ended gets no new children.
    let running = state_dir.running_loops();
    let min_age_ms = args
        .older_than
        .map_or(0, |age| i64::try_from(age.0).unwrap_or(i64::MAX));
    let ended_before = jiff::Timestamp::now()
        .as_millisecond()
        .saturating_sub(min_age_ms);
    let loops = state_dir
        .loop_names()?
        .into_iter()
        .map(|name| state_dir.loop_dir(&name));
    for dir in loops.chain(state_dir.archived_loops()) {
        match cache::read(&dir) {
            Ok(LoopView { state, .. }) => {
                let status = state.status(Liveness::Idle);
                let needs_person = matches!(status, Status::Blocked | Status::Waiting);
                if state.outcome().is_none() || needs_person || state.wall_ms > ended_before {
                    continue;
                }
            }
            Err(error) if error.is_damaged() && args.force => {}
            Err(error) => {
                let hint = error.hint().map(|hint| format!("; {hint}"));
                warn(format!("not removed: {error}{}", hint.unwrap_or_default()));
                continue;
            }
        }
        let removable = RemovableLoop::check(state_dir, dir, args, &running);
        match removable.and_then(|removable| removable.remove(args, files.as_mut())) {
            Ok(bytes) => (count, freed) = (count + 1, freed + bytes),
            Err(error) => warn(format!("not removed: {}", error.message())),
        }
    }
    let [removed, freed_text] = if args.dry_run {
        ["would be removed", "would be freed"]
    } else {
        ["removed", "freed"]
    };
    print_message(&format!(
        "{} {removed}, {} {freed_text}\n",
        plural(count, "loop"),
        bytes(freed)
    ));
    Ok(ExitCode::Success)
}

/// Returns the files that may be removed from workspaces; `None` if all are kept.
fn workspace_files(state_dir: &StateDir, args: &RmArgs) -> Option<WorkspaceFiles> {
    (!args.keep_files).then(|| WorkspaceFiles::scan(state_dir))
}

/// A loop that can be removed. The loop's lock is held until this value is dropped.
struct RemovableLoop {
    state_dir: StateDir,
    dir: LoopDir,
    /// `None` if the journal is damaged.
    state: Option<State>,
    _lock: LoopLock,
}

impl RemovableLoop {
    fn find(
        state_dir: &StateDir,
        name: &str,
        args: &RmArgs,
        running: &RunningLoops,
    ) -> Result<Self, CommandError> {
        let dir = state_dir.find_loop(name)?;
        if cache::read(&dir).is_err_and(|error| error.is_damaged()) {
            check_operator(state_dir, &dir)?;
            return Self::check(state_dir, dir, args, running);
        }
        if args.force && !args.worktree {
            return Err(CommandError::usage(
                format!("--force does not apply to {name:?}: its journal is not damaged"),
                format!(
                    "`ralph rm {name}` removes the loop, `ralph rm {name} --worktree --force` also a worktree with unsaved work"
                ),
            ));
        }
        let handle = open_as_operator(name)?;
        if let status @ (Status::Starting | Status::Running) = handle.status() {
            return Err(CommandError::usage(
                format!(
                    "cannot remove the loop {name:?} while it is {}",
                    status.as_str()
                ),
                format!("run `ralph stop {name}` first"),
            ));
        }
        Self::check(&handle.state_dir, handle.dir, args, running)
    }

    fn check(
        state_dir: &StateDir,
        dir: LoopDir,
        args: &RmArgs,
        running: &RunningLoops,
    ) -> Result<Self, CommandError> {
        let lock = lock_for_removal(&dir)?;
        // Read the loop again: now that the lock is held, no other process can change it.
        let LoopView { header, state, .. } = match cache::read(&dir) {
            Err(error) if error.is_damaged() => {
                check_damaged(dir.name(), error, args)?;
                warn_all(sweep_damaged_loop(state_dir, &dir));
                return Ok(Self {
                    state_dir: state_dir.clone(),
                    dir,
                    state: None,
                    _lock: lock,
                });
            }
            view => view?,
        };
        let name = dir.name();
        // Skip an archived loop: the children may belong to the loop that has the name now.
        if state_dir.loop_dir(name) == dir {
            let mut children = loop_names(&running.children_of(name, header.created_ms));
            // Child loops that are removed too are checked separately, and this process may already
            // hold their locks.
            children.retain(|child| !args.names.contains(child));
            if !children.is_empty() {
                let [all, stop] = [children.join(", "), children.join("` and `ralph stop ")];
                return Err(CommandError::usage(
                    format!("cannot remove {name:?}: its child loops are still running: {all}"),
                    format!(
                        "run `ralph stop {stop}` first, or `ralph stop {name}` if it has not ended"
                    ),
                ));
            }
        }
        check_worktree(dir.name(), &state, args)?;
        Ok(Self {
            state_dir: state_dir.clone(),
            dir,
            state: Some(state),
            _lock: lock,
        })
    }

    /// Returns the loop's worktree; `None` if it has none, or the journal is damaged.
    fn worktree(&self) -> Option<&Worktree> {
        self.state.as_ref()?.plan.worktree.as_ref()
    }

    /// Removes the loop and returns the number of bytes that were freed.
    fn remove(
        self,
        args: &RmArgs,
        files: Option<&mut WorkspaceFiles>,
    ) -> Result<u64, CommandError> {
        if args.dry_run {
            return Ok(self.preview(args));
        }
        let name = self.dir.name().to_owned();
        let mut removed = Vec::new();
        let mut freed = 0;
        if let Some(loop_worktree) = self.worktree().filter(|_| args.worktree) {
            freed += disk::usage(&loop_worktree.path);
            worktree::remove(loop_worktree, args.force).map_err(|why| {
                CommandError::usage(
                    format!("cannot remove the worktree of {name:?}: {why}"),
                    format!(
                        "look at {}, or run `ralph rm {name} --worktree --force` to remove it anyway",
                        loop_worktree.path.display()
                    ),
                )
            })?;
            removed.push(format!("worktree {}", loop_worktree.path.display()));
            removed.extend(remove_branch(loop_worktree));
            let head = |state: &State| state.scm.elsewhere.head.clone();
            if let Some(branch) = self
                .state
                .as_ref()
                .and_then(head)
                .and_then(|head| head.branch)
                && worktree::has_branch(loop_worktree, &branch)
            {
                print_message(&format!(
                    "kept the branch {branch}, to which the agent had switched\n"
                ));
            }
        } else if let Some(loop_worktree) = self
            .worktree()
            .filter(|loop_worktree| loop_worktree.path.exists())
        {
            let path = shell_quote(&loop_worktree.path.to_string_lossy());
            print_message(&format!(
                "kept the worktree {path} on {}; run `git worktree remove {path}` to remove it\n",
                loop_worktree.branch
            ));
        }
        freed += files.map_or(0, |files| files.remove(&self.dir));
        if self.state.is_none() {
            warn(format!(
                "the journal of {name:?} was damaged: its history is lost"
            ));
            let possible_worktree = self.state_dir.worktree_path(&name);
            if possible_worktree.exists() {
                let path = shell_quote(&possible_worktree.to_string_lossy());
                print_message(&format!(
                    "kept the worktree {path}; `git worktree remove {path}` removes it\n"
                ));
            }
        }
        if let Some(checkpoints) = Checkpoints::find(&self.dir.git_scratch())
            && let Err(why) = checkpoints.delete()
        {
            warn(format!("the checkpoints of {name:?} were kept: {why}"));
        }
        hooks::remove_created(&self.dir.created_hooks());
        freed += disk::usage(self.dir.path());
        // A single rename, so that a crash leaves no half-removed loop under its name.
        let path = self.state_dir.discard(&self.dir)?;
        std::fs::remove_dir_all(&path).map_err(|error| {
            CommandError::broken(format!("cannot remove {}: {error}", path.display()))
        })?;
        let with = if removed.is_empty() {
            String::new()
        } else {
            format!(" with its {}", removed.join(" and its "))
        };
        print_message(&format!(
            "removed ralph loop {name}{with}: {} freed\n",
            bytes(freed)
        ));
        Ok(freed)
    }

    /// Prints what [`Self::remove`] would remove, and returns the number of bytes that it would free
    /// outside the workspace.
    fn preview(&self, args: &RmArgs) -> u64 {
        let name = self.dir.name();
        let mut size = disk::usage(self.dir.path());
        let mut with = String::new();
        if let Some(loop_worktree) = self.worktree().filter(|_| args.worktree) {
            size += disk::usage(&loop_worktree.path);
            let branch = loop_worktree.new_branch.then_some(&loop_worktree.branch);
            let branch = branch.map(|branch| format!(" and its branch {branch}"));
            with = format!(
                " with its worktree {}{}",
                loop_worktree.path.display(),
                branch.unwrap_or_default()
            );
        }
        print_message(&format!(
            "would remove ralph loop {name}{with}: {}\n",
            bytes(size)
        ));
        size
    }
}

/// Deletes the worktree's branch if it was created for the loop, and returns a description of the
/// branch. Prints a warning if that fails.
fn remove_branch(loop_worktree: &Worktree) -> Option<String> {
    if !loop_worktree.new_branch {
        print_message(&format!(
            "kept the branch {}: it existed before the loop\n",
            loop_worktree.branch
        ));
        return None;
    }
    match worktree::delete_branch(loop_worktree) {
        Ok(tip) => tip.map(|tip| {
            format!(
                "branch {} (was {})",
                loop_worktree.branch,
                &tip[..7.min(tip.len())]
            )
        }),
        Err(why) => {
            warn(format!(
                "the branch {} was kept: {why}",
                loop_worktree.branch
            ));
            None
        }
    }
}

/// Checks that a loop with a damaged journal can be removed with these flags. Nothing is known about
/// its worktree.
fn check_damaged(name: &str, error: StoreError, args: &RmArgs) -> Result<(), CommandError> {
    if !args.force {
        return Err(error.into());
    }
    if args.worktree {
        return Err(CommandError::usage(
            format!("cannot tell which worktree {name:?} has: {error}"),
            format!("`ralph rm {name} --force` removes only the loop"),
        ));
    }
    Ok(())
}

/// Checks that a loop with a worktree can be removed with these flags.
fn check_worktree(name: &str, state: &State, args: &RmArgs) -> Result<(), CommandError> {
    let Some(loop_worktree) = &state.plan.worktree else {
        return Ok(());
    };
    if !args.worktree {
        if args.keep_worktree || !loop_worktree.path.exists() {
            return Ok(());
        }
        return Err(CommandError::usage(
            format!(
                "the loop {name:?} has a worktree, which may contain work: {}",
                loop_worktree.path.display()
            ),
            format!(
                "run `ralph rm {name} --worktree` to remove the worktree and its branch too, or `ralph rm {name} --keep-worktree` to keep them"
            ),
        ));
    }
    reject_git_redirection()?;
    if is_inside(&loop_worktree.path) {
        return Err(CommandError::usage(
            format!(
                "cannot remove the worktree of {name:?}: your current directory is inside it ({})",
                loop_worktree.path.display()
            ),
            "cd to another directory first",
        ));
    }
    if let Some(advice) = worktree::lock_advice(loop_worktree) {
        let branch = &loop_worktree.branch;
        if loop_worktree.new_branch && worktree::has_branch(loop_worktree, branch) {
            let message = format!("cannot delete the branch {branch}, because of a lock");
            return Err(CommandError::usage(message, advice));
        }
        warn(advice);
    }
    if args.force {
        return Ok(());
    }
    match find_unsaved_work(loop_worktree) {
        Ok(unsaved) if unsaved.is_empty() => Ok(()),
        Ok(unsaved) => Err(CommandError::usage(
            format!(
                "removing the worktree of {name:?} would lose work: {}",
                describe_unsaved_work(&unsaved)
            ),
            format!(
                "{}; to discard it, run `ralph rm {name} --worktree --force`",
                how_to_keep(&unsaved, loop_worktree, state)
            ),
        )),
        Err(why) => Err(CommandError::usage(
            format!("cannot tell whether removing the worktree of {name:?} would lose work: {why}"),
            format!(
                "look at {}, or run `ralph rm {name} --worktree --force` to remove it anyway",
                loop_worktree.path.display()
            ),
        )),
    }
}

/// Says how to keep the work.
fn how_to_keep(unsaved: &UnsavedWork, loop_worktree: &Worktree, state: &State) -> String {
    let path = loop_worktree.path.display();
    let mut steps = Vec::new();
    if !unsaved.nested.is_empty() {
        steps.push(format!(
            "push or copy the nested repositories in {path}, which no branch of yours contains"
        ));
    }
    if !unsaved.files.is_empty() || unsaved.commits > 0 {
        let branch = state.worktree_revision().unwrap_or(&loop_worktree.branch);
        let merge = format!("run `git merge {}`", shell_quote(branch));
        steps.push(if unsaved.files.is_empty() {
            merge
        } else {
            format!("commit it in {path} and {merge}")
        });
    }
    format!("to keep the work, {}", steps.join(", and "))
}

fn describe_unsaved_work(unsaved: &UnsavedWork) -> String {
    let mut parts = Vec::new();
    if !unsaved.nested.is_empty() {
        let shown = unsaved.nested[..MAX_SHOWN.min(unsaved.nested.len())].join(", ");
        let count = unsaved.nested.len();
        parts.push(match count {
            1 => format!("the nested repository {shown}"),
            2..=MAX_SHOWN => format!("the nested repositories {shown}"),
            _ => format!("{count} nested repositories, {shown}, …"),
        });
    }
    if unsaved.commits > 0 {
        parts.push(plural(u64::from(unsaved.commits), "commit"));
    }
    if !unsaved.files.is_empty() {
        let names = unsaved.files[..MAX_SHOWN.min(unsaved.files.len())].join(", ");
        let ellipsis = if unsaved.files.len() > MAX_SHOWN {
            ", …"
        } else {
            ""
        };
        parts.push(format!(
            "{} ({names}{ellipsis})",
            plural(unsaved.files.len() as u64, "uncommitted file")
        ));
    }
    parts.join(" and ")
}

/// Returns whether the current directory is inside `path`.
fn is_inside(path: &Path) -> bool {
    let current = std::env::current_dir().and_then(std::fs::canonicalize);
    let path = std::fs::canonicalize(path);
    matches!((current, path), (Ok(current), Ok(path)) if current.starts_with(&path))
}
