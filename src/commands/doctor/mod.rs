//! `ralph doctor`: reports which agents and tools are installed, what is missing, and how to get
//! it.

mod plugins;
mod programs;
mod report;
mod state;
mod system;
mod text;
mod unit;
mod workspace;

use super::run::{config_dir, settings_paths};
use super::workspace::ChosenWorkspace;
use crate::cli::setup::DoctorArgs;
use crate::config::agents;
use crate::config::agents::AgentPreset;
use crate::config::{Config, ConfigError, LayerStack, Origin, RunRequest, SettingsFiles};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::preconditions::check_agent;
use crate::lifecycle::trust::TrustRecords;
use crate::store::StateDir;
use crate::ui::print::{print_json, print_output, print_styled};
use crate::ui::tty::{use_color, width};
use report::DoctorReport;
use std::path::Path;

pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, CommandError> {
    if args.unit {
        print_output(&unit::unit()?)?;
        return Ok(ExitCode::Success);
    }
    let workspace = ChosenWorkspace::find(args.here)?.path;
    let state_dir = StateDir::locate()?;
    let LocalSettings {
        presets,
        project_agents,
        allow_keys,
        min_free,
        agent,
        untrusted,
        error,
    } = load_settings(&workspace);
    let Ok((agents, tools)) = programs::inspect(&workspace, presets, &project_agents, allow_keys)
    else {
        // Interrupted by Ctrl-C.
        return Ok(ExitCode::Stopped);
    };
    let state = state::inspect(&state_dir, min_free);
    let plugins = plugins::inspect(&agents);
    let mut report = DoctorReport::new(
        agents,
        tools,
        system::inspect(),
        state,
        workspace::inspect(&workspace, untrusted, error),
        agent,
    );
    report.plugins = plugins;
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(CommandError::broken)?;
        print_json(&text)?;
    } else {
        print_styled(text::text(&report, use_color(), width()))?;
    }
    Ok(if report.ready {
        ExitCode::Success
    } else {
        ExitCode::Failure
    })
}

/// The values that `ralph doctor` needs from the current directory's settings.
struct LocalSettings {
    presets: Vec<(String, AgentPreset)>,
    /// The agents that a settings file in this directory defines or changes.
    project_agents: Vec<String>,
    /// Whether to pass API keys to agents that have a login of their own.
    allow_keys: bool,
    /// The free disk space, in bytes, that an iteration needs to start.
    min_free: u64,
    /// The name of the agent that the settings select, or why it cannot be used. `None`
    /// if the settings select none.
    agent: Option<Result<String, String>>,
    /// The settings files that the user does not trust to run what they set.
    untrusted: Vec<String>,
    /// Why the settings cannot be loaded. The other fields then come from the defaults.
    /// `None` if the settings were loaded.
    error: Option<String>,
}

fn load_settings(workspace: &Path) -> LocalSettings {
    let files = SettingsFiles::read(&settings_paths(workspace.to_owned(), None));
    let loaded = files.and_then(|files| {
        let records = TrustRecords::new(config_dir().as_deref());
        let untrusted = records.untrusted(&files, workspace);
        Ok(LocalSettings {
            untrusted: untrusted.into_iter().map(|file| file.name).collect(),
            ..read_settings(files.into_stack(), workspace)?
        })
    });
    loaded.unwrap_or_else(|error| {
        let defaults =
            read_settings(LayerStack::defaults(), workspace).expect("the defaults are valid");
        LocalSettings {
            error: Some(error.message),
            ..defaults
        }
    })
}

fn read_settings(stack: LayerStack, workspace: &Path) -> Result<LocalSettings, ConfigError> {
    let config = Config::new(stack)?;
    let Config {
        stack, settings, ..
    } = &config;
    // Only files inside the workspace have relative paths.
    let is_from_project = |name: &String| {
        matches!(
            stack.origin(&["agents", name]),
            Origin::File(path) if Path::new(path).is_relative()
        )
    };
    let project_agents = settings
        .agents
        .keys()
        .filter(|name| is_from_project(name))
        .cloned()
        .collect();
    let selects_agent = settings
        .agent
        .as_ref()
        .is_some_and(|agent| agent.name.is_some() || !agent.command.is_empty());
    let agent = selects_agent.then(|| selected_agent(&config, workspace));
    let (allow_keys, min_free) = (settings.allow_api_key, settings.min_free.0);
    Ok(LocalSettings {
        presets: config.presets,
        project_agents,
        allow_keys,
        min_free,
        agent,
        untrusted: Vec::new(),
        error: None,
    })
}

/// Returns the name of the agent that the settings select, or why it cannot be used.
fn selected_agent(config: &Config, workspace: &Path) -> Result<String, String> {
    let request = RunRequest {
        workspace: workspace.to_owned(),
        ..RunRequest::default()
    };
    let selected = config.settings.agent.clone().unwrap_or_default();
    let agent = agents::resolve_agent(config, &selected, &request).map_err(CommandError::from);
    let name = agent
        .and_then(|agent| check_agent(&agent, workspace, &config.presets).map(|()| agent.name));
    name.map_err(|error| error.one_line())
}
