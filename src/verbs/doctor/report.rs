//! Everything that was found out, as scripts read it.

use serde::Serialize;
use std::collections::BTreeMap;

/// One look at everything. Fields are only ever added.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) ralph: &'static str,
    /// Whether a loop can run here.
    pub(super) ready: bool,
    /// What keeps one from running.
    pub(super) missing: Vec<String>,
    /// The agent that the settings name.
    pub(super) agent: Option<String>,
    pub(super) agents: Vec<Program>,
    pub(super) tools: Vec<Program>,
    pub(super) system: Vec<Feature>,
    pub(super) state: StateDir,
    pub(super) workspace: Workspace,
    /// The plugin in each client that is installed, or that has it.
    pub(super) plugins: Vec<Plugin>,
}

/// A program, installed or not.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) installed: bool,
    pub(super) version: Option<String>,
    /// What went wrong when it was asked for its version.
    pub(super) trouble: Option<String>,
    /// Whether it can be used, as far as can be told.
    pub(super) works: bool,
    /// The command that gets it.
    pub(super) install: String,
    /// How one logs in, for an agent.
    pub(super) login: Option<String>,
    /// What pays for an agent's work, by the name of its file or variable; none where nothing was found.
    pub(super) payer: Option<String>,
    /// Variables with keys that would pay instead, and are kept from it.
    pub(super) held_back: Vec<String>,
}

/// Something that the system can or cannot do.
#[derive(Debug, Serialize)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) available: bool,
    pub(super) version: Option<u32>,
    /// What it is good for, or what is weaker without it.
    pub(super) note: String,
}

/// The loop inside a client's own sessions.
#[derive(Debug, Serialize)]
pub(super) struct Plugin {
    pub(super) client: &'static str,
    /// What begins a loop there.
    pub(super) command: &'static str,
    pub(super) installed: bool,
    /// Whether it fits this ralph and this client.
    pub(super) current: bool,
    /// What is wrong with it.
    pub(super) trouble: Option<String>,
}

/// Where loops are kept.
#[derive(Debug, Serialize)]
pub(super) struct StateDir {
    pub(super) path: String,
    pub(super) exists: bool,
    pub(super) writable: bool,
    pub(super) free_bytes: Option<u64>,
    /// Whether an iteration would start, by `minFree`.
    pub(super) enough_space: bool,
    /// How many loops there are of each status.
    pub(super) loops: BTreeMap<String, u32>,
    /// Loops that cannot be read.
    pub(super) unreadable: u32,
}

/// The current directory.
#[derive(Debug, Serialize)]
pub(super) struct Workspace {
    pub(super) path: String,
    pub(super) git: bool,
    pub(super) branch: Option<String>,
    /// Files that differ from the last commit; none where that is not known.
    pub(super) changed_files: Option<u32>,
    /// What git had to complain of.
    pub(super) trouble: Option<String>,
    pub(super) prompt_file: bool,
    pub(super) settings: Vec<String>,
    /// What is wrong with the settings that hold here.
    pub(super) settings_trouble: Option<String>,
}

impl Report {
    pub(super) fn new(
        agents: Vec<Program>,
        tools: Vec<Program>,
        system: Vec<Feature>,
        state: StateDir,
        workspace: Workspace,
        agent: Option<Result<String, String>>,
    ) -> Self {
        let mut missing = Vec::new();
        if let Some(git) = tools.iter().find(|tool| tool.name == "git" && !tool.works) {
            missing.push(format!("git: {}", git.install));
        }
        let (agent, unusable) =
            agent.map_or((None, None), |agent| (agent.as_ref().ok().cloned(), agent.err()));
        missing.extend(unusable.as_ref().map(|why| format!("the agent of the settings: {why}")));
        if agent.is_none() && unusable.is_none() && !agents.iter().any(|agent| agent.works) {
            let first = agents.first().map(|agent| format!(", such as {}: {}", agent.title, agent.install));
            missing.push(format!("an agent{}", first.unwrap_or_default()));
        }
        if !state.writable {
            missing.push(format!("a state directory that can be written: {}", state.path));
        }
        if !state.enough_space {
            missing.push("space: an iteration starts only with minFree of it free".to_owned());
        }
        if let Some(wrong) = &workspace.settings_trouble {
            missing.push(format!("settings that can be read: {wrong}"));
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
