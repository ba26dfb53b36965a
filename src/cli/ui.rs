//! The arguments of `ralph ui`.

use super::fleet_target::FleetTarget;
use clap::Args;
use std::net::IpAddr;

/// The text below the help of `ralph ui`.
pub(crate) const UI_HELP: &str = "The address that is printed contains a token, with which anyone can read what \
    the page shows. Without --control the page changes nothing.\n\n\
    Examples:\n  ralph ui --open\n  ssh -L 7257:127.0.0.1:7257 HOST     then open the printed address here";

/// The arguments of `ralph ui`.
#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Open the page in your browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Listen on this port [default: 7257, or a free one if that is taken]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Listen on this address; other machines can reach any that is not loopback
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Let the page pause, resume and stop loops, and send messages to their agents
    #[arg(long)]
    pub(crate) control: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}
