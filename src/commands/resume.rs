//! `ralph resume`: a loop goes on where its journal stands.

use super::run::places;
use super::supervise::supervise;
use crate::cli::{OutputWords, ResumeWords};
use crate::config::{Settings, Stack};
use crate::engine::event::{Door, Wish};
use crate::engine::{Event, Now, Outcome, Status};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::handle::{Visit, is_held};
use crate::lifecycle::launch::{launch, usable};
use crate::lifecycle::locks::Locks;
use crate::lifecycle::placement::not_aimed;
use crate::lifecycle::preconditions::agent_exists;
use crate::lifecycle::session::take_away;
use crate::lifecycle::tmux::Tmux;
use crate::process::file_watcher::Notices;
use crate::store::{Home, LoopDir, Message, cache, inbox};
use crate::ui::say;
use crate::ui::status::next_step;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn resume(words: &ResumeWords) -> Result<i32, Failure> {
    match &words.name {
        Some(name) => one(name, words),
        None => all(words),
    }
}

/// Every loop that crashed goes on in the background; one that had a terminal waits for a person at one.
fn all(words: &ResumeWords) -> Result<i32, Failure> {
    let home = Home::locate()?;
    let (mut code, mut found) = (0, false);
    for name in home.names()? {
        let visit = match Visit::in_home(home.clone(), &name) {
            Ok(visit) if visit.status() == Status::Crashed => visit,
            Ok(_) => continue,
            Err(failure) => {
                code = failure.report();
                continue;
            }
        };
        found = true;
        if !visit.view.header.background {
            warn(format!(
                "{name:?} ran in a terminal: ralph resume {name} goes on in this one"
            ));
        } else if let Err(failure) = one(&name, words) {
            code = failure.report();
        }
    }
    if !found {
        say("no loop has crashed: there is nothing to resume\n");
    }
    Ok(code)
}

fn one(name: &str, words: &ResumeWords) -> Result<i32, Failure> {
    let visit = Visit::as_operator(name)?;
    let state = &visit.view.state;
    if visit.is_in_session() {
        return in_session(&visit, words);
    }
    if visit.held && state.wish == Wish::Go {
        if !words.now {
            warn(format!("{name:?} is not paused"));
        }
        // Before it is hurried: the next prompt may then be made at once.
        if let Some(text) = &words.answer {
            inbox::append(&visit.dir, &Message::Answered { text: text.clone() })?;
            say("your words go into its next prompt\n");
        }
        if words.now {
            inbox::append(&visit.dir, &Message::Hurried)?;
            say(&format!("resumed ralph loop for {name}\n"));
        }
        return Ok(0);
    }
    if state.plan.agent.command.is_empty() {
        return Err(Failure::usage(
            format!(
                "the agent of {name:?} is {}: ralph cannot call it",
                state.plan.agent.name
            ),
            format!("that program starts a new loop; ralph stop {name} ends this one"),
        ));
    }
    if state.plan.worktree.is_some() {
        not_aimed()?;
    }
    // Killed between its decision and its last words, it has these to say before anything else.
    let unsaid = state.outcome().is_some() && !state.finished;
    if state.outcome().is_some() && !unsaid {
        can_go_on(&visit)?;
    }
    if !visit.held {
        can_start(&visit)?;
    }
    if words.now {
        inbox::append(&visit.dir, &Message::Hurried)?;
    }
    if let Some(text) = &words.answer {
        inbox::append(&visit.dir, &Message::Answered { text: text.clone() })?;
    }
    let mut said = false;
    if visit.held {
        inbox::append(&visit.dir, &Message::Asked { wish: Wish::Go })?;
        said = true;
        if is_heard(&visit.dir) {
            say(&format!("resumed ralph loop for {name}\n"));
            return Ok(0);
        }
        can_start(&visit)?;
    }
    if visit.view.header.background {
        return in_background(&visit, said);
    }
    if state.is_inside() {
        // From here on it is a loop outside of any session, and nothing stands for it there.
        let _ = take_away(state);
    }
    let from = state
        .plan
        .worktree
        .as_ref()
        .map_or(&state.plan.workspace, |own| &own.from);
    let output = as_settings_say(words.output, from);
    let locks = Locks::take(&visit.home, &visit.dir, &state.plan)?;
    if unsaid {
        return supervise(&visit.dir, locks, &state.plan, output);
    }
    if !said {
        inbox::append(&visit.dir, &Message::Asked { wish: Wish::Go })?;
    }
    if !output.json && !output.quiet {
        say(&format!("resumed ralph loop for {name}\n"));
    }
    supervise(&visit.dir, locks, &state.plan, output)
}

/// A session goes on by itself: it can only be told something.
fn in_session(visit: &Visit, words: &ResumeWords) -> Result<i32, Failure> {
    let name = visit.dir.name();
    if visit.view.state.wish != Wish::Go {
        inbox::append(&visit.dir, &Message::Asked { wish: Wish::Go })?;
        say(&format!("resumed ralph loop for {name}\n"));
    } else if words.answer.is_none() {
        warn(format!(
            "{name:?} goes on in its session; ralph stop {name} ends it there"
        ));
    }
    if let Some(text) = &words.answer {
        inbox::append(&visit.dir, &Message::Answered { text: text.clone() })?;
        say("your words go into its next prompt\n");
    }
    Ok(0)
}

/// How long a living runner may take to read its inbox.
const HEARING: Duration = Duration::from_secs(5);
/// What a runner hears it writes down, and that is noticed; how often to look whether it has left instead.
const LEAVING: Duration = Duration::from_millis(20);

/// Whether the runner has taken what was just said to it. One that is about to leave may have looked into its
/// inbox for the last time: then the lock is free before long, and whoever says something must see to it.
fn is_heard(dir: &LoopDir) -> bool {
    let said = std::fs::metadata(dir.inbox()).map_or(0, |data| data.len());
    let (begun, mut notices) = (Instant::now(), Notices::open());
    notices.watch(&dir.journal());
    loop {
        let held = is_held(dir);
        // After the lock: what a runner took before it let go is then seen.
        if cache::read(dir).is_ok_and(|view| view.state.inbox_offset >= said) {
            return true;
        }
        if !held || begun.elapsed() > HEARING {
            return held;
        }
        notices.wait(LEAVING);
    }
}

/// Whether what a loop needs is still there; asked before anything is said to it.
fn can_start(visit: &Visit) -> Result<(), Failure> {
    let plan = &visit.view.state.plan;
    for agent in plan.agents() {
        agent_exists(agent, &plan.workspace, &own_agents(&plan.workspace))?;
    }
    if let Some(name) = plan
        .covered
        .iter()
        .find(|name| std::env::var_os(name).is_none())
    {
        return Err(Failure::usage(
            format!(
                "{name} is not set here, and {:?} was begun with its value",
                visit.dir.name()
            ),
            format!("set {name}, then say it again"),
        ));
    }
    let otherwise = format!(
        ": {:?} lives in a window of it, and stays as it is until then",
        visit.dir.name()
    );
    usable(tmux(visit).as_ref(), &otherwise)
}

/// The tmux that it lives in.
fn tmux(visit: &Visit) -> Option<Tmux> {
    visit.view.header.tmux.clone().map(|socket| Tmux { socket })
}

/// A loop that was spawned goes on as it was started.
fn in_background(visit: &Visit, said: bool) -> Result<i32, Failure> {
    let tmux = tmux(visit);
    let state = &visit.view.state;
    if !said && (state.outcome().is_none() || state.finished) {
        inbox::append(&visit.dir, &Message::Asked { wish: Wish::Go })?;
    }
    launch(&visit.home, &visit.dir, tmux.as_ref())?;
    say(&format!("resumed ralph loop for {}\n", visit.dir.name()));
    Ok(0)
}

/// The user's own agents, for how to install one that is gone.
fn own_agents(workspace: &Path) -> BTreeMap<String, Value> {
    Stack::load(&places(workspace.to_owned(), None))
        .map_or_else(|_| BTreeMap::new(), |stack| Settings::of(&stack).agents)
}

/// What the console shows is no part of a plan: today's settings say. Wrong ones are no reason not to go on.
fn as_settings_say(output: OutputWords, workspace: &Path) -> OutputWords {
    let Ok(stack) = Stack::load(&places(workspace.to_owned(), None)) else {
        return output;
    };
    let all = Settings::of(&stack);
    OutputWords {
        quiet: output.quiet || (all.quiet && !output.json),
        no_stream: output.no_stream || !all.stream,
        raw: output.raw || all.raw,
        ..output
    }
}

/// Asks the engine itself: if it would end in the same way at once, there is something to do first.
fn can_go_on(visit: &Visit) -> Result<(), Failure> {
    let (name, state) = (visit.dir.name(), &visit.view.state);
    let mut trial = state.clone();
    trial.step(
        Now::default(),
        &Event::Asked {
            wish: Wish::Go,
            by: Door::Inbox,
            inbox: None,
        },
    );
    // Child loops that may still be at work change nothing about that.
    let childless = Event::Drained {
        iteration: trial.iteration,
        waited: vec![],
        stopped: vec![],
    };
    trial.step(Now::default(), &childless);
    match (state.status(false), trial.outcome()) {
        (Status::Done, Some(Outcome::Done { .. })) => Err(Failure::usage(
            format!("{name:?} is done"),
            "start a new loop with ralph run; its name may be used again",
        )),
        (_, Some(Outcome::Limit { limit, .. })) => Err(Failure::usage(
            format!("{name:?} has used up its limit ({})", limit.word()),
            next_step(&visit.view.header, &trial, false).unwrap_or_default(),
        )),
        _ => Ok(()),
    }
}
