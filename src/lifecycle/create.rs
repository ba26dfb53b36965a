//! Creates a loop: claims its name, acquires its locks, creates its worktree and writes the
//! journal's first line.

use super::enclosing::parent_loop;
use super::error::CommandError;
use super::handle::LoopHandle;
use super::locks::{LoopLocks, discard_new_dir, mark_as_starting, try_lock_for_removal};
use super::worktree_request::{NewWorktree, WorktreeRequest, remove_incomplete_loops, roll_back};
use crate::agent::task_dir::TaskDir;
use crate::config::{PlanDraft, reject_secret};
use crate::engine::plan::Worktree;
use crate::engine::{Liveness, Plan, Status};
use crate::os::{self, BlockedSignals};
use crate::store::derived_files::PROGRESS_FILE;
use crate::store::{Journal, JournalHeader, LoopDir, StartMark, StateDir, cache, last_lock_holder};
use std::path::Path;

/// The place where a loop will run. The default is the foreground, in the user's own checkout.
#[derive(Default)]
pub(crate) struct Placement {
    pub(crate) background: bool,
    pub(crate) tmux: Option<String>,
    pub(crate) worktree: Option<WorktreeRequest>,
    /// Whether the loop runs inside another program, which owns the process and its signals.
    pub(crate) hosted: bool,
}

impl Placement {
    /// Returns a placement in the foreground, in its own worktree if one is requested.
    pub(crate) fn foreground(worktree: Option<WorktreeRequest>) -> Self {
        Self {
            worktree,
            ..Self::default()
        }
    }

    /// Returns a placement inside another program, in its own worktree if one is requested.
    pub(crate) fn hosted(worktree: Option<WorktreeRequest>) -> Self {
        Self {
            worktree,
            hosted: true,
            ..Self::default()
        }
    }
}

/// A loop that is ready to run: its locks are held, and its journal has the first line.
pub(crate) struct PreparedLoop {
    pub(crate) dir: LoopDir,
    pub(crate) locks: LoopLocks,
    /// The plan as the journal records it.
    pub(crate) plan: Plan,
    /// For a background loop: drop this once the runner holds the locks.
    pub(crate) start_mark: Option<StartMark>,
}

/// Creates a loop, and its worktree if one is requested. Passes warnings to `warn`, even if an
/// error follows, because some of them report processes that were killed.
pub(crate) fn create_loop(
    state_dir: &StateDir,
    name: Option<&str>,
    mut draft: PlanDraft,
    placement: Placement,
    warn: &mut dyn FnMut(String),
) -> Result<PreparedLoop, CommandError> {
    let Placement {
        background,
        tmux,
        worktree: request,
        hosted,
    } = placement;
    let request = request.as_ref();
    // Block signals before creating anything, so that an interrupted creation is rolled back first.
    let held = (request.is_some() && !hosted).then(BlockedSignals::new);
    let is_interrupted = || held.as_ref().is_some_and(BlockedSignals::has_pending);
    if request.is_some() {
        remove_incomplete_loops(state_dir);
    } else if draft.plan().session.is_none() {
        sweep_workspace(state_dir, &draft.plan().workspace, warn)?;
    }
    let (dir, mut locks, planned) = match name {
        Some(name) => claim_given_name(state_dir, name, draft.plan(), request, warn)?,
        None => claim_unused_name(state_dir, draft.plan(), request)?,
    };
    let worktree = match (request, planned) {
        (Some(request), Some(planned)) => {
            Some(request.create(state_dir, &dir, planned, &mut draft, &is_interrupted)?)
        }
        _ => None,
    };
    locks.acquire_workspace(state_dir, &dir, draft.plan())?;
    let name = dir.name().to_owned();
    // Sessions do not lock the workspace, so there may be several.
    if locks.is_workspace_shared() || draft.plan().session.is_some() {
        draft.name_logs_after(&name);
    }
    // An earlier loop of this name may have left its report.
    let task_dir = TaskDir::new(&draft.plan().workspace, &name);
    let _ = std::fs::remove_file(task_dir.path().join(PROGRESS_FILE));
    let created_ms = jiff::Timestamp::now().as_millisecond();
    let parent = parent_loop(state_dir).filter(|parent| *parent != name);
    if is_interrupted() {
        return Err(CommandError::broken("interrupted before the loop started"));
    }
    let plan = draft.into_plan();
    let header = JournalHeader {
        name,
        id: random_id()?,
        created_ms,
        parent,
        background,
        tmux,
        plan: plan.clone(),
    };
    // Set before the journal exists, so that no process takes the new loop for a crashed one.
    let start_mark = background
        .then(|| mark_as_starting(&dir, &plan))
        .transpose()?;
    drop(Journal::create(&dir, &header)?);
    locks.add_journal(&dir)?;
    let kept = worktree.map(NewWorktree::keep).unwrap_or_default();
    kept.into_iter().for_each(warn);
    Ok(PreparedLoop {
        dir,
        locks,
        plan,
        start_mark,
    })
}

/// How often to retry if another process creates or removes a loop of the same name.
const CLAIM_TRIES: u32 = 20;

/// Creates a loop's directory and acquires its lock; `None` if another process has just created or
/// removed a loop of this name.
fn claim_name(
    state_dir: &StateDir,
    name: &str,
    plan: &Plan,
) -> Result<Option<(LoopDir, LoopLocks)>, CommandError> {
    let dir = state_dir.loop_dir(name);
    dir.create()?;
    match LoopLocks::try_acquire_own(&dir, plan) {
        Ok(Some(_)) if !dir.journal().exists() && dir.worktree_draft().exists() => {
            // An interrupted creation left this directory.
            roll_back(&dir);
            Ok(None)
        }
        Ok(Some(locks)) if !dir.journal().exists() => Ok(Some((dir, locks))),
        Err(error) if dir.path().exists() => Err(error),
        _ => Ok(None),
    }
}

type ClaimedName = (LoopDir, LoopLocks, Option<Worktree>);

/// Claims the name that the user gave. An ended loop with this name is archived.
fn claim_given_name(
    state_dir: &StateDir,
    name: &str,
    plan: &Plan,
    request: Option<&WorktreeRequest>,
    warn: &mut dyn FnMut(String),
) -> Result<ClaimedName, CommandError> {
    reject_secret("--name", name)?;
    let plan_worktree = || {
        request
            .map(|request| request.plan(state_dir, name, &plan.workspace))
            .transpose()
    };
    for _ in 0..CLAIM_TRIES {
        let (planned, warning) = free_name(state_dir, name, plan_worktree)?;
        warning.into_iter().for_each(&mut *warn);
        if let Some((dir, locks)) = claim_name(state_dir, name, plan)? {
            return Ok((dir, locks, planned));
        }
    }
    Err(name_in_use(name))
}

/// Returns the error for the name of a loop that is being created or has not ended.
fn name_in_use(name: &str) -> CommandError {
    CommandError::usage(
        format!("the loop {name:?} is already starting or running"),
        format!(
            "`ralph status {name}` shows what it does, `ralph stop {name}` stops it; or choose another --name"
        ),
    )
}

/// Claims the smallest unused name. Other processes may be doing the same, so this retries.
fn claim_unused_name(
    state_dir: &StateDir,
    plan: &Plan,
    request: Option<&WorktreeRequest>,
) -> Result<ClaimedName, CommandError> {
    let mut tries = 0;
    let mut taken = Vec::new();
    loop {
        let name = state_dir.free_name(&plan.workspace, &taken)?;
        reject_secret("the loop's name", &name)?;
        match claim_name(state_dir, &name, plan)? {
            Some((dir, locks)) => {
                let Some(request) = request else {
                    return Ok((dir, locks, None));
                };
                // While the lock is held, no other process creates a worktree with this name.
                if !request.is_taken(state_dir, &name) {
                    let planned = request
                        .plan(state_dir, &name, &plan.workspace)
                        .inspect_err(|_| discard_new_dir(&dir))?;
                    return Ok((dir, locks, Some(planned)));
                }
                discard_new_dir(&dir);
                taken.push(name);
            }
            None if tries > CLAIM_TRIES => return Err(name_in_use(&name)),
            None => tries += 1,
        }
    }
}

/// Kills the processes that a crashed loop left in this workspace, because its agent may still be
/// working there. Returns warnings.
fn sweep_workspace(
    state_dir: &StateDir,
    workspace: &Path,
    warn: &mut dyn FnMut(String),
) -> Result<(), CommandError> {
    if let Some(last) = last_lock_holder(&state_dir.workspace_lock_path(workspace)?) {
        // A loop that cannot be read must not prevent another from starting.
        if let Ok(handle) = LoopHandle::open_in(state_dir.clone(), &last.loop_name) {
            handle.warnings.into_iter().for_each(warn);
        }
    }
    Ok(())
}

/// Archives an ended loop to free its name, unless `check` fails. Returns the value of `check`, and
/// a warning if the archived loop was not done. A loop that can be resumed keeps its name.
fn free_name<T>(
    state_dir: &StateDir,
    name: &str,
    check: impl Fn() -> Result<T, CommandError>,
) -> Result<(T, Option<String>), CommandError> {
    let dir = state_dir.loop_dir(name);
    if !dir.path().exists() {
        return Ok((check()?, None));
    }
    // Hold the lock until the loop is archived, because another process may be starting it.
    let lock = match try_lock_for_removal(&dir) {
        Ok(lock) => lock,
        // Another process has removed the directory.
        Err(_) if !dir.path().exists() => return Ok((check()?, None)),
        Err(error) => return Err(error),
    };
    let _lock = lock.ok_or_else(|| name_in_use(name))?;
    if !dir.journal().exists() {
        return Ok((check()?, None));
    }
    let state = cache::read(&dir)?.state;
    let status = state.status(Liveness::Idle);
    if matches!(status, Status::Paused | Status::Crashed) {
        return Err(CommandError::usage(
            format!("a {} loop named {name:?} already exists", status.as_str()),
            format!(
                "run `ralph resume {name}` to continue it or `ralph rm {name}` to remove it, or choose another --name"
            ),
        ));
    }
    if let Some(worktree) = state
        .plan
        .worktree
        .filter(|worktree| worktree.path.exists())
    {
        return Err(CommandError::usage(
            format!(
                "cannot reuse the name {name:?}: the previous loop's worktree still exists at {}",
                worktree.path.display()
            ),
            format!(
                "run `ralph rm {name} --worktree` to remove both or `ralph rm {name} --keep-worktree` to remove only the loop, or choose another --name"
            ),
        ));
    }
    let checked = check()?;
    let archived = state_dir.archive(name)?;
    let warning = format!(
        "the previous loop {name:?} ({}) was archived in {}",
        status.as_str(),
        archived.display()
    );
    Ok((checked, (status != Status::Done).then_some(warning)))
}

/// Returns a random 64-bit ID, hex-encoded.
pub(crate) fn random_id() -> Result<String, CommandError> {
    let bytes = os::random_bytes().map_err(CommandError::broken)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}
