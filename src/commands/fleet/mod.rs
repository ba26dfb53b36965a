//! `ralph fleet`: starts a server to try a fleet, checks a fleet, and shows what it does.

mod doctor;
mod fetch;
mod mirrored;
mod status;
mod submit;
mod up;
mod worker;

pub(crate) use fetch::{fetch, rm};
pub(crate) use mirrored::run_mirrored;
pub(crate) use submit::spawn_in_fleet;
pub(crate) use worker::worker;

use super::run::settings_paths;
use super::workspace::ChosenWorkspace;
use crate::cli::fleet::{FleetCommand, FleetFlags};
use crate::config::{Settings, SettingsFiles};
use crate::engine::ExitCode;
use crate::fleet::connection::FleetConnection;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::trust::TrustRecords;
use crate::ui::print::note;
use crate::ui::trust_text;

pub(crate) fn fleet(command: &FleetCommand) -> Result<ExitCode, CommandError> {
    match command {
        FleetCommand::Up(args) => up::up(args),
        FleetCommand::Doctor(args) => doctor::doctor(args),
        FleetCommand::Status(args) => status::status(args),
    }
}

/// Returns how to reach the fleet, by flags and settings. Leaves out what a project's settings say
/// about it unless the user trusts them: code and credentials would go to that address.
pub(crate) fn connection(flags: &FleetFlags) -> Result<FleetConnection, CommandError> {
    let workspace = ChosenWorkspace::find(false)?.path;
    let paths = settings_paths(workspace.clone(), None);
    let mut files = SettingsFiles::read(&paths)?;
    let records = TrustRecords::new(paths.user_dir.as_deref());
    let untrusted = records.remove_untrusted(&mut files, &workspace);
    if !untrusted.is_empty() && flags.fleet.is_none() {
        note(trust_text::skipped(&untrusted));
    }
    let mut stack = files.into_stack();
    stack.push(flags.layer());
    let mut settings = Settings::from_layers(&stack);
    let files = [
        &mut settings.fleet_creds,
        &mut settings.fleet_nkey,
        &mut settings.fleet_ca,
        &mut settings.fleet_cert,
        &mut settings.fleet_key,
    ];
    for path in files.into_iter().flatten() {
        *path = workspace.join(&*path);
    }
    let usage =
        |message: String| CommandError::usage(message, "`ralph help fleet doctor` lists the flags");
    FleetConnection::from_settings(&settings)
        .map_err(|error| usage(error.to_string()))?
        .ok_or_else(|| {
            CommandError::usage(
                "no fleet is set",
                "pass --fleet nats://HOST:4222, or set fleet in your settings; `ralph fleet up` starts a server to try",
            )
        })
}
