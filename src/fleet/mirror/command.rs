//! Runs a command as a process of its own while a mirror is kept up to date.

use super::{Mirror, MirrorScope};
use crate::engine::ExitCode;
use crate::fleet::exchange::Exchange;
use crate::fleet::signals::EndSignals;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often to look whether the command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a command may take to end by itself after Ctrl-C, which the terminal sends to it too.
const INTERRUPT_TIME: Duration = Duration::from_secs(1);

/// Opens a mirror, runs the command that `start` starts in it, and returns its exit code. Passes
/// warnings to `warn`.
pub(crate) async fn run_in_mirror<E: Exchange>(
    exchange: E,
    state_dir: &StateDir,
    scope: MirrorScope,
    warn: impl FnOnce(Vec<String>),
    start: impl FnOnce(&StateDir) -> Result<Child, CommandError>,
) -> Result<ExitCode, CommandError> {
    // From here on, a signal ends the command, and this process removes the mirror.
    let signals = EndSignals::listen()?;
    let opening = Mirror::open(Arc::new(exchange), state_dir, scope);
    let (mirror, warnings) = tokio::select! {
        opened = opening => opened?,
        signal = signals.next() => return Ok(ExitCode::from_signal(signal.as_raw())),
    };
    warn(warnings);
    let child = start(&mirror.state_dir())?;
    mirror.serve(wait(child, &signals)).await?
}

/// Waits until the command has ended, passes signals on, and returns its exit code.
async fn wait(mut child: Child, signals: &EndSignals) -> Result<ExitCode, CommandError> {
    let pid = Pid::from_raw(child.id() as i32);
    let send = |signal: Signal| pid.map(|pid| kill_process(pid, signal));
    let mut ends_at = None;
    loop {
        let exit = child.try_wait().map_err(CommandError::broken)?;
        if let Some(exit) = exit {
            let signal = exit.signal().map(ExitCode::from_signal);
            let code = exit.code().map(ExitCode::from_code);
            return Ok(code.or(signal).unwrap_or(ExitCode::Failure));
        }
        if ends_at.is_some_and(|at| Instant::now() > at) {
            send(Signal::TERM);
            ends_at = None;
        }
        tokio::select! {
            () = sleep(POLL_INTERVAL) => {}
            signal = signals.next() => match signal {
                Signal::INT => ends_at = Some(Instant::now() + INTERRUPT_TIME),
                signal => drop(send(signal)),
            }
        }
    }
}
