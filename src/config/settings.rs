//! The merged settings as a typed struct, with one field for each row of the table.

use super::layers::{LayerStack, remove_nulls};
use super::units::{BackoffRange, ByteSize, Millis, parse_limit};
use crate::engine::Amount;
use crate::engine::limits::{LIMITS, LimitRow, Limits};
use crate::engine::look::SecondLook;
use crate::engine::plan::{Approve, ContextLevel, OnFail, SIGNAL_KINDS, Sandbox, Signal};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// All settings. The table in [`super::keys`] describes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub(crate) struct Settings {
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_file: Option<PathBuf>,
    /// The requested signals, from the settings in [`SIGNAL_KINDS`].
    #[serde(skip)]
    pub(crate) signals: Vec<Signal>,
    pub(crate) until_green: bool,
    pub(crate) no_promise: bool,
    pub(crate) fallback_promises: Vec<String>,
    pub(crate) checks: Vec<CheckSettings>,
    pub(crate) check_timeout: Millis,
    pub(crate) on_fail: OnFail,
    pub(crate) preflight: bool,
    pub(crate) second_look: SecondLook,
    pub(crate) hidden_checks: Vec<String>,
    pub(crate) setup: Option<String>,
    pub(crate) sealed: bool,
    pub(crate) weak_checks: bool,
    pub(crate) protect: Vec<String>,
    pub(crate) allow: Vec<String>,
    /// Whether the working tree is stored before each iteration's checks.
    pub(crate) checkpoints: bool,
    /// The values of all `max-…` settings.
    #[serde(skip)]
    pub(crate) limits: Limits,
    pub(crate) allow_unknown_cost: bool,
    pub(crate) iteration_timeout: Millis,
    pub(crate) inactivity_timeout: Option<Millis>,
    pub(crate) delay: Millis,
    pub(crate) backoff: BackoffRange,
    pub(crate) probe: BackoffRange,
    pub(crate) agent: Option<AgentSettings>,
    pub(crate) model: Option<String>,
    pub(crate) allow_api_key: bool,
    pub(crate) pty: Option<bool>,
    pub(crate) approve: Approve,
    pub(crate) sandbox: SandboxSetting,
    pub(crate) exit_waiting: Option<i32>,
    pub(crate) context: ContextLevel,
    pub(crate) diff_chars: usize,
    pub(crate) output_chars: usize,
    pub(crate) context_bus: usize,
    pub(crate) agents: BTreeMap<String, Value>,
    pub(crate) prices: BTreeMap<String, Value>,
    pub(crate) worktree: WorktreeSetting,
    pub(crate) scm: Option<ScmSettings>,
    pub(crate) share_workspace: bool,
    pub(crate) wait_timeout: Millis,
    pub(crate) tmux: bool,
    pub(crate) tmux_socket: String,
    pub(crate) quiet: bool,
    pub(crate) stream: bool,
    pub(crate) raw: bool,
    pub(crate) notify: Option<String>,
    pub(crate) fleet: Option<String>,
    pub(crate) fleet_pool: String,
    pub(crate) fleet_creds: Option<PathBuf>,
    pub(crate) fleet_nkey: Option<PathBuf>,
    pub(crate) fleet_ca: Option<PathBuf>,
    pub(crate) fleet_cert: Option<PathBuf>,
    pub(crate) fleet_key: Option<PathBuf>,
    pub(crate) fleet_ack_wait: Millis,
    pub(crate) fleet_heartbeat: Millis,
    pub(crate) fleet_offline_grace: Option<Millis>,
    pub(crate) log_cap: ByteSize,
    pub(crate) min_free: ByteSize,
    pub(crate) grace_term: Millis,
    pub(crate) grace_marker: Millis,
    pub(crate) grace_survivor: Millis,
    pub(crate) grace_ready: Millis,
    pub(crate) grace_linger: Millis,
}

/// The value of one entry in the setting `checks`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct CheckSettings {
    pub(crate) command: String,
    pub(crate) expect: Option<String>,
    pub(crate) on_fail: Option<OnFail>,
    pub(crate) timeout: Option<Millis>,
}

/// The value of the setting `agent`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct AgentSettings {
    pub(crate) name: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) flags: Vec<String>,
}

/// The value of the setting `worktree`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum WorktreeSetting {
    /// Do not create a worktree.
    #[default]
    Off,
    /// Create a worktree on the branch `ralph/<name>`.
    DefaultBranch,
    /// Create a worktree on this branch.
    Branch(String),
}

impl From<Value> for WorktreeSetting {
    fn from(value: Value) -> Self {
        match value {
            Value::Bool(true) => Self::DefaultBranch,
            Value::String(branch) => Self::Branch(branch),
            _ => Self::Off,
        }
    }
}

/// The value of the setting `sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SandboxSetting {
    #[default]
    None,
    Bwrap,
    Landlock,
}

impl SandboxSetting {
    /// Returns the kind of sandbox; `None` if the agent shall run without one.
    pub(crate) fn kind(self) -> Option<Sandbox> {
        match self {
            Self::None => None,
            Self::Bwrap => Some(Sandbox::Bwrap),
            Self::Landlock => Some(Sandbox::Landlock),
        }
    }
}

/// The value of the setting `scm`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ScmSettings {
    pub(crate) command: Vec<String>,
    pub(crate) tasks: Vec<String>,
}

impl Settings {
    /// Merges the layers into one value for each setting.
    pub(crate) fn from_layers(stack: &LayerStack) -> Self {
        let mut values = stack.merged();
        // Keep a null in `agents`: it can remove a value from an embedded preset.
        values
            .iter_mut()
            .filter(|(name, _)| *name != "agents")
            .for_each(|(_, value)| remove_nulls(value));
        let mut limits = Limits::default();
        for row in &LIMITS {
            let value = row.key.and_then(|key| values.remove(key));
            row.set(
                &mut limits,
                value.and_then(|value| limit_value(row, &value)),
            );
        }
        let signals = SIGNAL_KINDS.iter().filter_map(|kind| {
            let value = values.remove(kind.key)?;
            value.as_str().map(kind.new)
        });
        let signals = signals.collect();
        // Every value in a layer was validated against the table.
        let settings: Self =
            serde_json::from_value(Value::Object(values)).expect("the table matches this struct");
        Self {
            signals,
            limits,
            ..settings
        }
    }
}

fn limit_value(row: &LimitRow, value: &Value) -> Option<Amount> {
    match value {
        Value::String(text) => parse_limit(row.limit, text),
        number => parse_limit(row.limit, &number.to_string()),
    }
    .ok()
    .flatten()
}
