//! Creates a loop: claims its name, takes its locks, makes its worktree and writes the journal's first line.

use super::failure::Failure;
use super::handle::Visit;
use super::locks::{Locks, abandon, lock_away};
use super::placement::{Made, Wanted, clear_half_made};
use crate::agent::redact::Mask;
use crate::engine::plan::Worktree;
use crate::engine::{Plan, Status};
use crate::os::Held;
use crate::store::{Header, Home, Journal, LoopDir, cache, last_holder, valid_name};
use std::io::Read;
use std::path::Path;

/// Where a loop is to live: in the foreground and in the user's own checkout, unless it says otherwise.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) background: bool,
    pub(crate) tmux: Option<String>,
    pub(crate) apart: Option<Wanted>,
    /// Whether the process is another program's, and with it all signals.
    pub(crate) hosted: bool,
}

impl Place {
    /// In the foreground, in this worktree if there is one to be made.
    pub(crate) fn of(apart: Option<Wanted>) -> Self {
        Self {
            apart,
            ..Self::default()
        }
    }

    /// Inside another program.
    pub(crate) fn hosted(apart: Option<Wanted>) -> Self {
        Self {
            apart,
            hosted: true,
            ..Self::default()
        }
    }
}

/// A loop that is ready to run: its directory with the first line written, its locks held.
pub(crate) struct Prepared {
    pub(crate) dir: LoopDir,
    pub(crate) locks: Locks,
    /// The plan as it was written down.
    pub(crate) plan: Plan,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// Makes a new loop, and a worktree for it if that is wanted.
pub(crate) fn prepare(
    home: &Home,
    name: Option<&str>,
    mut plan: Plan,
    place: Place,
) -> Result<Prepared, Failure> {
    let Place {
        background,
        tmux,
        apart,
        hosted,
    } = place;
    let (apart, mut notes) = (apart.as_ref(), Vec::new());
    // Before anything is made: when something ends this process meanwhile, that is taken back first.
    let held = (apart.is_some() && !hosted).then(Held::begin);
    let is_interrupted = || held.as_ref().is_some_and(Held::has_any);
    if apart.is_some() {
        clear_half_made(home);
    }
    let (dir, mut locks, planned) = match name {
        Some(name) => {
            let free = || {
                apart
                    .map(|apart| apart.planned(home, name, &plan.workspace))
                    .transpose()
            };
            let (planned, note) = make_room(home, name, free)?;
            notes.extend(note);
            let (dir, locks) = claim(home, name, &plan)?;
            (dir, locks, planned)
        }
        None => claim_free(home, &plan, apart)?,
    };
    let made = match (apart, planned) {
        (Some(apart), Some(planned)) => {
            Some(apart.make(home, &dir, planned, &mut plan, &is_interrupted)?)
        }
        _ => None,
    };
    locks.take_workspace(home, &dir, &plan)?;
    let name = dir.name().to_owned();
    let created_ms = jiff::Timestamp::now().as_millisecond();
    let parent = std::env::var("RALPH_LOOP")
        .ok()
        .filter(|parent| valid_name(parent));
    if is_interrupted() {
        return Err(Failure::broken("interrupted"));
    }
    plan.covered = Mask::of_environment().cover_all(plan.typed_mut());
    let header = Header {
        name,
        id: new_id()?,
        created_ms,
        parent,
        background,
        tmux,
        plan: plan.clone(),
    };
    drop(Journal::create(&dir, &header)?);
    notes.extend(made.map(Made::keep).unwrap_or_default());
    Ok(Prepared {
        dir,
        locks,
        plan,
        notes,
    })
}

/// Makes a loop's directory, and takes its lock.
fn claim(home: &Home, name: &str, plan: &Plan) -> Result<(LoopDir, Locks), Failure> {
    let dir = home.loop_dir(name);
    dir.create()?;
    let locks = Locks::of(&dir, plan)?;
    Ok((dir, locks))
}

type Claimed = (LoopDir, Locks, Option<Worktree>);

/// The same with the smallest name that is free, though others may be looking for one right now.
fn claim_free(home: &Home, plan: &Plan, apart: Option<&Wanted>) -> Result<Claimed, Failure> {
    let mut tries = 0;
    let mut taken = Vec::new();
    loop {
        let name = home.free_name(&plan.workspace, &taken)?;
        match claim(home, &name, plan) {
            Ok((dir, locks)) if !dir.journal().exists() => {
                let Some(apart) = apart else {
                    return Ok((dir, locks, None));
                };
                // With the lock: nobody else makes a worktree of this name now.
                if !apart.is_taken(home, &name) {
                    let planned = apart
                        .planned(home, &name, &plan.workspace)
                        .inspect_err(|_| abandon(&dir))?;
                    return Ok((dir, locks, Some(planned)));
                }
                abandon(&dir);
                taken.push(name);
            }
            Err(failure) if tries > 20 || !home.loop_dir(&name).path().exists() => {
                return Err(failure);
            }
            _ => tries += 1,
        }
    }
}

/// If everything of the last loop in this workspace was killed at once, its agent may still be at work here.
pub(crate) fn sweep_before(home: &Home, workspace: &Path) -> Result<(), Failure> {
    if let Some(last) = last_holder(&home.workspace_lock_path(workspace)?) {
        // A loop that cannot be read is no reason against another.
        let _ = Visit::in_home(home.clone(), &last.loop_name);
    }
    Ok(())
}

/// An ended loop's name may be used again, and where that one is now is said unless it was done; one that could
/// go on may not. Nothing is moved before `free` says that nothing else is in the way.
fn make_room<T>(
    home: &Home,
    name: &str,
    free: impl Fn() -> Result<T, Failure>,
) -> Result<(T, Option<String>), Failure> {
    let dir = home.loop_dir(name);
    if !dir.journal().exists() {
        return Ok((free()?, None));
    }
    // Held until it is out of the way: another may be starting under the same name right now.
    let lock = lock_away(&dir);
    if !dir.journal().exists() {
        return Ok((free()?, None));
    }
    let _lock = lock?;
    let state = cache::read(&dir)?.state;
    let status = state.status(false);
    if matches!(status, Status::Paused | Status::Crashed) {
        return Err(Failure::usage(
            format!("the loop {name:?} is {}, and could go on", status.word()),
            format!(
                "ralph resume {name} goes on, ralph rm {name} removes it; or choose another --name"
            ),
        ));
    }
    if let Some(worktree) = state
        .plan
        .worktree
        .filter(|worktree| worktree.path.exists())
    {
        return Err(Failure::usage(
            format!(
                "the loop {name:?} of before still has its worktree: {}",
                worktree.path.display()
            ),
            format!(
                "ralph rm {name} --worktree removes both, --keep-worktree the loop alone; or choose another --name"
            ),
        ));
    }
    let free = free()?;
    let place = home.archive(name)?;
    let word = status.word();
    let note = format!(
        "the loop {name:?} of before, which is {word}, is now in {}",
        place.display()
    );
    Ok((free, (status != Status::Done).then_some(note)))
}

/// What tells a loop, or a message, from every other.
pub(crate) fn new_id() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Failure::broken)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}
