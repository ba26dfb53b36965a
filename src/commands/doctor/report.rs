//! The report of `ralph doctor`, which `--json` prints unchanged.

use serde::Serialize;
use std::collections::BTreeMap;

/// The whole report. Fields are only ever added, because scripts read them.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorReport {
    pub(crate) ralph: &'static str,
    /// Whether a loop can run here.
    pub(crate) ready: bool,
    /// The problems to fix first. Empty if a loop can run.
    pub(crate) missing: Vec<String>,
    /// The agent that the settings select. `None` if they select none or it cannot be used.
    pub(crate) agent: Option<String>,
    pub(crate) agents: Vec<ProgramReport>,
    pub(crate) tools: Vec<ProgramReport>,
    pub(crate) system: Vec<SystemFeature>,
    pub(crate) state: StateDirReport,
    pub(crate) workspace: WorkspaceReport,
    /// The plugin's state in each client that is installed or has the plugin.
    pub(crate) plugins: Vec<PluginReport>,
}

/// The state of a program, whether it is installed or not.
#[derive(Debug, Serialize)]
pub(crate) struct ProgramReport {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) installed: bool,
    pub(crate) version: Option<String>,
    /// Why the program's version is unknown. `None` if the version is known or the
    /// program is not installed.
    #[serde(rename = "trouble")]
    pub(crate) problem: Option<String>,
    /// Whether the program can be used, as far as `ralph doctor` can tell.
    pub(crate) works: bool,
    /// The command that installs the program.
    pub(crate) install: String,
    /// Instructions for logging in to an agent. `None` for a tool.
    pub(crate) login: Option<String>,
    /// The login file or the API key variable that an agent's work is billed to. `None` if neither
    /// was found.
    pub(crate) payer: Option<String>,
    /// API key variables that are not passed to the agent, because it would be billed to them
    /// instead.
    pub(crate) held_back: Vec<String>,
}

/// An optional feature of the operating system.
#[derive(Debug, Serialize)]
pub(crate) struct SystemFeature {
    pub(crate) name: &'static str,
    pub(crate) available: bool,
    pub(crate) version: Option<u32>,
    /// A description of what the feature provides, or of what is weaker without it.
    pub(crate) note: String,
}

/// The plugin's state in one client.
#[derive(Debug, Serialize)]
pub(crate) struct PluginReport {
    pub(crate) client: &'static str,
    /// The command that starts a loop in a session.
    pub(crate) command: String,
    pub(crate) installed: bool,
    /// Whether the plugin matches this version of ralph and of the client.
    pub(crate) current: bool,
    #[serde(rename = "trouble")]
    pub(crate) problem: Option<String>,
}

/// The state of the directory that contains all loops.
#[derive(Debug, Serialize)]
pub(crate) struct StateDirReport {
    pub(crate) path: String,
    pub(crate) exists: bool,
    pub(crate) writable: bool,
    pub(crate) free_bytes: Option<u64>,
    /// Whether at least `minFree` is free, so that an iteration can start.
    pub(crate) enough_space: bool,
    /// The number of loops by status.
    pub(crate) loops: BTreeMap<String, u32>,
    /// The number of loops that cannot be read.
    pub(crate) unreadable: u32,
}

/// The state of the current directory.
#[derive(Debug, Serialize)]
pub(crate) struct WorkspaceReport {
    pub(crate) path: String,
    pub(crate) git: bool,
    pub(crate) branch: Option<String>,
    /// The number of files that differ from the last commit. `None` if unknown.
    pub(crate) changed_files: Option<u32>,
    /// The error that git reported. `None` if it reported none.
    #[serde(rename = "trouble")]
    pub(crate) git_error: Option<String>,
    pub(crate) prompt_file: bool,
    pub(crate) settings: Vec<String>,
    /// The settings files that run something and are not trusted yet.
    pub(crate) untrusted: Vec<String>,
    /// Why the settings cannot be loaded. `None` if they can.
    #[serde(rename = "settings_trouble")]
    pub(crate) settings_error: Option<String>,
}

impl DoctorReport {
    pub(crate) fn new(
        agents: Vec<ProgramReport>,
        tools: Vec<ProgramReport>,
        system: Vec<SystemFeature>,
        state: StateDirReport,
        workspace: WorkspaceReport,
        agent: Option<Result<String, String>>,
    ) -> Self {
        let mut missing = Vec::new();
        if let Some(git) = tools.iter().find(|tool| tool.name == "git" && !tool.works) {
            missing.push(format!("git: {}", git.install));
        }
        let (agent, unusable) = agent.map_or((None, None), |agent| {
            (agent.as_ref().ok().cloned(), agent.err())
        });
        missing.extend(
            unusable
                .as_ref()
                .map(|why| format!("the agent that the settings select: {why}")),
        );
        if agent.is_none() && unusable.is_none() && !agents.iter().any(|agent| agent.works) {
            let first = agents
                .first()
                .map(|agent| format!(", such as {}: {}", agent.title, agent.install));
            missing.push(format!("an agent{}", first.unwrap_or_default()));
        }
        if !state.writable {
            missing.push(format!("a writable state directory: {}", state.path));
        }
        if !state.enough_space {
            missing
                .push("disk space: no iteration starts while less than minFree is free".to_owned());
        }
        if let Some(error) = &workspace.settings_error {
            missing.push(format!("valid settings: {error}"));
        }
        Self {
            ralph: env!("CARGO_PKG_VERSION"),
            ready: missing.is_empty(),
            missing,
            agent,
            agents,
            tools,
            system,
            state,
            workspace,
            plugins: Vec::new(),
        }
    }
}
