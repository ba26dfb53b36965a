//! Opens a loop by name, and kills the processes it left behind if it crashed.

use super::enclosing::{EnclosingLoop, check_operator};
use super::error::CommandError;
use super::locks::RunnerElsewhere;
use super::session;
use crate::engine::format::process_count;
use crate::engine::{Liveness, ProcessIdentity, State, Status};
use crate::process::exemptions::{ExemptProcess, Exemptions, is_supervisor};
use crate::process::tree::{parent, start_time};
use crate::process::{lock_users, orphans};
use crate::proof::view::View;
use crate::sandbox::hooks;
#[cfg(feature = "cli")]
use crate::store::cache;
use crate::store::{
    LockHolder, LoopDir, LoopLock, LoopView, StateDir, StoreError, is_starting, loop_holder,
    view_with_inbox,
};
use std::time::{Duration, Instant};

/// An opened loop: its directory and a snapshot of its state.
pub(crate) struct LoopHandle {
    pub(crate) state_dir: StateDir,
    pub(crate) dir: LoopDir,
    pub(crate) view: LoopView,
    pub(crate) liveness: Liveness,
    /// Warnings from cleaning up after a crash, for the caller to show.
    pub(crate) warnings: Vec<String>,
}

impl LoopHandle {
    /// Opens a loop. If its runner and its warden were both killed, kills the processes that they
    /// left, and removes their view. Does the same after a verification.
    pub(crate) fn open(name: &str) -> Result<Self, CommandError> {
        Self::open_in(StateDir::locate()?, name)
    }

    /// Opens a loop like [`LoopHandle::open`], in the given state directory.
    pub(crate) fn open_in(state_dir: StateDir, name: &str) -> Result<Self, CommandError> {
        let dir = state_dir.find_loop(name)?;
        let (view, liveness) = read_loop(&dir)?;
        let mut handle = Self {
            state_dir,
            dir,
            view,
            liveness,
            warnings: Vec::new(),
        };
        let may_have_left =
            orphans::may_exist(&handle.view.state) || handle.dir.view_scratch().exists();
        let is_crashed = handle.status() == Status::Crashed && may_have_left;
        // A verification deletes its directory, unless all its processes were killed.
        let is_idle = handle.liveness == Liveness::Idle;
        let is_verified = is_idle && handle.dir.verify_scratch().exists();
        if (is_crashed || is_verified) && !handle.is_own_loop() {
            handle.sweep()?;
        }
        Ok(handle)
    }

    /// Opens a loop for a command that only reads it. If there is no loop of this name, opens the
    /// newest archived one that had it, or whose directory has it.
    #[cfg(feature = "cli")]
    pub(crate) fn open_to_read(name: &str) -> Result<Self, CommandError> {
        let state_dir = StateDir::locate()?;
        let Err(missing) = state_dir.find_loop(name) else {
            return Self::open_in(state_dir, name);
        };
        let dir = state_dir.find_archived(name).ok_or(missing)?;
        Ok(Self {
            view: cache::read(&dir)?,
            state_dir,
            dir,
            liveness: Liveness::Idle,
            warnings: Vec::new(),
        })
    }

    /// Opens a loop like [`LoopHandle::open`], but fails if this process belongs to an agent, unless
    /// the agent has started the loop.
    pub(crate) fn open_as_operator(name: &str) -> Result<Self, CommandError> {
        let handle = Self::open(name)?;
        check_operator(&handle.state_dir, &handle.dir)?;
        Ok(handle)
    }

    /// Opens a loop like [`LoopHandle::open`], but fails if this process belongs to the loop's own
    /// agent, which would deadlock if it waited for the loop.
    pub(crate) fn open_to_wait(name: &str) -> Result<Self, CommandError> {
        let handle = Self::open(name)?;
        if handle.is_own_loop() {
            return Err(CommandError::usage(
                format!("an agent cannot wait for its own loop ({name:?})"),
                "the loop cannot end before this command does; run `ralph wait` outside the loop",
            ));
        }
        Ok(handle)
    }

    pub(crate) fn status(&self) -> Status {
        self.view.state.status(self.liveness)
    }

    /// Returns whether a runner or a client session works on the loop, or a runner is starting.
    pub(crate) fn is_live(&self) -> bool {
        self.liveness != Liveness::Idle
    }

    /// Returns whether this process was started by the loop's own agent.
    fn is_own_loop(&self) -> bool {
        orphans::is_inside(&self.view.header.id)
            || EnclosingLoop::find(&self.state_dir).is_some_and(|inside| inside.is(&self.dir))
    }

    /// Returns whether a client session, rather than a runner, is working on the loop.
    pub(crate) fn is_in_session(&self) -> bool {
        session::is_active(&self.view.state) && !is_held(&self.dir)
    }

    fn sweep(&mut self) -> Result<(), CommandError> {
        if let Some(elsewhere) = RunnerElsewhere::find(&self.dir) {
            self.warnings.push(elsewhere.describe(self.dir.name()));
            return Ok(());
        }
        let me = LockHolder {
            pid: std::process::id(),
            loop_name: self.dir.name().into(),
            ..LockHolder::default()
        };
        let _lock = match LoopLock::acquire(&self.dir, &me) {
            Ok(Ok(lock)) => lock,
            Ok(Err(_)) => return Ok(()),
            // A user with only read access can still ask for the loop's status.
            Err(error) if error.is_inaccessible() => {
                self.warnings.push(format!(
                    "the loop {:?} crashed, but ralph cannot look for processes it left behind: {error}",
                    self.dir.name()
                ));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let result = orphans::sweep(
            &self.view.header.id,
            &self.view.state,
            &exemptions(&self.state_dir),
        );
        let what = if self.status() == Status::Crashed {
            format!("the loop {:?} crashed", self.dir.name())
        } else {
            format!(
                "a verification of the loop {:?} was killed",
                self.dir.name()
            )
        };
        self.warnings.extend(describe_sweep(&what, &result));
        hooks::remove_created(&self.dir.created_hooks());
        for scratch in [self.dir.view_scratch(), self.dir.verify_scratch()] {
            if let Err(error) = View::recover(&scratch) {
                self.warnings.push(format!(
                    "cannot undo the second look of the loop {:?}: {error}",
                    self.dir.name()
                ));
            }
        }
        Ok(())
    }
}

/// Kills the processes that a loop with a damaged journal left behind, and returns warnings about
/// them. The caller must hold the loop's lock.
#[cfg(feature = "cli")]
pub(crate) fn sweep_damaged_loop(state_dir: &StateDir, dir: &LoopDir) -> Vec<String> {
    let Some(id) = cache::id_of_damaged_loop(dir) else {
        return Vec::new();
    };
    let exemptions = exemptions(state_dir);
    let result = orphans::sweep_by_id(&id, &exemptions);
    describe_sweep(&format!("the loop {:?} crashed", dir.name()), &result)
}

/// Describes a sweep. `what` says why it was needed.
fn describe_sweep(what: &str, (swept, survivors): &(usize, Vec<u32>)) -> Vec<String> {
    let mut warnings = Vec::new();
    if *swept > 0 {
        let count = process_count(*swept);
        warnings.push(format!("{what}; killed {count} that it left behind"));
    }
    if !survivors.is_empty() {
        warnings.push(format!(
            "{what}; these processes are still alive after SIGKILL: {survivors:?}"
        ));
    }
    warnings
}

/// Returns the processes that no sweep may kill: the holders of background loops' locks and their
/// descendants, and the processes that host these loops' windows.
pub(crate) fn exemptions(state_dir: &StateDir) -> Exemptions {
    let state_dir = state_dir.clone();
    Exemptions::new(move || {
        let exempt = |process: ProcessIdentity, with_descendants: bool| ExemptProcess {
            process,
            with_descendants,
        };
        let all = state_dir.background_holders().into_iter();
        all.filter(|(dir, holder)| is_supervisor(holder.pid, dir.name()))
            .flat_map(|(_, holder)| {
                let is_host = |host: &ProcessIdentity| parent(holder.pid) == Some(host.pid);
                let host = holder.host.filter(is_host);
                let host = host.map(|host| exempt(host, false));
                [Some(exempt(holder.process(), true)), host]
            })
            .flatten()
            .collect()
    })
}

/// Reads a loop, with the requests in its inbox, and whether a process works on it.
pub(crate) fn read_loop(dir: &LoopDir) -> Result<(LoopView, Liveness), StoreError> {
    // Read the view after checking the lock, so that it includes everything written by a runner
    // that has just exited.
    let liveness = runner_liveness(dir);
    let view = view_with_inbox(dir)?;
    let liveness = with_session(liveness, &view.state);
    Ok((view, liveness))
}

/// Returns whether a process works on the loop, given whether a runner does.
pub(crate) fn with_session(liveness: Liveness, state: &State) -> Liveness {
    match liveness {
        Liveness::Idle if session::is_active(state) => Liveness::Running,
        liveness => liveness,
    }
}

/// Returns whether a runner works on the loop, at once: a runner that was just killed may still
/// count, and a stopped one is left alone.
#[cfg(feature = "cli")]
pub(crate) fn current_liveness(dir: &LoopDir) -> Liveness {
    match loop_holder(dir) {
        Some(holder) if holder.background => Liveness::Running,
        _ if is_starting(dir) => Liveness::Starting,
        Some(holder) if !holder.is_transient() => Liveness::Running,
        _ => Liveness::Idle,
    }
}

/// Returns whether a runner works on the loop.
fn runner_liveness(dir: &LoopDir) -> Liveness {
    let is_registered = || loop_holder(dir).is_some_and(|holder| holder.background);
    // The command that starts the runner holds the loop's own lock at first, too.
    if is_starting(dir) && !is_registered() {
        Liveness::Starting
    } else if is_held(dir) {
        Liveness::Running
    } else {
        Liveness::Idle
    }
}

/// How long a killed runner's processes may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(5);
/// How long a warden that was stopped may take to kill the processes of its killed supervisor.
const WOKEN_GRACE: Duration = Duration::from_secs(8);

/// Returns whether a live runner holds the loop's lock. If the process that acquired the lock is
/// dead, waits briefly for the processes that inherited it to exit, so that a loop that was just
/// killed does not look alive. If a stopped process keeps the lock of such a loop, continues it. A
/// lock that is held only for cleaning up does not count.
pub(crate) fn is_held(dir: &LoopDir) -> bool {
    let (started, mut patience) = (Instant::now(), None);
    while let Some(holder) = loop_holder(dir) {
        let dead = holder.start_time != 0 && start_time(holder.pid) != Some(holder.start_time);
        let transient = holder.is_transient();
        let elapsed = started.elapsed();
        if holder.start_time != 0
            && lock_users::wake_stopped(&dir.lock(), holder.process(), elapsed > EXIT_GRACE)
        {
            patience = Some(WOKEN_GRACE);
        } else if dead || transient {
            patience = patience.or(Some(EXIT_GRACE));
        }
        if patience.is_none_or(|patience| elapsed > patience) {
            return !transient;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
