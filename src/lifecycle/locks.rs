//! Acquires the two locks that a loop needs in order to run: its own and its workspace's.

use super::error::CommandError;
use crate::engine::{Plan, ProcessIdentity};
use crate::process::tree::start_time;
use crate::store::{FileLock, LockHolder, LoopDir, StateDir, rfc3339};
use std::path::Path;
use std::time::{Duration, Instant};

/// A loop's locks, released on drop.
pub(crate) struct LoopLocks {
    _own: FileLock,
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
            _own: acquire_own_lock(dir, holder)?,
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
        Ok(Self {
            _own: acquire_own_lock(dir, &this_process(dir, &plan.workspace))?,
            workspace: None,
        })
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
        let taken = FileLock::acquire(&path, &holder)?;
        if taken
            .as_ref()
            .is_err_and(|other| is_descendant(state_dir, dir, &other.loop_name))
        {
            return Ok(());
        }
        let lock = taken.map_err(|other| {
            discard_new_dir(dir);
            CommandError::usage(
                format!(
                    "the loop {:?} is already running in this workspace ({})",
                    other.loop_name,
                    describe(&other)
                ),
                format!(
                    "give this loop a worktree of its own with --worktree; or wait with `ralph wait {0}`, \
                     stop it with `ralph stop {0}`, or let both change the same files with --share-workspace",
                    other.loop_name
                ),
            )
        })?;
        self.workspace = Some(lock);
        Ok(())
    }
}

/// Removes the directory of a loop whose creation failed. A directory without a journal was created
/// by this attempt, and its lock is held, so no other process can be using it.
pub(crate) fn discard_new_dir(dir: &LoopDir) {
    if !dir.journal().exists() {
        let _ = std::fs::remove_file(dir.lock()).and_then(|()| std::fs::remove_dir(dir.path()));
    }
}

/// Returns whether this loop was started by an agent of `ancestor` or of one of its child loops.
/// Such a loop may share the workspace.
fn is_descendant(state_dir: &StateDir, dir: &LoopDir, ancestor: &str) -> bool {
    let known = state_dir.parent(dir.name());
    let parent = known.or_else(|| {
        std::env::var("RALPH_LOOP")
            .ok()
            .filter(|_| !dir.journal().exists())
    });
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

fn acquire_own_lock(dir: &LoopDir, holder: &LockHolder) -> Result<FileLock, CommandError> {
    let started = Instant::now();
    let taken = loop {
        match FileLock::acquire(&dir.lock(), holder)? {
            // Another process is cleaning up after a crash and will release the lock soon.
            Err(other) if other.is_transient() && started.elapsed() < CLEANUP_TIMEOUT => {}
            taken => break taken,
        }
    };
    taken.map_err(|other| {
        CommandError::usage(
            format!(
                "the loop {:?} is already running ({})",
                dir.name(),
                describe(&other)
            ),
            format!(
                "run `ralph status {0}` to see what it does or `ralph stop {0}` to stop it, or choose another --name",
                dir.name()
            ),
        )
    })
}

/// Acquires a loop's own lock before its directory is archived or removed.
pub(crate) fn lock_for_removal(dir: &LoopDir) -> Result<FileLock, CommandError> {
    acquire_own_lock(dir, &this_process(dir, Path::new("")))
}

fn describe(holder: &LockHolder) -> String {
    format!("process {}, since {}", holder.pid, holder.since)
}
