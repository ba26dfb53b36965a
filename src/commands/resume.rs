//! `ralph resume`: continues a loop from the state in its journal.

use super::open_loop::{open_as_operator, open_in};
use super::run::settings_paths;
use super::supervise::supervise;
use crate::cli::{OutputArgs, ResumeArgs};
use crate::config::agents::AgentPreset;
use crate::config::{Config, LayerStack, Settings};
use crate::engine::event::{Request, RequestSource};
use crate::engine::{Event, ExitCode, Now, Outcome, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::{LoopHandle, is_held};
use crate::lifecycle::launch::{check_tmux, launch};
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::preconditions::check_agent;
use crate::lifecycle::session::{self, remove_loop_file};
use crate::lifecycle::tmux::Tmux;
use crate::lifecycle::worktree_request::reject_git_redirection;
use crate::process::file_watcher::FileWatcher;
use crate::store::{InboxMessage, LoopDir, StateDir, cache, inbox};
use crate::ui::outcome_text::next_step;
use crate::ui::print::{print_message, report_error, warn};
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    match &args.name {
        Some(name) => resume_one(name, args),
        None => resume_crashed(args),
    }
}

/// Resumes every background loop that crashed. Prints a warning for each crashed foreground loop,
/// because these need a terminal.
fn resume_crashed(args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    let (mut code, mut found) = (ExitCode::Success, false);
    for name in state_dir.loop_names()? {
        let handle = match open_in(state_dir.clone(), &name) {
            Ok(handle) if handle.status() == Status::Crashed => handle,
            Ok(_) => continue,
            Err(error) => {
                code = report_error(error);
                continue;
            }
        };
        found = true;
        if !handle.view.header.background {
            warn(format!(
                "not resumed: {name:?} ran in the foreground; run `ralph resume {name}` to continue it in this terminal"
            ));
        } else if let Err(error) = resume_one(&name, args) {
            code = report_error(error);
        }
    }
    if !found {
        print_message("nothing to resume: no loop has crashed\n");
    }
    Ok(code)
}

fn resume_one(name: &str, args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let handle = open_as_operator(name)?;
    let state = &handle.view.state;
    if handle.is_in_session() || session::is_paused(state) {
        return resume_in_session(&handle, args);
    }
    if handle.held && state.request == Request::Go {
        if !args.now {
            warn(format!("{name:?} is not paused: it is already running"));
        }
        // Send the answer first, because after `--now` the runner may build the next prompt at
        // once.
        if let Some(text) = &args.answer {
            inbox::append(&handle.dir, &InboxMessage::Answered { text: text.clone() })?;
            print_message("your message will be in its next prompt\n");
        }
        if args.now {
            inbox::append(&handle.dir, &InboxMessage::Hurried)?;
            print_message(&format!("resumed ralph loop for {name}\n"));
        }
        return Ok(ExitCode::Success);
    }
    if state.plan.agent.command.is_empty() {
        return Err(CommandError::usage(
            format!(
                "cannot resume {name:?}: its agent is {}",
                state.plan.agent.name
            ),
            format!(
                "start a new loop from that program, and run `ralph stop {name}` to end this one"
            ),
        ));
    }
    if state.plan.worktree.is_some() {
        reject_git_redirection()?;
    }
    // The runner was killed after it decided on an ending and before it recorded the ending. Record
    // it now.
    let must_finish = state.outcome().is_some() && !state.finished;
    if state.outcome().is_some() && !must_finish {
        check_would_continue(&handle)?;
    }
    if !handle.held {
        check_can_start(&handle)?;
    }
    if args.now {
        inbox::append(&handle.dir, &InboxMessage::Hurried)?;
    }
    if let Some(text) = &args.answer {
        inbox::append(&handle.dir, &InboxMessage::Answered { text: text.clone() })?;
    }
    let mut requested = false;
    if handle.held {
        inbox::append(
            &handle.dir,
            &InboxMessage::Asked {
                request: Request::Go,
            },
        )?;
        requested = true;
        if wait_until_read(&handle.dir) {
            print_message(&format!("resumed ralph loop for {name}\n"));
            return Ok(ExitCode::Success);
        }
        check_can_start(&handle)?;
    }
    if handle.view.header.background {
        return resume_in_background(&handle, requested);
    }
    if state.is_in_session() {
        // The loop leaves its session, so the workspace's loop file must no longer refer to it.
        let _ = remove_loop_file(state);
    }
    let project_dir = state
        .plan
        .worktree
        .as_ref()
        .map_or(&state.plan.workspace, |own| &own.from);
    let output = apply_settings(args.output, project_dir);
    let locks = LoopLocks::acquire(&handle.state_dir, &handle.dir, &state.plan)?;
    if must_finish {
        return supervise(&handle.dir, locks, &state.plan, output);
    }
    if !requested {
        inbox::append(
            &handle.dir,
            &InboxMessage::Asked {
                request: Request::Go,
            },
        )?;
    }
    if !output.json && !output.quiet {
        print_message(&format!("resumed ralph loop for {name}\n"));
    }
    supervise(&handle.dir, locks, &state.plan, output)
}

/// Sends requests to a loop in a client session. Starts no supervisor, because the client runs the
/// agent.
fn resume_in_session(handle: &LoopHandle, args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let name = handle.dir.name();
    if handle.view.state.request != Request::Go {
        inbox::append(
            &handle.dir,
            &InboxMessage::Asked {
                request: Request::Go,
            },
        )?;
        print_message(&format!("resumed ralph loop for {name}\n"));
        if session::is_paused(&handle.view.state) {
            print_message("send any message in its session to continue\n");
        }
    } else if args.answer.is_none() {
        warn(format!(
            "{name:?} is already running in its session; run `ralph stop {name}` to end it there"
        ));
    }
    if let Some(text) = &args.answer {
        inbox::append(&handle.dir, &InboxMessage::Answered { text: text.clone() })?;
        print_message("your message will be in its next prompt\n");
    }
    Ok(ExitCode::Success)
}

/// The maximum time for a running runner to read its inbox.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks whether the runner has exited. Changes to its journal are noticed at
/// once.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for the runner to read its inbox, at most [`READ_TIMEOUT`]. Returns false if the runner
/// exited without reading it. The caller must then start a new runner.
fn wait_until_read(dir: &LoopDir) -> bool {
    let inbox_len = std::fs::metadata(dir.inbox()).map_or(0, |data| data.len());
    let (start, mut watcher) = (Instant::now(), FileWatcher::open());
    watcher.watch(&dir.journal());
    loop {
        let held = is_held(dir);
        // Read the state after checking the lock, to see everything that the runner wrote before it
        // exited.
        if cache::read(dir).is_ok_and(|view| view.state.inbox_offset >= inbox_len) {
            return true;
        }
        if !held || start.elapsed() > READ_TIMEOUT {
            return held;
        }
        watcher.wait(EXIT_POLL_INTERVAL);
    }
}

/// Checks that the agents, the redacted variables and tmux are still available. Call this before
/// sending any request, so that an error leaves the loop unchanged.
fn check_can_start(handle: &LoopHandle) -> Result<(), CommandError> {
    let plan = &handle.view.state.plan;
    for agent in plan.agents() {
        check_agent(agent, &plan.workspace, &known_agents(&plan.workspace))?;
    }
    if let Some(name) = plan
        .redacted
        .iter()
        .find(|name| std::env::var_os(name).is_none())
    {
        return Err(CommandError::usage(
            format!(
                "the environment variable {name} is not set, but {:?} was started with its value",
                handle.dir.name()
            ),
            format!(
                "set {name}, then run `ralph resume {}` again",
                handle.dir.name()
            ),
        ));
    }
    let note = format!(
        "; {:?} runs in a tmux window and was not resumed",
        handle.dir.name()
    );
    check_tmux(tmux(handle).as_ref(), &note)
}

/// Returns the tmux server in whose window the loop runs. `None` if it runs without tmux.
fn tmux(handle: &LoopHandle) -> Option<Tmux> {
    handle
        .view
        .header
        .tmux
        .clone()
        .map(|socket| Tmux { socket })
}

/// Launches a new supervisor in the background, in tmux or without it, as `ralph spawn` did. With
/// `requested`, a request to resume is already in the inbox.
fn resume_in_background(handle: &LoopHandle, requested: bool) -> Result<ExitCode, CommandError> {
    let tmux = tmux(handle);
    let state = &handle.view.state;
    if !requested && (state.outcome().is_none() || state.finished) {
        inbox::append(
            &handle.dir,
            &InboxMessage::Asked {
                request: Request::Go,
            },
        )?;
    }
    launch(&handle.state_dir, &handle.dir, tmux.as_ref())?;
    print_message(&format!("resumed ralph loop for {}\n", handle.dir.name()));
    Ok(ExitCode::Success)
}

/// Returns all known agents, whose install commands are used in hints. Ignores invalid settings.
fn known_agents(workspace: &Path) -> Vec<(String, AgentPreset)> {
    let paths = settings_paths(workspace.to_owned(), None);
    LayerStack::load(&paths)
        .and_then(Config::new)
        .or_else(|_| Config::new(LayerStack::defaults()))
        .map_or_else(|_| vec![], |config| config.presets)
}

/// Applies the current settings for the console, which are not part of the plan. Ignores invalid
/// settings, because the loop can be resumed without them.
fn apply_settings(output: OutputArgs, workspace: &Path) -> OutputArgs {
    let Ok(stack) = LayerStack::load(&settings_paths(workspace.to_owned(), None)) else {
        return output;
    };
    let settings = Settings::from_layers(&stack);
    OutputArgs {
        quiet: output.quiet || (settings.quiet && !output.json),
        no_stream: output.no_stream || !settings.stream,
        raw: output.raw || settings.raw,
        ..output
    }
}

/// Tries the resume on a copy of the state. Returns an error if the loop would end again at once.
fn check_would_continue(handle: &LoopHandle) -> Result<(), CommandError> {
    let (name, state) = (handle.dir.name(), &handle.view.state);
    let mut trial = state.clone();
    trial.step(
        Now::default(),
        &Event::Asked {
            request: Request::Go,
            by: RequestSource::Inbox,
            inbox: None,
        },
    );
    // Running child loops make no difference here, so assume that there are none.
    let no_children = Event::Drained {
        iteration: trial.iteration,
        waited: vec![],
        stopped: vec![],
    };
    trial.step(Now::default(), &no_children);
    match (state.status(false), trial.outcome()) {
        (Status::Done, Some(Outcome::Done { .. })) => Err(CommandError::usage(
            format!("{name:?} is done: there is nothing to resume"),
            "start a new loop with `ralph run`; you can reuse the name",
        )),
        (_, Some(Outcome::Limit { limit, .. })) => Err(CommandError::usage(
            format!("{name:?} has reached its limit ({})", limit.as_str()),
            next_step(&handle.view.header, &trial, false).unwrap_or_default(),
        )),
        _ => Ok(()),
    }
}
