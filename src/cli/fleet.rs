//! The arguments of `ralph fleet`, and the flags with which any command finds the fleet.

use super::fleet_target::FleetTarget;
use crate::config::{Layer, Origin};
use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The text below the help of `ralph fleet up`.
const UP_HELP: &str = "Only this machine can connect, and nothing is left when it ends. To run a real fleet, see \
    docs/fleet.md.\n\n\
    Example:\n  ralph fleet up";

/// The text below the help of `ralph fleet doctor`.
const DOCTOR_HELP: &str = "Nothing in the fleet changes. Exit code 1 means that something must be fixed.\n\n\
    Examples:\n  ralph fleet doctor --fleet nats://127.0.0.1:4222\n  \
    ralph fleet doctor --monitor 127.0.0.1:8222     reads settings that clients cannot see";

/// What `ralph fleet` does.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Start a server on this machine to try a fleet
    #[command(after_help = UP_HELP)]
    Up(FleetUpArgs),
    /// Check the fleet's servers, your permissions and its workers
    #[command(after_help = DOCTOR_HELP)]
    Doctor(FleetDoctorArgs),
    /// Show workers, the queue, and where loops run
    Status(FleetStatusArgs),
}

// The flags of `ralph spawn` for a loop that runs in the fleet. Not a doc comment: clap would show it as the
// description of the command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SubmitFlags {
    #[command(flatten)]
    pub(crate) target: FleetTarget,
    /// Send uncommitted changes to the fleet too
    #[arg(long, help_heading = "Fleet", requires = "fleet")]
    pub(crate) include_dirty: bool,
    /// Run only on workers with this label
    #[arg(
        long,
        value_name = "KEY=VALUE",
        help_heading = "Fleet",
        requires = "fleet"
    )]
    pub(crate) label: Vec<String>,
}

/// The arguments of `ralph worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) connection: FleetFlags,
    /// Run this many loops at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_slots)]
    pub(crate) slots: usize,
    /// Give this worker a label
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
}

fn parse_slots(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(slots @ 1..=1000) => Ok(slots),
        _ => Err("use a number from 1 to 1000".to_owned()),
    }
}

/// The arguments of `ralph fleet up`.
#[derive(Debug, Args)]
pub(crate) struct FleetUpArgs {
    /// Run this nats-server instead of the one in PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// Listen on this port [default: any free one]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
}

/// The arguments of `ralph fleet doctor`.
#[derive(Debug, Args)]
pub(crate) struct FleetDoctorArgs {
    #[command(flatten)]
    pub(crate) connection: FleetFlags,
    /// Also ask the monitoring port of a server
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) monitor: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `ralph fleet status`.
#[derive(Debug, Args)]
pub(crate) struct FleetStatusArgs {
    #[command(flatten)]
    pub(crate) connection: FleetFlags,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags with which a command finds the fleet. Each overrides a setting.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FleetFlags {
    /// Use the fleet at this address [default: the setting fleet]
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub(crate) fleet: Option<String>,
    /// Use this pool [default: the setting fleetPool]
    #[arg(long, value_name = "NAME", help_heading = "Fleet")]
    pub(crate) pool: Option<String>,
    /// Log in with this credentials file
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub(crate) creds: Option<PathBuf>,
    /// Log in with the nkey seed in this file
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub(crate) nkey: Option<PathBuf>,
    /// Require TLS, and verify servers with the certificates in this file
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Present this TLS certificate
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl FleetFlags {
    /// Returns the flags as the top layer of settings.
    pub(crate) fn layer(&self) -> Layer {
        let path = |path: &Option<PathBuf>| {
            let absolute = path.as_ref().map(std::path::absolute);
            absolute.and_then(|path| Some(path.ok()?.to_str()?.to_owned()))
        };
        let values = [
            ("fleet", self.fleet.clone().filter(|url| !url.is_empty())),
            ("fleet-pool", self.pool.clone()),
            ("fleet-creds", path(&self.creds)),
            ("fleet-nkey", path(&self.nkey)),
            ("fleet-ca", path(&self.tls_ca)),
            ("fleet-cert", path(&self.tls_cert)),
            ("fleet-key", path(&self.tls_key)),
        ];
        let values = values.into_iter();
        let values = values.filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
        Layer {
            origin: Origin::Flag,
            values: values.collect::<Map<String, Value>>(),
        }
    }
}
