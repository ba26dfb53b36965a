//! `ralph run`: a new loop in the foreground.

use super::dry_run::dry_run;
use super::failure::{Failure, warn};
use super::keep::work_can_be_kept;
use super::ready::ready;
use super::supervise::{Locks, lock_away, supervise};
use super::visit::Visit;
use crate::cli::{OutputWords, RunWords};
use crate::config::{self, Places, Settings, Stack};
use crate::engine::plan::Level;
use crate::engine::{Plan, Status};
use crate::store::{self, Header, Home, Journal, LoopDir, cache, last_holder, valid_name};
use std::io::Read;
use std::path::{Path, PathBuf};

pub(super) fn run(words: &RunWords) -> Result<i32, Failure> {
    match intent(words)? {
        Some(intent) => go(&Home::locate()?, words, &intent),
        None => Ok(0),
    }
}

/// What is to be done, and what the console is to show of it.
pub(super) struct Intent {
    pub(super) plan: Plan,
    pub(super) all: Settings,
}

/// What these words mean here; none if they only asked what they would mean.
pub(super) fn intent(words: &RunWords) -> Result<Option<Intent>, Failure> {
    let workspace = workspace()?;
    let stack = Stack::load(&places(workspace.clone(), words.config.clone()))?;
    intent_in(workspace, stack, words)
}

/// The directory in which a loop would work now.
pub(super) fn workspace() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    here.map_err(|error| {
        Failure::broken(format!("cannot tell the current directory: {error}"))
            .with_hint("cd to one that is there")
    })
}

/// Where the settings of a workspace are looked for.
pub(super) fn places(workspace: PathBuf, project: Option<PathBuf>) -> Places {
    Places { workspace, user: config_dir(), project }
}

/// The same in this workspace, with these settings below its words.
pub(super) fn intent_in(
    workspace: PathBuf,
    mut stack: Stack,
    words: &RunWords,
) -> Result<Option<Intent>, Failure> {
    stack.push(words.layer());
    let plan = config::plan(&stack, &words.errand(workspace, config_dir()))?;
    let all = Settings::of(&stack);
    if let Some(name) = words.name.as_deref().filter(|name| !valid_name(name)) {
        return Err(store::Error::BadName { name: name.to_owned() }.into());
    }
    ready(&plan, &stack)?;
    work_can_be_kept(&plan, &stack.name("scm"))?;
    if words.dry_run {
        dry_run(&plan)?;
        return Ok(None);
    }
    if plan.limits.iterations.is_none_or(|max| max > 50) {
        warn(match plan.limits.iterations {
            Some(_) => "high iteration count (>50) may consume significant resources",
            None => "no limit of iterations: the loop may consume significant resources",
        });
    }
    if plan.context.level == Level::None
        && plan.proof.checks.is_empty()
        && !plan.proof.explicit()
        && !all.no_promise
    {
        warn(
            "with --context none nobody tells the agent what to promise: your prompt must ask for <promise>COMPLETE</promise>",
        );
    }
    Ok(Some(Intent { plan, all }))
}

/// Runs a loop in the foreground, with this state directory.
pub(super) fn go(home: &Home, words: &RunWords, intent: &Intent) -> Result<i32, Failure> {
    let Intent { plan, all } = intent;
    let output = OutputWords {
        quiet: all.quiet && !words.json,
        json: words.json,
        no_stream: !all.stream,
        no_next: words.no_next,
    };
    sweep_before(home, &plan.workspace)?;
    let (dir, locks, note) = prepare(home, words.name.as_deref(), plan, Place::default())?;
    if let Some(note) = note {
        warn(note);
    }
    supervise(&dir, locks, plan, output)
}

/// Where a loop is to live: in the foreground, unless it says otherwise.
#[derive(Default)]
pub(crate) struct Place {
    pub(super) background: bool,
    pub(super) tmux: Option<String>,
}

/// A new loop's directory with its first line written and its locks held, and what a person should know.
pub(crate) fn prepare(
    home: &Home,
    name: Option<&str>,
    plan: &Plan,
    place: Place,
) -> Result<(LoopDir, Locks, Option<String>), Failure> {
    let mut note = None;
    let (dir, locks) = match name {
        Some(name) => {
            note = make_room(home, name)?;
            claim(home, name, plan)?
        }
        None => claim_free(home, plan)?,
    };
    let name = dir.name().to_owned();
    let created_ms = jiff::Timestamp::now().as_millisecond();
    let parent = std::env::var("RALPH_LOOP").ok().filter(|parent| valid_name(parent));
    let Place { background, tmux } = place;
    let header = Header { name, id: new_id()?, created_ms, parent, background, tmux, plan: plan.clone() };
    drop(Journal::create(&dir, &header)?);
    Ok((dir, locks, note))
}

/// Makes a loop's directory, and takes its locks.
fn claim(home: &Home, name: &str, plan: &Plan) -> Result<(LoopDir, Locks), Failure> {
    let dir = home.loop_dir(name);
    dir.create()?;
    let locks = Locks::take(home, &dir, plan)?;
    Ok((dir, locks))
}

/// The same with the smallest name that is free, though others may be looking for one right now.
fn claim_free(home: &Home, plan: &Plan) -> Result<(LoopDir, Locks), Failure> {
    let mut tries = 0;
    loop {
        let name = home.free_name(&plan.workspace)?;
        match claim(home, &name, plan) {
            Ok((dir, locks)) if !dir.journal().exists() => return Ok((dir, locks)),
            Err(failure) if tries > 20 || !home.loop_dir(&name).path().exists() => return Err(failure),
            _ => tries += 1,
        }
    }
}

/// If everything of the last loop in this workspace was killed at once, its agent may still be at work here.
pub(super) fn sweep_before(home: &Home, workspace: &Path) -> Result<(), Failure> {
    if let Some(last) = last_holder(&home.workspace_lock_path(workspace)?) {
        // A loop that cannot be read is no reason against another.
        let _ = Visit::in_home(home.clone(), &last.loop_name);
    }
    Ok(())
}

/// An ended loop's name may be used again, and where that one is now is said unless it was done; one that could
/// go on may not.
fn make_room(home: &Home, name: &str) -> Result<Option<String>, Failure> {
    let dir = home.loop_dir(name);
    if !dir.journal().exists() {
        return Ok(None);
    }
    // Held until it is out of the way: another may be starting under the same name right now.
    let lock = lock_away(&dir);
    if !dir.journal().exists() {
        return Ok(None);
    }
    let _lock = lock?;
    let status = cache::read(&dir)?.state.status(false);
    if matches!(status, Status::Paused | Status::Crashed) {
        return Err(Failure::usage(
            format!("the loop {name:?} is {}, and could go on", status.word()),
            format!("ralph resume {name}, ralph stop {name} to end it, or choose another --name"),
        ));
    }
    let place = home.archive(name)?;
    let word = status.word();
    let note = format!("the loop {name:?} of before, which is {word}, is now in {}", place.display());
    Ok((status != Status::Done).then_some(note))
}

/// Where the user's own configuration lies.
fn config_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("ralph"))
}

fn new_id() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Failure::broken)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}
