//! Runs a command with `--fleet`: copies the loops that it needs into a mirror, and runs the same command
//! there as a process of its own.

use super::connection;
use crate::cli::Command as RalphCommand;
use crate::cli::fleet_target::FleetTarget;
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::error::FleetError;
use crate::fleet::mirror::{Mirror, MirrorScope};
use crate::fleet::nats::NatsExchange;
use crate::lifecycle::error::CommandError;
use crate::os;
use crate::store::StateDir;
use crate::ui::print::warn_all;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// How often to look whether the command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a command may take to end by itself after Ctrl-C, which the terminal sends to it too.
const INTERRUPT_TIME: Duration = Duration::from_secs(1);

/// Runs a command with `--fleet`; `None` if it is not one.
pub(crate) fn run_mirrored(
    command: &RalphCommand,
    args: &[OsString],
) -> Option<Result<ExitCode, CommandError>> {
    let (target, scope) = scope_of(command)?;
    target.fleet.as_ref()?;
    let state_dir = match StateDir::locate() {
        Ok(state_dir) if state_dir.is_mirror() => return None,
        Ok(state_dir) => state_dir,
        Err(error) => return Some(Err(error.into())),
    };
    Some(run(target, scope, &state_dir, args))
}

fn run(
    target: &FleetTarget,
    scope: MirrorScope,
    state_dir: &StateDir,
    args: &[OsString],
) -> Result<ExitCode, CommandError> {
    let connection = connection(&target.flags())?;
    let scope = MirrorScope {
        repository: std::env::current_dir().ok(),
        ..scope
    };
    block_on(async {
        let exchange = NatsExchange::connect(&connection).await?;
        // From here on, a signal ends the command, and this process removes the mirror.
        let signals = Signals::listen()?;
        let opening = Mirror::open(Arc::new(exchange), state_dir, scope);
        let (mirror, warnings) = tokio::select! {
            opened = opening => opened?,
            signal = signals.next() => return Ok(ExitCode::from_signal(signal.as_raw())),
        };
        warn_all(warnings);
        let child = start(&mirror.state_dir(), args)?;
        mirror.serve(wait(child, &signals)).await?
    })?
}

/// Starts the same command in the mirror. It ignores `--fleet` there.
fn start(mirror: &StateDir, args: &[OsString]) -> Result<Child, CommandError> {
    let failed = |error: std::io::Error| CommandError::broken(format!("cannot run ralph: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .args(args.iter().skip(1))
        .env("RALPH_STATE_DIR", mirror.root());
    os::set_parent_death_signal(&mut command);
    command.spawn().map_err(failed)
}

/// Waits until the command has ended, passes signals on, and returns its exit code.
async fn wait(mut child: Child, signals: &Signals) -> Result<ExitCode, CommandError> {
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

/// The signals that end a command.
struct Signals {
    received: tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<Signal>>,
}

impl Signals {
    fn listen() -> Result<Self, FleetError> {
        let (sender, received) = tokio::sync::mpsc::unbounded_channel();
        for (kind, name) in [
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::hangup(), Signal::HUP),
        ] {
            let mut arriving =
                signal(kind).map_err(|error| FleetError::Other(error.to_string()))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arriving.recv().await.is_some() && sender.send(name).is_ok() {}
            });
        }
        Ok(Self {
            received: tokio::sync::Mutex::new(received),
        })
    }

    async fn next(&self) -> Signal {
        let next = self.received.lock().await.recv().await;
        next.unwrap_or(Signal::TERM)
    }
}

/// Returns the flags of a command that can use the fleet, and what it needs of it.
fn scope_of(command: &RalphCommand) -> Option<(&FleetTarget, MirrorScope)> {
    let all = MirrorScope::default();
    let of = |names: &[String]| MirrorScope {
        names: Some(names.to_vec()),
        ..MirrorScope::default()
    };
    let one = |name: &String| of(std::slice::from_ref(name));
    let steered = |scope: MirrorScope| MirrorScope {
        live: true,
        ..scope
    };
    let read = |scope: MirrorScope| MirrorScope {
        files: true,
        ..scope
    };
    let compared = |scope: MirrorScope| MirrorScope {
        code: true,
        ..read(scope)
    };
    Some(match command {
        RalphCommand::Ls(args) => (&args.fleet, all),
        RalphCommand::Stats(args) => (&args.fleet, read(all)),
        RalphCommand::Status(args) => (&args.fleet, read(one(&args.name))),
        RalphCommand::Show(args) => (&args.fleet, compared(one(&args.name))),
        RalphCommand::Diff(args) => (&args.fleet, compared(one(&args.name))),
        RalphCommand::Report(args) => {
            let scope = args.name.as_ref().map_or(all, one);
            (&args.fleet, compared(scope))
        }
        RalphCommand::Logs(args) => {
            let scope = read(one(&args.name));
            let live = args.follow;
            (&args.fleet, MirrorScope { live, ..scope })
        }
        RalphCommand::Top(args) => (&args.fleet, steered(read(all))),
        RalphCommand::Ui(args) => (&args.fleet, steered(read(all))),
        RalphCommand::Pause(args) | RalphCommand::Stop(args) => {
            (&args.fleet, steered(of(&args.names)))
        }
        RalphCommand::Wait(args) => (&args.fleet, steered(of(&args.names))),
        RalphCommand::Set(args) => (&args.fleet, steered(one(&args.name))),
        RalphCommand::Say(args) => (&args.fleet, steered(one(&args.name))),
        RalphCommand::Resume(args) if args.all => (&args.fleet, steered(all)),
        RalphCommand::Resume(args) => (&args.fleet, steered(of(&args.names))),
        _ => return None,
    })
}
