//! `ralph pause` and `ralph stop`: send the request to the loop's inbox.

use super::open_loop::{for_each, open_all_as_operator, open_in, send};
use super::supervise::run_in_process;
use crate::cli::OutputArgs;
use crate::engine::event::Request;
use crate::engine::{ExitCode, Liveness, Outcome, Phase, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::session::apply_hook_events;
use crate::lifecycle::watcher::LoopWatcher;
use crate::runner::HookCaller;
use crate::store::{InboxMessage, cache, inbox};
use crate::ui::print::{print_message, warn};
use std::time::Duration;

const STOP: InboxMessage = InboxMessage::Asked {
    request: Request::StopNow,
};

pub(crate) fn pause(names: &[String]) -> Result<ExitCode, CommandError> {
    for_each(open_all_as_operator(names)?, |handle| pause_one(&handle))
}

fn pause_one(handle: &LoopHandle) -> Result<ExitCode, CommandError> {
    let name = handle.dir.name();
    match handle.status() {
        Status::Starting | Status::Running if handle.view.state.request == Request::Go => {
            send(
                handle,
                &[InboxMessage::Asked {
                    request: Request::Pause,
                }],
            )?;
            let state = &handle.view.state;
            let note = match state.phase {
                Phase::Running { .. } | Phase::Killing { .. } => {
                    "the running agent finishes first\n"
                }
                Phase::Checking if state.iteration == 0 => "the preflight checks finish first\n",
                Phase::Checking | Phase::Looking => "the running checks finish first\n",
                Phase::Committing => "the running commit finishes first\n",
                _ => "",
            };
            print_message(&format!("paused ralph loop for {name}\n{note}"));
            Ok(ExitCode::Success)
        }
        Status::Starting | Status::Running | Status::Paused => {
            warn(format!("{name:?} is already paused or stopping"));
            Ok(ExitCode::Success)
        }
        status => Err(CommandError::usage(
            format!(
                "cannot pause {name:?}: it is not running, its status is {}",
                status.as_str()
            ),
            format!("run `ralph status {name}` for details"),
        )),
    }
}

pub(crate) fn stop(names: &[String]) -> Result<ExitCode, CommandError> {
    // Ask every running loop before waiting for the first, so that they stop at the same time.
    let asked: Vec<_> = open_all_as_operator(names)?
        .into_iter()
        .map(|handle| Ok((ask_to_stop(&handle)?, handle)))
        .collect::<Result<_, CommandError>>()?;
    for_each(asked, |(watcher, handle)| {
        let name = handle.dir.name();
        match watcher {
            Some(mut watcher) => wait_for_end(&handle, &mut watcher)?,
            None if handle.state_dir.is_mirror() && handle.view.state.outcome().is_none() => {
                inbox::append(&handle.dir, &STOP)?;
                let when = match handle.liveness {
                    Liveness::Idle => "when it is resumed",
                    _ => "as soon as a worker takes it",
                };
                print_message(&format!("{name} will be stopped {when}\n"));
                return Ok(ExitCode::Success);
            }
            None if stop_without_runner(&handle)? => {}
            None => {
                warn(format!(
                    "{name:?} is not running: its status is {}",
                    handle.status().as_str()
                ));
                return Ok(ExitCode::Success);
            }
        }
        let state = cache::read(&handle.dir)?.state;
        if let Some(Outcome::Stopped { .. }) = state.outcome() {
            print_message(&format!("stopped ralph loop for {name}\n"));
        } else {
            warn(format!(
                "{name:?} ended before it could be stopped: its status is {}",
                state.status(Liveness::Idle).as_str()
            ));
        }
        Ok(ExitCode::Success)
    })
}

/// Asks the loop's runner to stop, and returns what to wait for; `None` if it has no runner.
fn ask_to_stop(handle: &LoopHandle) -> Result<Option<LoopWatcher>, CommandError> {
    let has_runner = match handle.status() {
        // Queued in the fleet: no worker may come for hours.
        Status::Starting if handle.state_dir.is_mirror() => false,
        Status::Starting | Status::Running => !handle.is_in_session(),
        // Another command is resuming the loop.
        Status::Paused => handle.is_live(),
        _ => false,
    };
    if !has_runner {
        return Ok(None);
    }
    let watcher = LoopWatcher::new(&handle.dir).map_err(CommandError::broken)?;
    send(handle, &[STOP])?;
    Ok(Some(watcher))
}

/// Records the stop of a loop that has no runner. Returns false if the loop has ended.
fn stop_without_runner(handle: &LoopHandle) -> Result<bool, CommandError> {
    let status = handle.status();
    if !matches!(status, Status::Running | Status::Paused | Status::Crashed) {
        return Ok(false);
    }
    let lock = || LoopLocks::acquire_own(&handle.dir, &handle.view.state.plan);
    if status == Status::Running {
        // A hook that holds the lock reads the request. The client is not notified: its next stop
        // hook finds no loop.
        inbox::append(&handle.dir, &STOP)?;
        let locks = lock()?;
        apply_hook_events(
            &handle.dir,
            &locks,
            HookCaller::default(),
            vec![],
            &mut |message| warn(message),
        )?;
    } else {
        let _locks = lock()?;
        inbox::append(&handle.dir, &STOP)?;
        let output = OutputArgs {
            no_stream: true,
            ..OutputArgs::default()
        };
        run_in_process(&handle.dir, output)?;
    }
    Ok(true)
}

/// Waits for the loop to end. The timeout is ten seconds longer than the runner needs to kill the
/// agent and its remaining processes.
fn wait_for_end(handle: &LoopHandle, watcher: &mut LoopWatcher) -> Result<(), CommandError> {
    let grace = &handle.view.state.plan.grace;
    let timeout =
        Duration::from_millis(grace.term_ms + grace.survivor_ms) + Duration::from_secs(10);
    if !watcher.wait_for_end(timeout) {
        let name = handle.dir.name();
        return Err(CommandError::broken(format!(
            "{name:?} was asked to stop but is still running after {} s",
            timeout.as_secs()
        ))
        .with_hint(format!("run `ralph status {name}` to see what it is doing")));
    }
    // The runner paused the loop, or was killed, before it read the request.
    let handle = open_in(handle.state_dir.clone(), handle.dir.name())?;
    if handle.state_dir.is_mirror() {
        return Ok(());
    }
    stop_without_runner(&handle).map(drop)
}
