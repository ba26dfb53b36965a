//! `ralph wait`: waits until loops have ended or paused, and exits with the worst of their exit
//! codes.

use super::open_loop::{open_in, open_to_wait};
use crate::cli::WaitArgs;
use crate::engine::format::duration;
use crate::engine::{ExitCode, Liveness};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::watcher::{THREAD_STACK_SIZE, wait_until_over};
use crate::ui::print::print_message;
use crate::ui::status::line;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub(crate) fn wait(args: &WaitArgs) -> Result<ExitCode, CommandError> {
    let mut names = args.names.clone();
    names.sort_unstable();
    names.dedup();
    let deadline = args
        .timeout
        .map(|timeout| Instant::now() + Duration::from_millis(timeout.0));
    let (sender, receiver) = channel();
    // Open all loops before waiting, so that an unknown name is an error at once.
    let handles = names
        .iter()
        .map(|name| open_to_wait(name))
        .collect::<Result<Vec<_>, _>>()?;
    for handle in &handles {
        notify_when_over(handle, &sender)?;
    }
    let mut worst = ExitCode::Success;
    while !names.is_empty() {
        let result = match deadline {
            Some(at) => receiver.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok(name) = result else {
            let timeout_ms = args.timeout.map_or(0, |timeout| timeout.0);
            return Err(CommandError::timed_out(format!(
                "still running after {}: {}",
                duration(timeout_ms),
                names.join(", ")
            ))
            .with_hint(format!("run `ralph status {}` for details", names[0])));
        };
        names.retain(|other| *other != name);
        let handle = handles
            .iter()
            .find(|handle| handle.dir.name() == name)
            .expect("every name has a handle");
        worst = worst.worse(report_ending(handle)?);
    }
    Ok(worst)
}

/// Starts a thread that sends the loop's name once the loop is over. By then, all of the loop's
/// processes have exited.
fn notify_when_over(handle: &LoopHandle, sender: &Sender<String>) -> Result<(), CommandError> {
    let (dir, sender) = (handle.dir.clone(), sender.clone());
    let name = handle.dir.name().to_owned();
    let wait = move || {
        wait_until_over(&dir);
        let _ = sender.send(name);
    };
    std::thread::Builder::new()
        .stack_size(THREAD_STACK_SIZE)
        .spawn(wait)
        .map(drop)
        .map_err(CommandError::broken)
}

/// Prints the status with which a loop ended, and returns its exit code.
fn report_ending(before: &LoopHandle) -> Result<ExitCode, CommandError> {
    let name = before.dir.name();
    let now = open_in(before.state_dir.clone(), name)?;
    if now.view.header.id != before.view.header.id {
        return Err(CommandError::broken(format!(
            "{name:?} ended, and its name is already used by another loop"
        ))
        .with_hint(format!(
            "the loop that ended is archived in {}",
            before.state_dir.root().join("archive").display()
        )));
    }
    let state = &now.view.state;
    print_message(&format!("{name}: {}\n", line(state, Liveness::Idle)));
    Ok(state.status(Liveness::Idle).exit_code())
}
