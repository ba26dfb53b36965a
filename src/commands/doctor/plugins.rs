//! Reports whether the plugin is installed and up to date in each client.

use super::report::{PluginReport, ProgramReport};
use crate::commands::plugin::{PluginStatus, conflicting_plugin, plugin_statuses};

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
        is_installed,
        is_current,
        problem,
    } = status;
    let name = &client.name;
    let outdated = || {
        (is_installed && !is_current).then(|| {
            format!("outdated for this version of ralph or {name}; to update it, run `ralph plugin install {name}`")
        })
    };
    let conflict = || {
        let other = conflicting_plugin(client).filter(|_| is_installed)?;
        Some(format!(
            "{other} reacts to the same stop events; to turn it off, run `{name} plugin disable {other}`"
        ))
    };
    let problem = problem.or_else(outdated).or_else(conflict);
    PluginReport {
        client: name,
        command: client.command("ralph-loop"),
        installed: is_installed,
        current: is_current,
        problem,
    }
}
