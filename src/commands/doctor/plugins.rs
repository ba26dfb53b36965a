//! Reports whether the plugin is installed in each client and up to date.

use super::report::{PluginReport, ProgramReport};
use crate::commands::plugin::{PluginStatus, claude_config_dir, enabled_original, plugin_statuses};

/// Inspects every client that is installed or has the plugin.
pub(super) fn inspect(agents: &[ProgramReport]) -> Vec<PluginReport> {
    let agent = |name: &str| agents.iter().find(|agent| agent.name == name);
    let statuses = plugin_statuses(|name| agent(name)?.version.clone());
    let is_relevant = |plugin: &PluginReport| {
        plugin.installed || agent(plugin.client).is_some_and(|agent| agent.installed)
    };
    statuses
        .into_iter()
        .map(report)
        .filter(is_relevant)
        .collect()
}

fn report(status: PluginStatus) -> PluginReport {
    let PluginStatus {
        client,
        command,
        is_installed,
        is_current,
        problem,
    } = status;
    let outdated = || {
        (is_installed && !is_current).then(|| {
            format!("it does not match this ralph or this {client}: ralph plugin install {client}")
        })
    };
    let conflict = || {
        let may_conflict = is_installed && client == "claude";
        let other = enabled_original(&claude_config_dir().ok().filter(|_| may_conflict)?)?;
        Some(format!(
            "{other} reacts to the same stop events: {client} plugin disable {other}"
        ))
    };
    let problem = problem.or_else(outdated).or_else(conflict);
    PluginReport {
        client,
        command,
        installed: is_installed,
        current: is_current,
        problem,
    }
}
