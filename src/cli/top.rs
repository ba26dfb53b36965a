//! The arguments of `ralph top`.

use super::fleet_target::FleetTarget;
use clap::Args;

pub(super) const HELP: &str = "Keys: arrows and Enter open a loop, Tab switches its tabs, q goes back or quits, and ? lists all \
     keys.\n\nExamples:\n  ralph top\n  ralph top shop     the page of one loop";

/// The arguments of `ralph top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The loop whose page to open first
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}
