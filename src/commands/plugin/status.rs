//! Returns the plugin's status in each client without changing anything.

use super::{CommandError, PluginContext, installer};
use crate::client::descriptor::{Client, clients};
use crate::process::version;

/// The plugin's status in one client.
pub(crate) struct PluginStatus {
    pub(crate) client: &'static Client,
    pub(crate) is_installed: bool,
    /// Whether `ralph plugin install` would change nothing.
    pub(crate) is_current: bool,
    /// Why the status is unknown, or a task for the user. `None` if there is no problem.
    pub(crate) problem: Option<String>,
}

/// Returns the plugin's status in every client. `version_of` returns a client's version, or `None`
/// if the client is not installed or its version is unknown.
pub(crate) fn plugin_statuses(version_of: impl Fn(&str) -> Option<String>) -> Vec<PluginStatus> {
    let status_of = |client: &'static Client| {
        let version = version_of(&client.name)
            .as_deref()
            .and_then(version::numbers);
        installer(client).status(&PluginContext::load()?, version)
    };
    let statuses = clients().iter().map(|client| {
        status_of(client).unwrap_or_else(|error: CommandError| PluginStatus {
            problem: Some(error.message().to_owned()),
            ..PluginStatus::not_installed(client)
        })
    });
    statuses.collect()
}

/// Returns the name of another plugin that is enabled in the client and reacts to the same stop
/// events. `None` if there is none.
pub(crate) fn conflicting_plugin(client: &'static Client) -> Option<String> {
    installer(client).conflict()
}

impl PluginStatus {
    pub(super) fn not_installed(client: &'static Client) -> Self {
        Self {
            client,
            is_installed: false,
            is_current: false,
            problem: None,
        }
    }
}
