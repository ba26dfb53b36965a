//! Acquires the two locks that a loop needs in order to run: its own and its workspace's.

use super::enclosing::parent_loop;
use super::error::CommandError;
use crate::engine::{Plan, ProcessIdentity};
use crate::process::lock_users::open_paths;
use crate::process::tree::start_time;
use crate::store::{
    FileLock, LockHolder, LoopDir, LoopLock, StartMark, StateDir, is_starting, last_lock_holder,
    rfc3339,
};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A loop's locks, released on drop.
pub(crate) struct LoopLocks {
    own: LoopLock,
    workspace: Option<FileLock>,
}

impl LoopLocks {
    /// Acquires both locks. If another process holds one, the error names that process.
    pub(crate) fn acquire(
        state_dir: &StateDir,
        dir: &LoopDir,
        plan: &Plan,
    ) -> Result<Self, CommandError> {
        Self::acquire_as(&this_process(dir, &plan.workspace), state_dir, dir, plan)
    }

    /// Acquires both locks for a background supervisor. Holding them exempts the supervisor from
    /// sweeps.
    pub(crate) fn acquire_in_background(
        state_dir: &StateDir,
        dir: &LoopDir,
        plan: &Plan,
        in_window: bool,
    ) -> Result<Self, CommandError> {
        let host = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
        let host = host.filter(|_| in_window).and_then(|pid| {
            let start_time = start_time(pid)?;
            Some(ProcessIdentity { pid, start_time })
        });
        let holder = LockHolder {
            background: true,
            host,
            ..this_process(dir, &plan.workspace)
        };
        Self::acquire_as(&holder, state_dir, dir, plan)
    }

    fn acquire_as(
        holder: &LockHolder,
        state_dir: &StateDir,
        dir: &LoopDir,
        plan: &Plan,
    ) -> Result<Self, CommandError> {
        let mut locks = Self {
            own: try_own_lock(dir, holder)?.ok_or_else(|| already_running(dir))?,
            workspace: None,
        };
        locks.acquire_workspace(state_dir, dir, plan)?;
        Ok(locks)
    }

    /// Returns whether another loop may use the workspace at the same time.
    pub(crate) fn is_workspace_shared(&self) -> bool {
        self.workspace.is_none()
    }

    /// Acquires only the loop's own lock.
    pub(crate) fn acquire_own(dir: &LoopDir, plan: &Plan) -> Result<Self, CommandError> {
        Self::try_acquire_own(dir, plan)?.ok_or_else(|| already_running(dir))
    }

    /// Like [`LoopLocks::acquire_own`]; `None` if a running loop holds the lock.
    pub(crate) fn try_acquire_own(
        dir: &LoopDir,
        plan: &Plan,
    ) -> Result<Option<Self>, CommandError> {
        let lock = try_own_lock(dir, &this_process(dir, &plan.workspace))?;
        Ok(lock.map(|own| Self {
            own,
            workspace: None,
        }))
    }

    /// Locks the journal of a new loop too.
    pub(crate) fn add_journal(&mut self, dir: &LoopDir) -> Result<(), CommandError> {
        Ok(self.own.add_journal(dir)?)
    }

    /// Acquires the workspace's lock in addition. Skips a worktree that no longer exists, because
    /// the runner reports that.
    pub(crate) fn acquire_workspace(
        &mut self,
        state_dir: &StateDir,
        dir: &LoopDir,
        plan: &Plan,
    ) -> Result<(), CommandError> {
        if plan.share_workspace || (plan.worktree.is_some() && !plan.workspace.exists()) {
            return Ok(());
        }
        let (path, holder) = (
            state_dir.workspace_lock_path(&plan.workspace)?,
            this_process(dir, &plan.workspace),
        );
        let other = match FileLock::acquire(&path, &holder)? {
            Ok(lock) => {
                self.workspace = Some(lock);
                // Look for other loops only now: of two loops that start at the same time, at least
                // one then finds the other.
                overlapping_loop(state_dir, plan)
            }
            Err(other) => Some(other),
        };
        let other = other.filter(|other| !is_descendant(state_dir, dir, &other.loop_name));
        other.map_or(Ok(()), |other| {
            self.workspace = None;
            let is_new = !dir.journal().exists();
            discard_new_dir(dir);
            Err(workspace_in_use(plan, &other, is_new))
        })
    }
}

/// Returns the holder of a workspace above or below the plan's; `None` if there is none. A worktree
/// that ralph created is a checkout of its own, wherever it is.
fn overlapping_loop(state_dir: &StateDir, plan: &Plan) -> Option<LockHolder> {
    if plan.worktree.is_some() {
        return None;
    }
    let worktrees = state_dir.worktree_path("");
    state_dir.workspace_holders().into_iter().find(|holder| {
        let theirs = &holder.workspace;
        *theirs != plan.workspace
            && !theirs.starts_with(&worktrees)
            && (theirs.starts_with(&plan.workspace) || plan.workspace.starts_with(theirs))
    })
}

/// Returns the error for a workspace that another loop uses. Only a new loop can be placed elsewhere.
fn workspace_in_use(plan: &Plan, other: &LockHolder, is_new: bool) -> CommandError {
    let (name, workspace) = (&other.loop_name, &other.workspace);
    let place = if *workspace == plan.workspace || workspace.as_os_str().is_empty() {
        "this workspace".to_owned()
    } else if workspace.starts_with(&plan.workspace) {
        format!("{}, which is part of this workspace", workspace.display())
    } else {
        format!("{}, which contains this workspace", workspace.display())
    };
    let elsewhere = if is_new {
        "give this loop a worktree of its own with --worktree, or let both change the same files with --share-workspace; or "
    } else {
        ""
    };
    CommandError::usage(
        format!(
            "the loop {name:?} is already running in {place} ({})",
            describe(other)
        ),
        format!("{elsewhere}wait with `ralph wait {name}`, or stop it with `ralph stop {name}`"),
    )
}

/// Removes the directory of a loop whose creation failed. Without a journal, this attempt created
/// it; its lock is held, so no other process can be using it.
pub(crate) fn discard_new_dir(dir: &LoopDir) {
    if !dir.journal().exists() {
        let _ = std::fs::remove_file(dir.lock()).and_then(|()| std::fs::remove_dir(dir.path()));
    }
}

/// Returns whether this loop was started by an agent of `ancestor` or of one of its child loops.
/// Such a loop may share the workspace.
fn is_descendant(state_dir: &StateDir, dir: &LoopDir, ancestor: &str) -> bool {
    let known = state_dir.parent(dir.name());
    let parent = known.or_else(|| parent_loop(state_dir).filter(|_| !dir.journal().exists()));
    state_dir.is_ancestor(ancestor, parent)
}

fn this_process(dir: &LoopDir, workspace: &Path) -> LockHolder {
    let pid = std::process::id();
    LockHolder {
        pid,
        start_time: start_time(pid).unwrap_or(0),
        loop_name: dir.name().to_owned(),
        workspace: workspace.to_owned(),
        since: rfc3339(jiff::Timestamp::now().as_millisecond()),
        ..LockHolder::default()
    }
}

/// The maximum time for another process to clean up after a crash.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(45);

/// Acquires a loop's own lock; `None` if the loop is running.
fn try_own_lock(dir: &LoopDir, holder: &LockHolder) -> Result<Option<LoopLock>, CommandError> {
    if let Some(elsewhere) = RunnerElsewhere::find(dir) {
        return Err(elsewhere.error(dir.name()));
    }
    let started = Instant::now();
    loop {
        match LoopLock::acquire(dir, holder)? {
            // Another process is cleaning up after a crash and will release the lock soon.
            Err(other) if other.is_transient() && started.elapsed() < CLEANUP_TIMEOUT => {}
            taken => return Ok(taken.ok()),
        }
    }
}

/// A process that runs a loop whose directory was moved or replaced since, as by a copy of the
/// state directory. The lock in the copy is free, but the agent is alive.
pub(crate) struct RunnerElsewhere {
    pid: u32,
    journal: PathBuf,
}

impl RunnerElsewhere {
    /// Looks for the last holder of the loop's lock: it must be alive, and have open the journal of
    /// a loop of this name at another path.
    pub(crate) fn find(dir: &LoopDir) -> Option<Self> {
        let last = last_lock_holder(&dir.lock())?;
        let is_alive = last.start_time != 0 && start_time(last.pid) == Some(last.start_time);
        if !is_alive || last.pid == std::process::id() {
            return None;
        }
        let own = dir.journal();
        let is_other = |path: &PathBuf| {
            path.ends_with(Path::new(dir.name()).join("journal.jsonl")) && !is_same_file(path, &own)
        };
        let journal = open_paths(last.pid).find(is_other)?;
        let pid = last.pid;
        Some(Self { pid, journal })
    }

    /// Describes the process.
    pub(crate) fn describe(&self, name: &str) -> String {
        let (pid, journal) = (self.pid, self.journal.display());
        format!("process {pid} still runs the loop {name:?}, with its journal at {journal}")
    }

    fn error(&self, name: &str) -> CommandError {
        CommandError::usage(
            self.describe(name),
            format!(
                "the state directory was moved or copied: wait until the process ends, or end it with `kill {}`",
                self.pid
            ),
        )
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|data| (data.dev(), data.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Marks a loop as starting. The caller holds the loop's own lock.
pub(crate) fn mark_as_starting(dir: &LoopDir, plan: &Plan) -> Result<StartMark, CommandError> {
    StartMark::set(dir, &this_process(dir, &plan.workspace))?.ok_or_else(|| already_running(dir))
}

/// Acquires a loop's own lock in order to archive or remove its directory; `None` if the loop is
/// starting or running.
pub(crate) fn try_lock_for_removal(dir: &LoopDir) -> Result<Option<LoopLock>, CommandError> {
    let lock = try_own_lock(dir, &this_process(dir, Path::new("")))?;
    // Check the mark while holding the lock: it is set only by a process that holds the lock.
    Ok(lock.filter(|_| !is_starting(dir)))
}

/// Like [`try_lock_for_removal`], with an error for a loop that is starting or running.
pub(crate) fn lock_for_removal(dir: &LoopDir) -> Result<LoopLock, CommandError> {
    try_lock_for_removal(dir)?.ok_or_else(|| already_running(dir))
}

/// Returns the error for a loop that another process is starting or running.
fn already_running(dir: &LoopDir) -> CommandError {
    let name = dir.name();
    CommandError::usage(
        format!("the loop {name:?} is already starting or running"),
        format!("`ralph status {name}` shows what it does, `ralph stop {name}` stops it"),
    )
}

fn describe(holder: &LockHolder) -> String {
    format!("process {}, since {}", holder.pid, holder.since)
}
