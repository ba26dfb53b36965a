//! The status of the plugin in each client, read without changing anything.

use super::{
    CLIENTS, ClientKind, CommandError, PluginContext, claude, codex, loop_command, version,
};

/// The plugin in one client.
pub(crate) struct PluginStatus {
    pub(crate) client: &'static str,
    /// The command that starts a loop in a session.
    pub(crate) command: &'static str,
    pub(crate) is_installed: bool,
    /// Whether `ralph plugin install` would change nothing.
    pub(crate) is_current: bool,
    /// Why the status is unknown, or what the user has to do.
    pub(crate) problem: Option<String>,
}

/// Returns the status for every client; `version_of` returns the version of an installed one.
pub(crate) fn plugin_statuses(version_of: impl Fn(&str) -> Option<String>) -> Vec<PluginStatus> {
    let status_of = |client: ClientKind| {
        let version = version_of(client.name())
            .as_deref()
            .and_then(version::parse);
        let context = PluginContext::load()?;
        match client {
            ClientKind::Claude => claude::status(&context, version),
            ClientKind::Codex => codex::status(&context),
        }
    };
    let statuses = CLIENTS.into_iter().map(|client| {
        status_of(client).unwrap_or_else(|error: CommandError| PluginStatus {
            problem: Some(error.message().to_owned()),
            ..PluginStatus::not_installed(client)
        })
    });
    statuses.collect()
}

impl PluginStatus {
    pub(super) fn not_installed(client: ClientKind) -> Self {
        Self {
            client: client.name(),
            command: loop_command(client),
            is_installed: false,
            is_current: false,
            problem: None,
        }
    }
}
