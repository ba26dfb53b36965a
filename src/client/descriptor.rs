//! Describes the clients in whose sessions a loop can run. Each client is a table in
//! `presets/clients.toml`.

use super::transcript::{TranscriptFormat, UsageFormat};
use etcetera::home_dir;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, io};

/// A program in whose sessions a loop can run, because it calls `ralph hook`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Client {
    /// The client's name, shared with its program and its agent preset, if any. Journals contain
    /// the name, so it never changes.
    pub(crate) name: String,
    /// The client's name as people read it, such as `Claude Code`.
    pub(crate) title: String,
    /// The character that starts a command in a session.
    pub(crate) sigil: char,
    /// Prefixes that the client may insert between the sigil and a command's name.
    #[serde(default)]
    pub(crate) namespaces: Vec<String>,
    /// The arguments that continue a session. The session's ID follows them.
    resume: Vec<String>,
    /// How a command reaches ralph while the agent works, for people; `None` if it needs nothing
    /// special.
    pub(crate) busy_hint: Option<String>,
    /// Maximum length of a prompt that reaches the agent unchanged, in bytes; `None` means no
    /// limit.
    pub(crate) prompt_max: Option<usize>,
    /// The environment variable that contains the directory in which the session was opened; `None`
    /// if the hook input contains the directory.
    project_variable: Option<String>,
    /// Whether a loop file without a session ID belongs to this client. The original plugin, which
    /// existed for one client only, wrote such files.
    #[serde(default)]
    pub(crate) had_original_plugin: bool,
    home: HomeDir,
    /// The format of the messages in the client's transcripts; `None` if the hook input contains
    /// every message.
    pub(crate) transcript: Option<TranscriptSpec>,
    /// How the client's transcripts report usage.
    pub(crate) usage: UsageFormat,
    /// The cap on blocked stops; `None` if the client has no cap.
    block_cap: Option<BlockCap>,
    /// The way the plugin is installed.
    pub(crate) plugin: PluginKind,
}

/// The location of the user's settings for a client.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct HomeDir {
    /// The environment variable that overrides the directory.
    variable: String,
    /// The directory if the variable is not set, relative to the user's home directory.
    default: String,
    /// Whether the client resolves links in the variable's value.
    resolves_links: bool,
}

/// The directory with the user's settings for one client.
#[derive(Clone, Debug)]
pub(crate) struct ClientHome {
    pub(crate) path: PathBuf,
    /// The same directory as `path`, in the client's spelling.
    pub(crate) client_path: PathBuf,
}

/// The format of a client's session transcripts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TranscriptSpec {
    pub(crate) format: TranscriptFormat,
    /// The prefix of most service errors. The prefix is not proof: an agent's message can start
    /// with it too.
    pub(crate) error_prefix: String,
}

/// A client's cap on consecutive stops that a hook blocks without a tool call in between.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct BlockCap {
    default: u32,
    /// The environment variable that overrides the cap; 0 means no cap.
    pub(crate) variable: String,
    /// Environment variables that identify client versions with the cap. Such a version sets at
    /// least one of them.
    since: Vec<String>,
}

/// The way a client's plugin is installed.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum PluginKind {
    Marketplace(MarketplaceSpec),
    HooksFile(HooksFileSpec),
}

/// A plugin that the client loads from a marketplace on disk.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct MarketplaceSpec {
    /// The first version that supports the hook event for failed turns.
    pub(crate) failure_event_since: [u32; 3],
    /// The first version in which a plugin's command needs no namespace.
    pub(crate) bare_commands_since: [u32; 3],
    /// Name prefixes of other plugins that react to the same stop events.
    pub(crate) conflicts: Vec<String>,
}

/// Hooks in a JSON file that also contains the user's own hooks, and skills. Paths are relative to
/// the client's home directory.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HooksFileSpec {
    /// The path of the file with the hooks.
    pub(crate) hooks: String,
    /// The path of the directory with the skills.
    pub(crate) skills: String,
    /// The file in a skill's directory that keeps the model from calling the skill; `None` if the
    /// client has no such file.
    pub(crate) skill_policy: Option<String>,
    /// The TOML file that lists trusted hooks; `None` if the client runs every hook.
    pub(crate) trust: Option<String>,
}

/// Returns all clients. The first one is the default for `ralph hook`.
pub(crate) fn clients() -> &'static [Client] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ClientTable {
        client: Vec<Client>,
    }
    static CLIENTS: LazyLock<Vec<Client>> = LazyLock::new(|| {
        let table: ClientTable = toml::from_str(include_str!("../../presets/clients.toml"))
            .expect("the embedded table of clients is valid");
        table.client
    });
    &CLIENTS
}

impl Client {
    /// Finds a client by name; `None` if this version of ralph does not support it.
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        clients().iter().find(|client| client.name == name)
    }

    /// Returns one of ralph's commands as the user types it, such as `/ralph-loop`.
    pub(crate) fn command(&self, name: &str) -> String {
        format!("{}{name}", self.sigil)
    }

    /// Returns the command line that continues a session.
    pub(crate) fn resume_command(&self, session: &str) -> String {
        format!("{} {} {session}", self.name, self.resume.join(" "))
    }

    /// Returns the directory in which the session was opened; `None` if no environment variable
    /// names it.
    pub(crate) fn project_dir(&self) -> Option<PathBuf> {
        env::var_os(self.project_variable.as_ref()?).map(PathBuf::from)
    }

    /// Returns the variable that sets the cap on blocked stops; `None` if the client has no cap.
    pub(crate) fn block_cap_variable(&self) -> Option<&str> {
        Some(&self.block_cap.as_ref()?.variable)
    }

    /// Returns the number of consecutive stops without a tool call that the calling client lets
    /// this hook block; `None` means no cap.
    pub(crate) fn block_cap(&self) -> Option<u32> {
        let cap = self.block_cap.as_ref()?;
        let configured = env::var(&cap.variable)
            .ok()
            .and_then(|value| value.trim().parse().ok());
        let has_cap = || cap.since.iter().any(|name| env::var_os(name).is_some());
        configured
            .or_else(|| has_cap().then_some(cap.default))
            .filter(|cap| *cap > 0)
    }

    /// Returns the directory with the user's settings, which may not exist. Fails if the home
    /// directory is unknown.
    pub(crate) fn home(&self) -> io::Result<ClientHome> {
        let HomeDir {
            variable,
            default,
            resolves_links,
        } = &self.home;
        if let Some(set) = env::var_os(variable).filter(|set| !set.is_empty()) {
            let path = std::path::absolute(set)?;
            let resolved = resolves_links.then(|| fs::canonicalize(&path).ok());
            return Ok(ClientHome {
                client_path: resolved.flatten().unwrap_or_else(|| path.clone()),
                path,
            });
        }
        let home = home_dir().map_err(|error| {
            io::Error::other(format!("cannot find the home directory: {error}"))
        })?;
        let path = std::path::absolute(home.join(default))?;
        Ok(ClientHome {
            client_path: path.clone(),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::clients;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_commands_and_resume_lines_are_complete() {
        let names: BTreeSet<&str> = clients().iter().map(|client| &*client.name).collect();
        assert_eq!(names.len(), clients().len());
        assert_eq!(
            clients()[0].name,
            "claude",
            "installed hooks name no client if they are Claude Code's"
        );
        for client in clients() {
            assert!(client.sigil.is_ascii_punctuation(), "{}", client.name);
            assert!(!client.title.is_empty() && !client.resume.is_empty());
            assert!(client.prompt_max.is_none_or(|max| max > 1000));
        }
        let lines = clients().iter().map(|client| client.resume_command("ID"));
        assert_eq!(
            lines.take(2).collect::<Vec<_>>(),
            ["claude --resume ID", "codex resume ID"]
        );
    }
}
