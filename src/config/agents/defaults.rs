//! Default values for agents whose preset and settings do not set them.

use crate::config::units::Millis;
use serde::Deserialize;
use std::sync::LazyLock;

/// The content of `presets/agent-defaults.toml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct AgentDefaults {
    pub(crate) exit_waiting: i32,
    pub(crate) stream_inactivity: Millis,
    pub(crate) terminal_inactivity: Millis,
}

pub(crate) fn defaults() -> &'static AgentDefaults {
    static DEFAULTS: LazyLock<AgentDefaults> = LazyLock::new(|| {
        toml::from_str(include_str!("../../../presets/agent-defaults.toml"))
            .expect("presets/agent-defaults.toml is valid")
    });
    &DEFAULTS
}
