//! The arguments of the commands that steer loops.

use super::fleet_target::FleetTarget;
use super::free_text;
use crate::config::keys;
use crate::config::units::Millis;
use clap::Args;

/// The arguments of commands that take only the names of loops.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// The loops
    #[arg(id = "name", value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The loop
    pub(crate) name: String,
    #[arg(value_name = "LIMIT=VALUE", required = true, help = keys::limit_syntax())]
    pub(crate) limits: Vec<String>,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph rm`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate command-line flag"
)]
pub(crate) struct RmArgs {
    /// The loops
    #[arg(
        id = "name",
        value_name = "NAME",
        required_unless_present = "ended",
        conflicts_with = "ended"
    )]
    pub(crate) names: Vec<String>,
    /// Remove all loops that have ended, except those waiting for a person
    #[arg(long)]
    pub(crate) ended: bool,
    /// Remove only loops that ended at least this long ago, for example 30d
    #[arg(long, value_name = "D", requires = "ended", conflicts_with = "name")]
    pub(crate) older_than: Option<Millis>,
    /// Also remove the worktree and the branch that was created for it
    #[arg(long, conflicts_with = "keep_worktree")]
    pub(crate) worktree: bool,
    /// Remove the loop but keep its worktree
    #[arg(long)]
    pub(crate) keep_worktree: bool,
    /// Keep the loop's files in the workspace: task directory and check logs
    #[arg(long)]
    pub(crate) keep_files: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the worktree even if it contains work that exists nowhere else, and loops whose
    /// journal is damaged
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph say`.
#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// The loop
    pub(crate) name: String,
    /// The message
    #[arg(required = true, value_parser = free_text::parser())]
    pub(crate) text: Vec<String>,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// The arguments of `ralph wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The loops; with several, the worst ending sets the exit code
    #[arg(id = "name", value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Give up after this time, with exit code 4 [default: never]
    #[arg(long, value_name = "D")]
    pub(crate) timeout: Option<Millis>,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}
