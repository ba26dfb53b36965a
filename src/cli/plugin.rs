//! The arguments of `ralph plugin`.

use super::hook::client_parser;
use crate::client::descriptor::{Client, PluginKind, clients};
use clap::{Args, Subcommand};

/// The subcommands of `ralph plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    #[command(about = install_about())]
    Install(InstallArgs),
    #[command(about = path_about())]
    Path,
    /// Remove the plugin and restore the client's settings
    Uninstall(UninstallArgs),
}

/// Returns the help line of `ralph plugin`.
pub(super) fn about() -> String {
    format!("Manage the plugin for {}", titles(|_| true))
}

fn install_about() -> String {
    let commands = clients().iter().map(|client| {
        let command = client.command("ralph-loop");
        format!("{command} in {}", client.title)
    });
    format!("Install {}", join_with_and(&commands.collect::<Vec<_>>()))
}

fn path_about() -> String {
    let has_directory = |client: &Client| matches!(client.plugin, PluginKind::Marketplace(_));
    format!(
        "Print the plugin's directory, for {}'s --plugin-dir",
        titles(has_directory)
    )
}

fn trust_help() -> String {
    let has_trust = |client: &Client| match &client.plugin {
        PluginKind::HooksFile(spec) => spec.trust.is_some(),
        PluginKind::Marketplace(_) => false,
    };
    format!(
        "Also mark the hooks as trusted in {}, which otherwise asks you",
        titles(has_trust)
    )
}

/// Returns the titles of the clients for which `filter` returns true, as one phrase.
fn titles(filter: impl Fn(&Client) -> bool) -> String {
    let titles = clients().iter().filter(|client| filter(client));
    let titles: Vec<String> = titles.map(|client| client.title.clone()).collect();
    join_with_and(&titles)
}

fn join_with_and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The arguments of `ralph plugin install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Install only for these clients [default: all that are installed]
    #[arg(value_name = "CLIENT", value_parser = client_parser())]
    pub(crate) clients: Vec<&'static Client>,
    #[arg(long, help = trust_help())]
    pub(crate) trust: bool,
    /// Show what would be written without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The arguments of `ralph plugin uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Uninstall only from these clients [default: all]
    #[arg(value_name = "CLIENT", value_parser = client_parser())]
    pub(crate) clients: Vec<&'static Client>,
    /// Show what would be removed without removing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}
