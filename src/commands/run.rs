//! `ralph run`: a new loop in the foreground.

use super::dry_run::dry_run;
use super::supervise::supervise;
use crate::cli::{OutputWords, RunWords};
use crate::config;
use crate::config::{Places, Settings, Stack};
use crate::engine::Plan;
use crate::engine::plan::Level;
use crate::lifecycle::create::{Place, Prepared, prepare, sweep_before};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::placement::Wanted;
use crate::lifecycle::preconditions::{installed, ready};
use crate::lifecycle::scm_check::work_can_be_kept;
use crate::store;
use crate::store::{Home, valid_name};
use std::path::PathBuf;

pub(crate) fn run(words: &RunWords) -> Result<i32, Failure> {
    match intent(words)? {
        Some(intent) => go(&Home::locate()?, words, intent),
        None => Ok(0),
    }
}

/// What is to be done, and what the console is to show of it.
pub(crate) struct Intent {
    pub(crate) plan: Plan,
    pub(crate) all: Settings,
    /// The worktree that is to be made for it.
    pub(crate) apart: Option<Wanted>,
}

/// What these words mean here; none if they only asked what they would mean.
pub(crate) fn intent(words: &RunWords) -> Result<Option<Intent>, Failure> {
    let workspace = workspace()?;
    let stack = Stack::load(&places(workspace.clone(), words.config.clone()))?;
    intent_in(workspace, stack, words)
}

/// The directory in which a loop would work now.
pub(crate) fn workspace() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    here.map_err(|error| {
        Failure::broken(format!("cannot tell the current directory: {error}"))
            .with_hint("cd to one that is there")
    })
}

/// Where the settings of a workspace are looked for.
pub(crate) fn places(workspace: PathBuf, project: Option<PathBuf>) -> Places {
    Places {
        workspace,
        user: config_dir(),
        project,
    }
}

/// The same in this workspace, with these settings below its words.
pub(crate) fn intent_in(
    workspace: PathBuf,
    mut stack: Stack,
    words: &RunWords,
) -> Result<Option<Intent>, Failure> {
    stack.push(words.layer());
    let plan = config::plan(&stack, &words.errand(workspace, config_dir()))?;
    let all = Settings::of(&stack);
    if let Some(name) = words.name.as_deref().filter(|name| !valid_name(name)) {
        return Err(store::Error::BadName {
            name: name.to_owned(),
        }
        .into());
    }
    let apart = Wanted::of(&stack, &plan.workspace)?;
    if apart.is_some() {
        // The rest is looked at in that place, once it is there.
        installed(&plan, &stack)?;
    } else {
        ready(&plan, &stack)?;
        work_can_be_kept(&plan, &stack.name("scm"))?;
    }
    if words.dry_run {
        dry_run(
            &plan,
            apart
                .as_ref()
                .map(|apart| apart.branch_of(words.name.as_deref())),
        )?;
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
    Ok(Some(Intent { plan, all, apart }))
}

/// Runs a loop in the foreground, with this state directory.
pub(crate) fn go(home: &Home, words: &RunWords, intent: Intent) -> Result<i32, Failure> {
    let Intent { plan, all, apart } = intent;
    let output = OutputWords {
        quiet: all.quiet && !words.json,
        json: words.json,
        no_stream: !all.stream,
        raw: all.raw,
        no_next: words.no_next,
        in_window: false,
    };
    if apart.is_none() {
        sweep_before(home, &plan.workspace)?;
    }
    let Prepared {
        dir,
        locks,
        plan,
        notes,
    } = prepare(home, words.name.as_deref(), plan, Place::of(apart))?;
    notes.iter().for_each(warn);
    supervise(&dir, locks, &plan, output)
}

/// Where the user's own configuration lies.
fn config_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.config_dir().join("ralph"))
}
