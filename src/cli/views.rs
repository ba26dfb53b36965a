//! The arguments of `ralph ls`, `ralph logs` and `ralph show`.

use super::fleet_target::FleetTarget;
use crate::config::units::Millis;
use clap::Args;

/// The arguments of `ralph ls`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub(crate) struct LsArgs {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the names
    #[arg(long, conflicts_with = "json")]
    pub(crate) names: bool,
    /// List archived loops too
    #[arg(long)]
    pub(crate) all: bool,
    /// List only loops in this state, such as running or crashed; repeatable
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<String>,
    /// List only loops of this repository
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph logs`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub(crate) struct LogsArgs {
    /// The loop
    pub(crate) name: String,
    /// Keep printing new output until the loop ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the output of this iteration [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) iteration: Option<u32>,
    /// Print the agent's raw event stream instead of rendering it
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print all iterations, with what ralph did in between
    #[arg(long, conflicts_with = "iteration")]
    pub(crate) all: bool,
    /// Like --all, but only what happened in this last time, such as 2h
    #[arg(long, value_name = "D", conflicts_with = "iteration")]
    pub(crate) since: Option<Millis>,
    /// Print one JSON object per line: acts of the agent, and with several iterations the journal's
    /// events
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The loop
    pub(crate) name: String,
    /// Show everything about this iteration
    #[arg(value_name = "N")]
    pub(crate) iteration: Option<u32>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}
