//! Resolves a run's agent: its program and its arguments.

mod defaults;
mod preset;
mod stream_flags;

pub(crate) use defaults::defaults;
pub(super) use preset::preset_for_program;
pub(crate) use preset::{AgentPreset, install_hint, load_presets, presets};

use super::billing;
use super::keys::nearest;
use super::sandbox;
use super::settings::{AgentSettings, Settings};
use super::{Config, ConfigError, LayerStack, RunRequest, config_error};
use crate::agent::decode::dialect::Dialect;
use crate::engine::plan::{Agent, Approve, DialectName, ExitMeaning, PromptDelivery, SCRIPT};
use crate::os::program;
use preset::ApprovalArgs;

/// Resolves the agent and its fallbacks for a run. Returns the fallbacks in their order.
pub(crate) fn resolve_agents(
    config: &Config,
    request: &RunRequest,
) -> Result<(Agent, Vec<Agent>), ConfigError> {
    if request.function {
        return Ok((function_agent(), Vec::new()));
    }
    let Config {
        stack, settings, ..
    } = config;
    let selected = settings.agent.clone().unwrap_or_default();
    let names = selected
        .name
        .as_deref()
        .filter(|_| request.command.is_empty())
        .map(split_names)
        .unwrap_or_default();
    if names.len() < 2 {
        return Ok((resolve_agent(config, &selected, request)?, Vec::new()));
    }
    let agent_specific = [
        ("model", settings.model.is_some()),
        ("agent", !selected.flags.is_empty()),
    ];
    if let Some((name, _)) = agent_specific.iter().find(|(_, given)| *given) {
        return config_error(
            format!(
                "{} applies to one agent, but several are named",
                stack.display_name(name)
            ),
            "add it to that agent's `headless` arguments in the settings: see docs/presets.md",
        );
    }
    if let Some((_, duplicate)) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name))
    {
        return config_error(
            format!("{} names {duplicate} twice", stack.display_name("agent")),
            "name each agent once",
        );
    }
    let mut agents = names.iter().map(|name| {
        let selected = AgentSettings {
            name: Some((*name).to_owned()),
            ..AgentSettings::default()
        };
        resolve_agent(config, &selected, request)
    });
    let first = agents.next().expect("at least two names")?;
    Ok((first, agents.collect::<Result<_, _>>()?))
}

/// Sets the agent's payer, the environment variables that are withheld from it, the paths that it
/// writes for itself, and how it prints its version.
fn resolve_billing(config: &Config, agent: &mut Agent) {
    let presets = &config.presets;
    agent.unset = presets
        .iter()
        .flat_map(|(_, preset)| preset.session_variables.iter().cloned())
        .collect();
    if let Some(preset) = config.preset_of(agent) {
        let billing = billing::detect_billing(preset, config.settings.allow_api_key);
        (agent.payer, agent.held_back) = (billing.payer, billing.held_back);
        agent.own_paths = billing::own_paths(preset);
        agent.credentials = sandbox::credentials(preset);
        // A script of that name in the workspace may understand no arguments.
        let program = &agent.command[0];
        if program == &preset.command[0] || program.starts_with('/') {
            agent.version.clone_from(&preset.version);
        }
    }
}

/// Splits a comma-separated list of agents. A comma in the path of a script is not a separator.
pub(super) fn split_names(list: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let mut rest = list;
    while let Some(cut) = rest.char_indices().find_map(|(at, c)| {
        let next = rest.get(at + 1..)?.trim_start();
        let splits = !rest.starts_with(SCRIPT) || next.starts_with(SCRIPT);
        (c == ',' && splits).then_some(at)
    }) {
        names.push(rest[..cut].trim());
        rest = rest[cut + 1..].trim_start();
    }
    names.push(rest.trim());
    names
}

/// Resolves one agent, including its billing.
pub(crate) fn resolve_agent(
    config: &Config,
    selected: &AgentSettings,
    request: &RunRequest,
) -> Result<Agent, ConfigError> {
    let mut agent = find_agent(config, selected, request)?;
    resolve_billing(config, &mut agent);
    Ok(agent)
}

/// Rejects an empty command, and a name next to a command.
fn reject_contradictory_selection(
    stack: &LayerStack,
    selected: &AgentSettings,
) -> Result<(), ConfigError> {
    let is_command_given = stack.layer_index(&["agent", "command"]) > 0;
    if is_command_given && selected.command.first().is_none_or(String::is_empty) {
        return config_error(
            format!("{}: command is empty", stack.display_name("agent")),
            "give the agent's command, or remove the key to use the first installed agent",
        );
    }
    if selected.name.is_some() && !selected.command.is_empty() {
        return config_error(
            format!(
                "{}: name and command contradict each other",
                stack.display_name("agent")
            ),
            "set agent.name or agent.command, not both",
        );
    }
    Ok(())
}

/// Recognizes the preset's error messages in the output of a command that the user wrote.
fn copy_failures(agent: &mut Agent, preset: &AgentPreset) {
    agent.failure_patterns.clone_from(&preset.failure_patterns);
    agent.error_lines.clone_from(&preset.error_lines);
    agent.success_lines.clone_from(&preset.success_lines);
}

/// Finds one agent: the command after `--`, the agent in the settings, or the first installed
/// preset.
fn find_agent(
    config: &Config,
    selected: &AgentSettings,
    request: &RunRequest,
) -> Result<Agent, ConfigError> {
    let Config {
        stack,
        settings,
        presets,
    } = config;
    if !request.command.is_empty() {
        if let Some(name) = ["agent", "model", "approve"]
            .into_iter()
            .find(|name| stack.is_from_flag(name))
        {
            return config_error(
                format!("--{name} cannot be combined with a command after --"),
                "the command runs unchanged: add the agent's own flags to it",
            );
        }
        let mut agent = plain_agent(settings, request, request.command.clone());
        if let Some((preset, interactive)) = detect_interactive(presets, &request.command) {
            agent.terminal = settings.pty.unwrap_or(interactive);
            agent.ready = preset.ready.clone().filter(|_| agent.terminal);
            copy_failures(&mut agent, preset);
            agent.login.clone_from(&preset.login);
            if !agent.terminal
                && stream_flags::request_stream(&request.command[1..], &preset.stream)
            {
                (agent.denied, agent.allow) = (preset.denied.clone(), preset.allow.clone());
                set_dialect(&mut agent, &preset.dialect);
            }
        }
        return Ok(agent);
    }
    reject_contradictory_selection(stack, selected)?;
    if let Some(script) = selected
        .name
        .as_ref()
        .filter(|name| name.starts_with(SCRIPT))
    {
        reject_preset_settings(stack, script)?;
        if !selected.flags.is_empty() {
            return config_error(
                format!("{}: a script takes no flags", stack.display_name("agent")),
                "remove the flags",
            );
        }
        return Ok(plain_agent(settings, request, vec![script.clone()]));
    }
    if let Some(name) = &selected.name {
        let Some((name, preset)) = presets.iter().find(|(known, _)| known == name) else {
            return unknown_agent(stack, name, presets);
        };
        return preset_agent(
            stack,
            settings,
            name,
            preset,
            &preset.command,
            &selected.flags,
        );
    }
    if let [program, ..] = &selected.command[..] {
        if let Some((name, preset)) = preset_for_program(presets, program) {
            return preset_agent(
                stack,
                settings,
                name,
                preset,
                &selected.command,
                &selected.flags,
            );
        }
        reject_preset_settings(stack, program)?;
        let command = [&selected.command[..], &selected.flags].concat();
        return Ok(plain_agent(settings, request, command));
    }
    let is_installed =
        |preset: &AgentPreset| program::find(&preset.command[0], &request.workspace).is_some();
    match presets.iter().find(|(_, preset)| is_installed(preset)) {
        Some((name, preset)) => preset_agent(
            stack,
            settings,
            name,
            preset,
            &preset.command,
            &selected.flags,
        ),
        None => config_error(
            "no known agent is installed",
            format!(
                "install one, for example with: {} (ralph doctor lists them all), or pass a command after --",
                presets[0].1.install
            ),
        ),
    }
}

fn set_dialect(agent: &mut Agent, name: &DialectName) {
    agent.dialect = name.clone();
    agent.reports_cost = Dialect::find(name).is_some_and(|dialect| dialect.reports_cost);
}

/// Returns the preset of the agent that a command calls, and whether the command starts the agent's
/// interactive screen. If the preset has no headless markers, ralph assumes that it does not.
/// Returns `None` if the command calls no known agent.
fn detect_interactive<'a>(
    presets: &'a [(String, AgentPreset)],
    command: &[String],
) -> Option<(&'a AgentPreset, bool)> {
    let (_, preset) = preset_for_program(presets, command.first()?)?;
    let is_marker = |arg: &String, marker: &String| {
        arg == marker
            || arg
                .strip_prefix(marker.as_str())
                .is_some_and(|rest| rest.starts_with('='))
    };
    let markers = &preset.headless_markers;
    let headless = command[1..]
        .iter()
        .any(|arg| markers.iter().any(|marker| is_marker(arg, marker)));
    Some((preset, !headless && !markers.is_empty()))
}

fn unknown_agent<T>(
    stack: &LayerStack,
    name: &str,
    presets: &[(String, AgentPreset)],
) -> Result<T, ConfigError> {
    let known = || presets.iter().map(|(name, _)| name.as_str());
    let list = known().collect::<Vec<_>>().join(", ");
    let hint = match nearest(name, known()) {
        Some(suggestion) => {
            format!("did you mean {suggestion}? Known agents: {list}, script:FILE")
        }
        None => format!("known agents: {list}, script:FILE; pass any other command after --"),
    };
    config_error(
        format!("{} {name:?}: unknown agent", stack.display_name("agent")),
        hint,
    )
}

/// Rejects a model or approval level for a program without a preset, because ralph does not know
/// its flags for them.
fn reject_preset_settings(stack: &LayerStack, program: &str) -> Result<(), ConfigError> {
    let model = stack.layer_index(&["model"]) > 0
        && stack.layer_index(&["model"]) >= stack.layer_index(&["agent"]);
    let given = [("model", model), ("approve", stack.is_from_flag("approve"))];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => config_error(
            format!(
                "{}: {program} is not a known agent",
                stack.display_name(name)
            ),
            "use the agent's own flags, or define a preset for it: see docs/presets.md",
        ),
    }
}

/// Creates an agent without a preset. The command runs unchanged and reads the prompt from standard
/// input.
fn plain_agent(settings: &Settings, request: &RunRequest, command: Vec<String>) -> Agent {
    let scripted = command[0].strip_prefix(SCRIPT);
    Agent {
        name: command[0].rsplit('/').next().unwrap_or_default().to_owned(),
        exit_waiting: waiting_exit_code(settings, Some(defaults().exit_waiting)),
        reports_cost: scripted.is_some(),
        terminal: settings.pty.unwrap_or(false),
        command: match scripted {
            Some(file) => vec![format!(
                "{SCRIPT}{}",
                request.workspace.join(file).display()
            )],
            None => command,
        },
        ..Agent::default()
    }
}

/// The name of an agent that is a function in the host program.
pub(crate) const FUNCTION: &str = "a function of the host program";

fn function_agent() -> Agent {
    Agent {
        name: FUNCTION.into(),
        reports_cost: true,
        ..Agent::default()
    }
}

fn waiting_exit_code(settings: &Settings, default: Option<i32>) -> Option<i32> {
    match settings.exit_waiting {
        Some(0) => None,
        Some(code) => Some(code),
        None => default,
    }
}

/// Creates an agent from a preset. Its arguments are, in order: headless, stream, approval, model,
/// the user's flags, prompt. An agent on a terminal gets no headless, stream or prompt arguments,
/// because it must start its interactive screen.
fn preset_agent(
    stack: &LayerStack,
    settings: &Settings,
    name: &str,
    preset: &AgentPreset,
    command: &[String],
    flags: &[String],
) -> Result<Agent, ConfigError> {
    let level = match settings.approve {
        Approve::None => &preset.approve.none,
        Approve::Edits => &preset.approve.edits,
        Approve::All => &preset.approve.all,
    };
    let model = match &settings.model {
        Some(_) if preset.model.is_empty() => {
            let hint = if preset.model_hint.is_empty() {
                "remove it"
            } else {
                &preset.model_hint
            };
            return config_error(
                format!(
                    "{}: {name} has no flag to choose a model",
                    stack.display_name("model")
                ),
                hint,
            );
        }
        Some(model) => preset
            .model
            .iter()
            .map(|arg| arg.replace("{model}", model))
            .collect(),
        None => vec![],
    };
    let waiting_exit = preset
        .exit
        .iter()
        .find(|exit| exit.means == ExitMeaning::Waiting)
        .map(|exit| exit.code);
    let terminal = settings.pty.unwrap_or(false);
    let (headless, prompt_args, prompt) = if terminal {
        (&[][..], &[][..], PromptDelivery::default())
    } else {
        (
            &preset.headless[..],
            &preset.prompt_args[..],
            preset.prompt.clone(),
        )
    };
    // The user's own flags may choose another output format.
    let user_args = [command, flags].concat();
    let add_stream = !terminal && !stream_flags::choose_format(&user_args, &preset.stream);
    let stream = if add_stream { &preset.stream[..] } else { &[] };
    let mut agent = Agent {
        name: name.to_owned(),
        command: [
            command,
            headless,
            stream,
            &level.args,
            &model,
            flags,
            prompt_args,
        ]
        .concat(),
        env: level.env.clone(),
        prompt,
        approve: effective_approval(preset, level, settings.approve),
        exit_waiting: waiting_exit_code(settings, waiting_exit),
        exit_codes: preset
            .exit
            .iter()
            .map(|exit| exit.to_rule(preset))
            .collect(),
        denied: preset.denied.clone(),
        allows: level.allows.clone(),
        allow: preset.allow.clone(),
        error_lines: preset.error_lines.clone(),
        success_lines: preset.success_lines.clone(),
        dialect: DialectName::default(),
        failure_patterns: preset.failure_patterns.clone(),
        login: preset.login.clone(),
        // On a terminal, a person can watch the cost.
        budget: if terminal {
            vec![]
        } else {
            preset.budget.clone()
        },
        payer: None,
        held_back: Vec::new(),
        unset: Vec::new(),
        own_paths: Vec::new(),
        credentials: Vec::new(),
        version: Vec::new(),
        model: settings.model.clone(),
        reports_cost: false,
        terminal,
        ready: preset.ready.clone().filter(|_| terminal),
    };
    if add_stream || (!terminal && stream_flags::request_stream(&user_args, &preset.stream)) {
        set_dialect(&mut agent, &preset.dialect);
    }
    Ok(agent)
}

/// Returns the approval level that the agent actually gets. If its arguments for two levels are
/// equal, the higher level applies. Returns `None` if the agent has no arguments for any level and
/// its own configuration decides.
fn effective_approval(
    preset: &AgentPreset,
    level: &ApprovalArgs,
    requested: Approve,
) -> Option<Approve> {
    let levels = &preset.approve;
    if [&levels.none, &levels.edits, &levels.all]
        .iter()
        .all(|level| level.is_same_level(&ApprovalArgs::default()))
    {
        return None;
    }
    Some(match level {
        level if level.is_same_level(&levels.all) => Approve::All,
        level if level.is_same_level(&levels.edits) => Approve::Edits,
        _ => requested,
    })
}
