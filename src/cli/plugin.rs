//! The arguments of `ralph plugin`.

use super::hook::ClientKind;
use clap::{Args, Subcommand};

/// The subcommands of `ralph plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Install /ralph-loop in Claude Code and $ralph-loop in Codex
    Install(InstallArgs),
    /// Print the plugin's directory, for Claude Code's --plugin-dir
    Path,
    /// Remove the plugin and restore the client's settings
    Uninstall(UninstallArgs),
}

/// `ralph plugin install`
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Install only for these clients [default: all that are installed]
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<ClientKind>,
    /// Also mark the hooks as trusted in Codex, which otherwise asks you
    #[arg(long)]
    pub(crate) trust: bool,
    /// Show what would be written without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `ralph plugin uninstall`
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Uninstall only from these clients [default: both]
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<ClientKind>,
    /// Show what would be removed without removing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}
