//! `ralph doctor`: what is here, what is missing, and what would get it.

mod plugins;
mod programs;
mod report;
mod state;
mod system;
mod text;
mod workspace;

use super::run::{places, workspace};
use crate::config::agents;
use crate::config::agents::Preset;
use crate::config::{Errand, Origin, Settings, Stack, Wrong};
use crate::lifecycle::failure::{Failure, answer};
use crate::lifecycle::preconditions::agent_exists;
use crate::store::Home;
use crate::ui::console::colours;
use report::Report;
use std::path::Path;

pub(crate) fn doctor(json: bool) -> Result<i32, Failure> {
    let here = workspace()?;
    let home = Home::locate()?;
    let Here {
        presets,
        named_here,
        allow_keys,
        min_free,
        agent,
        wrong,
    } = settings(&here);
    let Ok((agents, tools)) = programs::look(&here, presets, &named_here, allow_keys) else {
        // Somebody has pressed Ctrl-C.
        return Ok(130);
    };
    let state = state::look(&home, min_free);
    let plugins = plugins::look(&agents);
    let mut report = Report::new(
        agents,
        tools,
        system::look(),
        state,
        workspace::look(&here, wrong),
        agent,
    );
    report.plugins = plugins;
    if json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::broken)?;
        answer(&format!("{text}\n"))?;
    } else {
        answer(&text::text(&report, colours()))?;
    }
    Ok(i32::from(!report.ready))
}

/// What the settings that hold here say.
struct Here {
    presets: Vec<(String, Preset)>,
    /// Those whose program a file of this directory names.
    named_here: Vec<String>,
    /// Whether keys may pay where a login could.
    allow_keys: bool,
    min_free: u64,
    /// The agent that they name, if they do, or why it cannot be used.
    agent: Option<Result<String, String>>,
    /// What is wrong with them; the rest are the defaults then.
    wrong: Option<String>,
}

fn settings(here: &Path) -> Here {
    let read = Stack::load(&places(here.to_owned(), None)).and_then(|stack| say_of(&stack, here));
    read.unwrap_or_else(|Wrong { error, .. }| {
        let defaults = say_of(&Stack::defaults(), here).expect("the defaults are right");
        Here {
            wrong: Some(error),
            ..defaults
        }
    })
}

fn say_of(stack: &Stack, here: &Path) -> Result<Here, Wrong> {
    let all = Settings::of(stack);
    let presets = agents::all(stack, &all.agents)?;
    let is_from_here = |name: &String| matches!(stack.origin(&["agents", name, "command"]), Origin::File(path) if Path::new(path).is_relative());
    let named_here = all
        .agents
        .keys()
        .filter(|name| is_from_here(name))
        .cloned()
        .collect();
    let names = all
        .agent
        .as_ref()
        .is_some_and(|agent| agent.name.is_some() || !agent.command.is_empty());
    let agent = names.then(|| usable(stack, &all, here));
    let (allow_keys, min_free) = (all.allow_api_key, all.min_free.0);
    Ok(Here {
        presets,
        named_here,
        allow_keys,
        min_free,
        agent,
        wrong: None,
    })
}

/// The agent of the settings.
fn usable(stack: &Stack, all: &Settings, here: &Path) -> Result<String, String> {
    let errand = Errand {
        workspace: here.to_owned(),
        ..Errand::default()
    };
    let agent = agents::agent(stack, all, &errand).map_err(Failure::from);
    let found =
        agent.and_then(|agent| agent_exists(&agent, here, &all.agents).map(|()| agent.name));
    found.map_err(|failure| {
        let (_, error, hint) = failure.into_parts();
        format!(
            "{error}{}",
            hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
        )
    })
}
