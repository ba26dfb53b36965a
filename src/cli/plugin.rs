//! The words of `ralph plugin`: how the loop comes into a client's own sessions.

use super::hook::Client;
use clap::{Args, Subcommand};

/// What to do about the plugin.
#[derive(Debug, Subcommand)]
pub enum PluginVerb {
    /// Put /ralph-loop into Claude Code, and $ralph-loop into Codex
    Install(InstallWords),
    /// Print the directory of the plugin for Claude Code, as its --plugin-dir takes it
    Path,
    /// Take it away again, and leave everything else as it is
    Uninstall(UninstallWords),
}

/// `ralph plugin install`
#[derive(Debug, Args)]
pub struct InstallWords {
    /// Into these alone [default: all that are installed]
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<Client>,
    /// Tell Codex, too, that you trust these hooks; else it asks you
    #[arg(long)]
    pub trust: bool,
    /// Show what would be written and where, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `ralph plugin uninstall`
#[derive(Debug, Args)]
pub struct UninstallWords {
    /// From these alone [default: both]
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<Client>,
    /// Show what would go, and leave it
    #[arg(long)]
    pub dry_run: bool,
}
