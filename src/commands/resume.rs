//! `ralph resume`: continues a loop from the state in its journal.

use super::open_loop::{for_each, open_all_as_operator, open_as_operator, open_in, send};
use super::run::settings_paths;
use super::say::{check_reads_messages, message};
use super::supervise::supervise;
use crate::cli::{OutputArgs, ResumeArgs};
use crate::config::agents::AgentPreset;
use crate::config::check_glob;
use crate::config::{Config, LayerStack, Settings, SettingsFiles};
use crate::engine::event::{Request, RequestSource};
use crate::engine::format::shell_quote;
use crate::engine::touched::TouchedFiles;
use crate::engine::{Event, ExitCode, Liveness, Now, Outcome, Status};
use crate::git::worktree;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::launch::{check_tmux, launch};
use crate::lifecycle::locks::{LoopLocks, mark_as_starting};
use crate::lifecycle::preconditions::{check_agent, check_sandbox};
use crate::lifecycle::requests::{Delivery, deliver};
use crate::lifecycle::session::{self, remove_loop_file};
use crate::lifecycle::tmux::Tmux;
use crate::lifecycle::trust::TrustRecords;
use crate::lifecycle::worktree_request::reject_git_redirection;
use crate::proof::pattern_matches;
use crate::store::{InboxMessage, StateDir, inbox};
use crate::ui::outcome_text::resume_command;
use crate::ui::print::{print_message, report_error, warn};
use std::path::Path;

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    match &args.names[..] {
        [] => resume_interrupted(args),
        [name] => resume_one(name, args),
        names => resume_several(names, args),
    }
}

/// Resumes every background loop that a crash or a signal interrupted, but none that a person
/// paused. Foreground loops need a terminal, so they are only named in a warning.
fn resume_interrupted(args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    let (mut code, mut found) = (ExitCode::Success, false);
    for name in state_dir.loop_names()? {
        let handle = match open_in(state_dir.clone(), &name) {
            Ok(handle) if is_interrupted(&handle) => handle,
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
        print_message("nothing to resume: no loop was interrupted by a crash or a shutdown\n");
    }
    Ok(code)
}

/// Returns whether the loop crashed, or was paused by a signal such as the system sends at a
/// shutdown.
fn is_interrupted(handle: &LoopHandle) -> bool {
    match handle.status() {
        Status::Crashed => true,
        Status::Paused => {
            let source = handle.view.state.paused_by;
            !handle.is_live() && source.is_some_and(RequestSource::is_signal)
        }
        _ => false,
    }
}

/// Resumes loops that do not need this terminal. A failure does not keep the others from running.
fn resume_several(names: &[String], args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let handles = open_all_as_operator(names)?;
    for handle in &handles {
        let name = handle.dir.name();
        if !handle.view.header.background && !handle.is_live() {
            return Err(CommandError::usage(
                format!("{name:?} runs in the foreground, so it cannot be resumed with others"),
                format!("resume it alone: ralph resume {name}"),
            ));
        }
    }
    for_each(handles, |handle| resume_one(handle.dir.name(), args))
}

fn resume_one(name: &str, args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let handle = open_as_operator(name)?;
    let state = &handle.view.state;
    check_accept(&handle, args)?;
    if handle.is_in_session() || session::is_paused(state) {
        return resume_in_session(&handle, args);
    }
    if args.no_tmux && !handle.view.header.background {
        return Err(CommandError::usage(
            format!("--no-tmux does not apply to {name:?}: it runs in the foreground"),
            format!("resume it without the flag: ralph resume {name}"),
        ));
    }
    if handle.liveness == Liveness::Starting || (handle.is_live() && state.request == Request::Go) {
        return send_to_running_loop(&handle, args);
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
    let is_recorded = state.finished || handle.state_dir.is_mirror();
    let must_finish = state.outcome().is_some() && !is_recorded;
    if state.outcome().is_some() && !must_finish {
        check_would_continue(&handle, args)?;
    }
    if args.answer.is_some() {
        check_reads_messages(name, state)?;
    }
    let mut requests = requests(args);
    if !must_finish {
        requests.push(InboxMessage::Asked {
            request: Request::Go,
        });
    }
    if handle.is_live() {
        let sent = std::mem::take(&mut requests);
        if deliver(&handle.dir, &sent)? != Delivery::Exited {
            print_message(&format!("resumed ralph loop for {name}\n"));
            return Ok(ExitCode::Success);
        }
    }
    if handle.state_dir.is_mirror() {
        // The process that keeps the mirror current puts the loop into the queue.
        for request in &requests {
            inbox::append(&handle.dir, request)?;
        }
        print_message(&format!("queued ralph loop for {name}\n"));
        return Ok(ExitCode::Success);
    }
    check_can_start(&handle, args)?;
    if handle.view.header.background {
        return resume_in_background(&handle, args, &requests);
    }
    let project_dir = state
        .plan
        .worktree
        .as_ref()
        .map_or(&state.plan.workspace, |own| &own.from);
    let output = apply_settings(args.output, project_dir);
    let locks = LoopLocks::acquire(&handle.state_dir, &handle.dir, &state.plan)?;
    for request in &requests {
        inbox::append(&handle.dir, request)?;
    }
    if state.is_in_session() {
        // The loop leaves its session, so the workspace's loop file must no longer refer to it.
        let _ = remove_loop_file(state);
    }
    if !must_finish && !output.json && !output.quiet {
        print_message(&format!("resumed ralph loop for {name}\n"));
    }
    supervise(&handle.dir, locks, &state.plan, output)
}

/// Returns the requests of the flags, in the order in which the runner must read them: after
/// `--now` it may build the next prompt at once.
fn requests(args: &ResumeArgs) -> Vec<InboxMessage> {
    let accepted = accepted(args).map(|globs| InboxMessage::Accepted { globs });
    let answer = args.answer.as_deref().map(message);
    let now = args.now.then_some(InboxMessage::Hurried);
    accepted.into_iter().chain(answer).chain(now).collect()
}

/// Sends the flags' requests to a loop that is running, or that another command is starting.
fn send_to_running_loop(handle: &LoopHandle, args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let name = handle.dir.name();
    let is_paused = handle.view.state.request != Request::Go;
    let go = is_paused.then_some(InboxMessage::Asked {
        request: Request::Go,
    });
    if !args.now && !is_paused {
        let doing = match handle.liveness {
            Liveness::Starting => "starting",
            _ => "running",
        };
        warn(format!("{name:?} is not paused: it is already {doing}"));
    }
    let requests: Vec<_> = requests(args).into_iter().chain(go).collect();
    send(handle, &requests)?;
    if args.answer.is_some() {
        print_message("your message will be in its next prompt\n");
    }
    if args.now || is_paused {
        print_message(&format!("resumed ralph loop for {name}\n"));
    }
    Ok(ExitCode::Success)
}

/// Sends requests to a loop in a client session. No supervisor is started: the client runs the
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
        inbox::append(&handle.dir, &message(text))?;
        print_message("your message will be in its next prompt\n");
    }
    Ok(ExitCode::Success)
}

/// Checks that the workspace, the agents, the redacted variables and tmux are still available, so
/// that an error leaves the loop unchanged.
fn check_can_start(handle: &LoopHandle, args: &ResumeArgs) -> Result<(), CommandError> {
    let (name, plan) = (handle.dir.name(), &handle.view.state.plan);
    if let Some(own) = plan.worktree.as_ref().filter(|own| !worktree::exists(own)) {
        return Err(CommandError::usage(
            format!("cannot resume {name:?}: {}", worktree::missing_message(own)),
            format!("or remove the loop: ralph rm {name}"),
        ));
    }
    if !plan.workspace.is_dir() {
        return Err(CommandError::usage(
            format!(
                "cannot resume {name:?}: its workspace no longer exists: {}",
                plan.workspace.display()
            ),
            format!("restore the directory, or remove the loop: ralph rm {name}"),
        ));
    }
    for agent in plan.agents() {
        check_agent(agent, &plan.workspace, &known_agents(&plan.workspace))?;
    }
    check_sandbox(plan, handle.state_dir.root()).map_err(|error| name_loop(error, name))?;
    if let Some(variable) = plan
        .redacted
        .iter()
        .find(|variable| std::env::var_os(variable).is_none())
    {
        return Err(CommandError::usage(
            format!(
                "the environment variable {variable} is not set, but {name:?} was started with its value"
            ),
            format!("set {variable}, then run `ralph resume {name}` again"),
        ));
    }
    check_tmux(tmux(handle, args).as_ref()).map_err(|error| name_loop(error, name))
}

/// Adds the loop to the hint of an error that does not name it: several loops may be resumed.
fn name_loop(error: CommandError, name: &str) -> CommandError {
    let hint = error.hint().map(|hint| format!("{hint}; "));
    let hint = format!("{}{name:?} was not resumed", hint.unwrap_or_default());
    error.with_hint(hint)
}

/// Returns the tmux server in whose window the loop runs; `None` if it runs without tmux.
fn tmux(handle: &LoopHandle, args: &ResumeArgs) -> Option<Tmux> {
    let socket = handle.view.header.tmux.clone().filter(|_| !args.no_tmux)?;
    Some(Tmux { socket })
}

/// Launches a new supervisor in the background, in tmux or without it, as `ralph spawn` did.
fn resume_in_background(
    handle: &LoopHandle,
    args: &ResumeArgs,
    requests: &[InboxMessage],
) -> Result<ExitCode, CommandError> {
    let LoopHandle { dir, view, .. } = handle;
    let locks = LoopLocks::acquire_own(dir, &view.state.plan)?;
    let _start_mark = mark_as_starting(dir, &view.state.plan)?;
    drop(locks);
    let tmux = tmux(handle, args);
    launch(&handle.state_dir, dir, tmux.as_ref(), requests)
        .map_err(|error| name_loop(error, dir.name()))?;
    print_message(&format!("resumed ralph loop for {}\n", dir.name()));
    Ok(ExitCode::Success)
}

/// Returns all known agents, whose install commands are used in hints. Ignores invalid settings, and
/// those that the user does not trust.
fn known_agents(workspace: &Path) -> Vec<(String, AgentPreset)> {
    let paths = settings_paths(workspace.to_owned(), None);
    SettingsFiles::read(&paths)
        .and_then(|mut files| {
            let records = TrustRecords::new(paths.user_dir.as_deref());
            records.remove_untrusted(&mut files, workspace);
            Config::new(files.into_stack())
        })
        .or_else(|_| Config::new(LayerStack::defaults()))
        .map_or_else(|_| vec![], |config| config.presets)
}

/// Applies the current settings for the console, which are not part of the plan. Ignores invalid
/// settings, because the loop can be resumed without them.
fn apply_settings(output: OutputArgs, workspace: &Path) -> OutputArgs {
    let Ok(files) = SettingsFiles::read(&settings_paths(workspace.to_owned(), None)) else {
        return output;
    };
    let settings = Settings::from_layers(&files.into_stack());
    OutputArgs {
        quiet: output.quiet || (settings.quiet && !output.json),
        no_stream: output.no_stream || !settings.stream,
        raw: output.raw || settings.raw,
        ..output
    }
}

/// Tries the resume on a copy of the state; returns an error if the loop would end again at once.
fn check_would_continue(handle: &LoopHandle, args: &ResumeArgs) -> Result<(), CommandError> {
    let (name, state) = (handle.dir.name(), &handle.view.state);
    let answer = args.answer.as_deref();
    let mut trial = state.clone();
    if let Some(globs) = accepted(args) {
        trial.step(Now::default(), &Event::Accepted { globs, inbox: None });
    }
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
    match (state.status(Liveness::Idle), trial.outcome()) {
        (Status::Done, Some(Outcome::Done { .. })) => Err(CommandError::usage(
            format!("{name:?} is done: there is nothing to resume"),
            "start a new loop with `ralph run`; you can reuse the name",
        )),
        (_, Some(Outcome::Limit { limit, .. })) => Err(CommandError::usage(
            format!("{name:?} has reached its limit ({})", limit.as_str()),
            resume_command(name, &trial, answer.map(shell_quote).as_deref()),
        )),
        (_, Some(Outcome::Disputed { .. })) => Err(CommandError::usage(
            format!("{name:?} has no iteration left for its agent, and its checks are disputed"),
            resume_command(name, &trial, answer.map(shell_quote).as_deref()),
        )),
        _ => Ok(()),
    }
}

/// Returns the globs of `--accept`; `None` without the flag.
fn accepted(args: &ResumeArgs) -> Option<Vec<String>> {
    (!args.accept.is_empty()).then(|| args.accept.clone())
}

/// Checks that the loop waits for what `--accept` decides.
fn check_accept(handle: &LoopHandle, args: &ResumeArgs) -> Result<(), CommandError> {
    if args.accept.is_empty() {
        return Ok(());
    }
    let name = handle.dir.name();
    let outcome = handle.view.state.outcome();
    if !matches!(outcome, Some(Outcome::Disputed { .. })) {
        return Err(CommandError::usage(
            format!("--accept does not apply to {name:?}: no change of its tests is disputed"),
            format!("resume it without the flag: ralph resume {name}"),
        ));
    }
    let touched = handle.view.state.look.touched.as_ref();
    for glob in &args.accept {
        check_glob("--accept", glob)?;
        let names: Vec<&str> = touched.iter().flat_map(|touched| touched.names()).collect();
        let is_disputed = names.iter().any(|path| pattern_matches(glob, path));
        // Without files, the missing tests themselves are disputed.
        let is_known = touched.is_some_and(TouchedFiles::has_all_names) && !names.is_empty();
        if is_known && !is_disputed {
            return Err(CommandError::usage(
                format!("--accept: {glob:?} matches none of the disputed files"),
                format!("they are {}", names.join(", ")),
            ));
        }
    }
    Ok(())
}
