//! The status of the plugin in each client, read without changing anything.

use super::{CommandError, PluginContext, installer};
use crate::client::descriptor::{Client, clients};
use crate::process::version;

/// The plugin in one client.
pub(crate) struct PluginStatus {
    pub(crate) client: &'static Client,
    pub(crate) is_installed: bool,
    /// Whether `ralph plugin install` would change nothing.
    pub(crate) is_current: bool,
    /// Why the status is unknown, or what the user has to do.
    pub(crate) problem: Option<String>,
}

/// Returns the status for every client; `version_of` returns the version of an installed one.
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

/// Returns another plugin that is enabled in the client and reacts to the same stop events.
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
