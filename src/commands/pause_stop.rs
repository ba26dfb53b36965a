//! `ralph pause` and `ralph stop`: send the request to the loop's inbox.

use super::open_loop::open_as_operator;
use super::supervise::run_in_process;
use crate::cli::OutputArgs;
use crate::engine::event::Request;
use crate::engine::{ExitCode, Phase, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::session::apply_hook_events;
use crate::lifecycle::watcher::LoopWatcher;
use crate::runner::HookCaller;
use crate::store::{InboxMessage, inbox, view_with_inbox};
use crate::ui::print::{print_message, warn};
use std::time::Duration;

pub(crate) fn pause(name: &str) -> Result<ExitCode, CommandError> {
    let handle = open_as_operator(name)?;
    match handle.status() {
        Status::Running if handle.view.state.request == Request::Go => {
            inbox::append(
                &handle.dir,
                &InboxMessage::Asked {
                    request: Request::Pause,
                },
            )?;
            let busy = !matches!(
                handle.view.state.phase,
                Phase::Resting { .. } | Phase::NotStarted
            );
            let note = if busy {
                "the running agent finishes first\n"
            } else {
                ""
            };
            print_message(&format!("paused ralph loop for {name}\n{note}"));
            Ok(ExitCode::Success)
        }
        Status::Running | Status::Paused => {
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

pub(crate) fn stop(name: &str) -> Result<ExitCode, CommandError> {
    let handle = open_as_operator(name)?;
    match handle.status() {
        // The loop ends at once. The client is not notified: its next stop hook finds no loop.
        Status::Running if handle.is_in_session() => {
            inbox::append(
                &handle.dir,
                &InboxMessage::Asked {
                    request: Request::StopNow,
                },
            )?;
            let locks = LoopLocks::acquire_own(&handle.dir, &handle.view.state.plan)?;
            apply_hook_events(
                &handle.dir,
                &locks,
                HookCaller::default(),
                vec![],
                &mut |message| warn(message),
            )?;
        }
        Status::Running => {
            let mut watcher = LoopWatcher::new(&handle.dir).map_err(CommandError::broken)?;
            inbox::append(
                &handle.dir,
                &InboxMessage::Asked {
                    request: Request::StopNow,
                },
            )?;
            wait_for_end(&handle, &mut watcher)?;
        }
        Status::Paused | Status::Crashed => {
            inbox::append(
                &handle.dir,
                &InboxMessage::Asked {
                    request: Request::StopNow,
                },
            )?;
            let _locks =
                LoopLocks::acquire(&handle.state_dir, &handle.dir, &handle.view.state.plan)?;
            run_in_process(
                &handle.dir,
                OutputArgs {
                    no_stream: true,
                    ..OutputArgs::default()
                },
            )?;
        }
        status => {
            warn(format!(
                "{name:?} is not running: its status is {}",
                status.as_str()
            ));
            return Ok(ExitCode::Success);
        }
    }
    print_message(&format!("stopped ralph loop for {name}\n"));
    Ok(ExitCode::Success)
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
    let state = view_with_inbox(&handle.dir)?.state;
    match state.status(false) {
        Status::Crashed => {
            let name = handle.dir.name();
            let message = format!("the runner of {name:?} died before it recorded the stop");
            Err(CommandError::broken(message)
                .with_hint(format!("run `ralph stop {name}` again to record it")))
        }
        _ => Ok(()),
    }
}
