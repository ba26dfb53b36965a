//! Runs a command with `--fleet`: copies the loops that it needs into a mirror, and runs the same command
//! there as a process of its own.

use super::connection;
use crate::cli::Command as RalphCommand;
use crate::cli::fleet_target::FleetTarget;
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::mirror::{MirrorScope, run_in_mirror};
use crate::fleet::nats::NatsExchange;
use crate::lifecycle::error::CommandError;
use crate::os;
use crate::store::StateDir;
use crate::ui::print::warn_all;
use std::ffi::OsString;
use std::process::{Child, Command};

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
        run_in_mirror(exchange, state_dir, scope, warn_all, |mirror| {
            start(mirror, args)
        })
        .await
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
