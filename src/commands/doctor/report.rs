//! Everything that was found out, as scripts read it.

use serde::Serialize;
use std::collections::BTreeMap;

/// One look at everything. Fields are only ever added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) ralph: &'static str,
    /// Whether a loop can run here.
    pub(crate) ready: bool,
    /// What keeps one from running.
    pub(crate) missing: Vec<String>,
    /// The agent that the settings name.
    pub(crate) agent: Option<String>,
    pub(crate) agents: Vec<Program>,
    pub(crate) tools: Vec<Program>,
    pub(crate) system: Vec<Feature>,
    pub(crate) state: StateDir,
    pub(crate) workspace: Workspace,
    /// The plugin in each client that is installed, or that has it.
    pub(crate) plugins: Vec<Plugin>,
}

/// A program, installed or not.
#[derive(Debug, Serialize)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) installed: bool,
    pub(crate) version: Option<String>,
    /// What went wrong when it was asked for its version.
    pub(crate) trouble: Option<String>,
    /// Whether it can be used, as far as can be told.
    pub(crate) works: bool,
    /// The command that gets it.
    pub(crate) install: String,
    /// How one logs in, for an agent.
    pub(crate) login: Option<String>,
    /// What pays for an agent's work, by the name of its file or variable; none where nothing was found.
    pub(crate) payer: Option<String>,
    /// Variables with keys that would pay instead, and are kept from it.
    pub(crate) held_back: Vec<String>,
}

/// Something that the system can or cannot do.
#[derive(Debug, Serialize)]
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) available: bool,
    pub(crate) version: Option<u32>,
    /// What it is good for, or what is weaker without it.
    pub(crate) note: String,
}

/// The loop inside a client's own sessions.
#[derive(Debug, Serialize)]
pub(crate) struct Plugin {
    pub(crate) client: &'static str,
    /// What begins a loop there.
    pub(crate) command: &'static str,
    pub(crate) installed: bool,
    /// Whether it fits this ralph and this client.
    pub(crate) current: bool,
    /// What is wrong with it.
    pub(crate) trouble: Option<String>,
}

/// Where loops are kept.
#[derive(Debug, Serialize)]
pub(crate) struct StateDir {
    pub(crate) path: String,
    pub(crate) exists: bool,
    pub(crate) writable: bool,
    pub(crate) free_bytes: Option<u64>,
    /// Whether an iteration would start, by `minFree`.
    pub(crate) enough_space: bool,
    /// How many loops there are of each status.
    pub(crate) loops: BTreeMap<String, u32>,
    /// Loops that cannot be read.
    pub(crate) unreadable: u32,
}

/// The current directory.
#[derive(Debug, Serialize)]
pub(crate) struct Workspace {
    pub(crate) path: String,
    pub(crate) git: bool,
    pub(crate) branch: Option<String>,
    /// Files that differ from the last commit; none where that is not known.
    pub(crate) changed_files: Option<u32>,
    /// What git had to complain of.
    pub(crate) trouble: Option<String>,
    pub(crate) prompt_file: bool,
    pub(crate) settings: Vec<String>,
    /// What is wrong with the settings that hold here.
    pub(crate) settings_trouble: Option<String>,
}

impl Report {
    pub(crate) fn new(
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
        let (agent, unusable) = agent.map_or((None, None), |agent| {
            (agent.as_ref().ok().cloned(), agent.err())
        });
        missing.extend(
            unusable
                .as_ref()
                .map(|why| format!("the agent of the settings: {why}")),
        );
        if agent.is_none() && unusable.is_none() && !agents.iter().any(|agent| agent.works) {
            let first = agents
                .first()
                .map(|agent| format!(", such as {}: {}", agent.title, agent.install));
            missing.push(format!("an agent{}", first.unwrap_or_default()));
        }
        if !state.writable {
            missing.push(format!(
                "a state directory that can be written: {}",
                state.path
            ));
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
