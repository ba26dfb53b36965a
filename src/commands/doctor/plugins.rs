//! Whether the loop can be had inside a client's own sessions, and whether what is there still fits.

use super::report::{Plugin, Program};
use crate::commands::plugin::{Standing, claude_config_dir, original_enabled, standings};

/// In every client that is installed, or that has it.
pub(crate) fn look(agents: &[Program]) -> Vec<Plugin> {
    let agent = |name: &str| agents.iter().find(|agent| agent.name == name);
    let all = standings(|name| agent(name)?.version.clone());
    let known = |plugin: &Plugin| {
        plugin.installed || agent(plugin.client).is_some_and(|agent| agent.installed)
    };
    all.into_iter().map(plugin).filter(known).collect()
}

fn plugin(standing: Standing) -> Plugin {
    let Standing {
        client,
        command,
        is_installed,
        is_current,
        trouble,
    } = standing;
    let outdated = || {
        let again = || {
            format!("it does not fit this ralph or this {client}: ralph plugin install {client}")
        };
        (is_installed && !is_current).then(again)
    };
    let disturbed = || {
        let is_disturbed = is_installed && client == "claude";
        let rival = original_enabled(&claude_config_dir().ok().filter(|_| is_disturbed)?)?;
        Some(format!(
            "{rival} hears the same stops: {client} plugin disable {rival}"
        ))
    };
    let trouble = trouble.or_else(outdated).or_else(disturbed);
    Plugin {
        client,
        command,
        installed: is_installed,
        current: is_current,
        trouble,
    }
}
