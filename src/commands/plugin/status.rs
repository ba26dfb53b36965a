//! How the plugin stands with each client, for whoever looks around and changes nothing.

use super::{Base, CLIENTS, Client, Failure, claude, codex, command, version};

/// The plugin in one client.
pub(crate) struct Standing {
    pub(crate) client: &'static str,
    /// What begins a loop there.
    pub(crate) command: &'static str,
    pub(crate) is_installed: bool,
    /// Whether `ralph plugin install` would change nothing.
    pub(crate) is_current: bool,
    /// What keeps one from knowing.
    pub(crate) trouble: Option<String>,
}

/// Of every client, whose version the asker knows, if it is installed at all.
pub(crate) fn standings(version_of: impl Fn(&str) -> Option<String>) -> Vec<Standing> {
    let of = |client: Client| {
        let version = version_of(client.name()).as_deref().and_then(version::find);
        let base = Base::here()?;
        match client {
            Client::Claude => claude::standing(&base, version),
            Client::Codex => codex::standing(&base),
        }
    };
    let all = CLIENTS.into_iter().map(|client| {
        of(client).unwrap_or_else(|failure: Failure| {
            let (_, error, _) = failure.into_parts();
            Standing {
                trouble: Some(error),
                ..Standing::unknown(client)
            }
        })
    });
    all.collect()
}

impl Standing {
    pub(crate) fn unknown(client: Client) -> Self {
        let command = command(client);
        Self {
            client: client.name(),
            command,
            is_installed: false,
            is_current: false,
            trouble: None,
        }
    }
}
