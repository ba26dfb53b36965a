//! The locks of a loop that is about to run: its own, and its workspace's.

use super::failure::Failure;
use crate::engine::Plan;
use crate::process::tree::start_time;
use crate::store::{Holder, Home, Lock, LoopDir, rfc3339};
use std::path::Path;
use std::time::{Duration, Instant};

/// The locks of a loop that is about to run.
pub(crate) struct Locks {
    _own: Lock,
    workspace: Option<Lock>,
}

impl Locks {
    /// Takes both, or says who has them.
    pub(crate) fn take(home: &Home, dir: &LoopDir, plan: &Plan) -> Result<Self, Failure> {
        Self::take_as(&me(dir, &plan.workspace), home, dir, plan)
    }

    /// The same for a supervisor in the background, perhaps in a window: it registers as one that is left alone.
    pub(crate) fn take_in_background(
        home: &Home,
        dir: &LoopDir,
        plan: &Plan,
        in_window: bool,
    ) -> Result<Self, Failure> {
        let host = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
        let host = host
            .filter(|_| in_window)
            .and_then(|pid| Some((pid, start_time(pid)?)));
        let holder = Holder {
            background: true,
            host,
            ..me(dir, &plan.workspace)
        };
        Self::take_as(&holder, home, dir, plan)
    }

    fn take_as(holder: &Holder, home: &Home, dir: &LoopDir, plan: &Plan) -> Result<Self, Failure> {
        let mut locks = Self {
            _own: take_own(dir, holder)?,
            workspace: None,
        };
        locks.take_workspace(home, dir, plan)?;
        Ok(locks)
    }

    /// Takes the loop's own.
    pub(crate) fn of(dir: &LoopDir, plan: &Plan) -> Result<Self, Failure> {
        Ok(Self {
            _own: take_own(dir, &me(dir, &plan.workspace))?,
            workspace: None,
        })
    }

    /// Takes that of the workspace as well. One that is gone needs none: the runner says so.
    pub(crate) fn take_workspace(
        &mut self,
        home: &Home,
        dir: &LoopDir,
        plan: &Plan,
    ) -> Result<(), Failure> {
        if plan.share_workspace || (plan.worktree.is_some() && !plan.workspace.exists()) {
            return Ok(());
        }
        let (path, holder) = (
            home.workspace_lock_path(&plan.workspace)?,
            me(dir, &plan.workspace),
        );
        let taken = Lock::take(&path, &holder)?;
        if taken
            .as_ref()
            .is_err_and(|other| is_child(home, dir, &other.loop_name))
        {
            return Ok(());
        }
        let lock = taken.map_err(|other| {
            abandon(dir);
            Failure::usage(
                format!(
                    "the loop {:?} already works in this workspace ({})",
                    other.loop_name,
                    who(&other)
                ),
                "wait for it, stop it, or allow both with --share-workspace",
            )
        })?;
        self.workspace = Some(lock);
        Ok(())
    }
}

/// Takes back a loop's directory. One without a journal was made for this very try, and its lock is held: nobody else
/// can have made it theirs.
pub(crate) fn abandon(dir: &LoopDir) {
    if !dir.journal().exists() {
        let _ = std::fs::remove_file(dir.lock()).and_then(|()| std::fs::remove_dir(dir.path()));
    }
}

/// Whether an agent of that loop, or of a child of it, starts this one: a child may share its parent's workspace.
fn is_child(home: &Home, dir: &LoopDir, elder: &str) -> bool {
    let known = home.parent(dir.name());
    let parent = known.or_else(|| {
        std::env::var("RALPH_LOOP")
            .ok()
            .filter(|_| !dir.journal().exists())
    });
    home.is_ancestor(elder, parent)
}

/// This process, as the holder of a loop's lock.
fn me(dir: &LoopDir, workspace: &Path) -> Holder {
    let pid = std::process::id();
    Holder {
        pid,
        start_time: start_time(pid).unwrap_or(0),
        loop_name: dir.name().to_owned(),
        workspace: workspace.to_owned(),
        since: rfc3339(jiff::Timestamp::now().as_millisecond()),
        ..Holder::default()
    }
}

/// How long somebody may clear up after a crash.
const CLEARING: Duration = Duration::from_secs(45);

fn take_own(dir: &LoopDir, holder: &Holder) -> Result<Lock, Failure> {
    let begun = Instant::now();
    let taken = loop {
        match Lock::take(&dir.lock(), holder)? {
            // Whoever clears up after a crash is soon done, or has his hands full with what the crash has left.
            Err(other) if other.is_passing() && begun.elapsed() < CLEARING => {}
            taken => break taken,
        }
    };
    taken.map_err(|other| {
        Failure::usage(
            format!(
                "the loop {:?} is already running ({})",
                dir.name(),
                who(&other)
            ),
            format!(
                "choose another name, or ralph status {0}, or ralph stop {0}",
                dir.name()
            ),
        )
    })
}

/// Takes a loop's own lock alone, to put its directory out of the way, or says who has it.
pub(crate) fn lock_away(dir: &LoopDir) -> Result<Lock, Failure> {
    take_own(dir, &me(dir, Path::new("")))
}

fn who(holder: &Holder) -> String {
    format!("process {}, since {}", holder.pid, holder.since)
}
