//! The flags with which a command shows or steers loops of the fleet instead of this machine's.

#[cfg(feature = "fleet")]
use super::fleet::FleetFlags;
use clap::Args;

// The fleet, instead of this machine. Not a doc comment: clap would show it as the description of a
// command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FleetTarget {
    /// Use loops of the fleet [default address: the setting fleet]
    #[cfg(feature = "fleet")]
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Fleet",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub(crate) fleet: Option<String>,
    /// Use this pool of the fleet [default: the setting fleetPool]
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "NAME", help_heading = "Fleet", requires = "fleet")]
    pub(crate) pool: Option<String>,
}

#[cfg(feature = "fleet")]
impl FleetTarget {
    /// Returns the same flags for a command that always uses the fleet.
    pub(crate) fn flags(&self) -> FleetFlags {
        FleetFlags {
            fleet: self.fleet.clone(),
            pool: self.pool.clone(),
            ..FleetFlags::default()
        }
    }
}

/// The arguments of `ralph fetch`.
#[cfg(feature = "fleet")]
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// The loop
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) target: FleetTarget,
}
