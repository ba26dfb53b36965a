//! What holds, with a type for each setting: all layers laid over one another.

use super::layers::{Stack, without_nulls};
use super::units::{Backoff, Size, Span};
use crate::engine::plan::{Approve, Level, OnFail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every setting of the table, by its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    pub prompt: Option<String>,
    pub prompt_file: Option<PathBuf>,
    pub promise: Option<String>,
    pub no_promise: bool,
    pub done_pattern: Option<String>,
    pub done_file: Option<PathBuf>,
    pub fallback_promises: Vec<String>,
    pub checks: Vec<CheckWords>,
    pub check_timeout: Span,
    pub on_fail: OnFail,
    pub preflight: bool,
    pub max_iterations: u32,
    pub max_cost: f64,
    pub allow_unknown_cost: bool,
    pub max_tokens: u64,
    pub max_time: Span,
    pub max_failures: u32,
    pub iteration_timeout: Span,
    pub inactivity_timeout: Option<Span>,
    pub delay: Span,
    pub backoff: Backoff,
    pub probe: Backoff,
    pub agent: Option<AgentWords>,
    pub model: Option<String>,
    pub allow_api_key: bool,
    pub pty: Option<bool>,
    pub approve: Approve,
    pub exit_waiting: Option<i32>,
    pub context: Level,
    pub diff_chars: usize,
    pub output_chars: usize,
    pub context_bus: usize,
    pub agents: BTreeMap<String, Value>,
    pub prices: BTreeMap<String, Value>,
    pub worktree: WorktreeWords,
    pub scm: Option<ScmWords>,
    pub share_workspace: bool,
    pub wait_timeout: Span,
    pub tmux: bool,
    pub tmux_socket: String,
    pub quiet: bool,
    pub stream: bool,
    pub raw: bool,
    pub notify: Option<String>,
    pub log_cap: Size,
    pub min_free: Size,
    pub grace_term: Span,
    pub grace_marker: Span,
    pub grace_survivor: Span,
    pub grace_ready: Span,
    pub grace_linger: Span,
}

/// One of `checks`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CheckWords {
    pub command: String,
    pub on_fail: Option<OnFail>,
    pub timeout: Option<Span>,
}

/// `agent`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct AgentWords {
    pub name: Option<String>,
    pub command: Vec<String>,
    pub flags: Vec<String>,
}

/// `worktree`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub enum WorktreeWords {
    /// There is none.
    #[default]
    Off,
    /// On a branch that is called like the loop.
    Own,
    /// On this branch.
    On(String),
}

impl From<Value> for WorktreeWords {
    fn from(value: Value) -> Self {
        match value {
            Value::Bool(true) => Self::Own,
            Value::String(branch) => Self::On(branch),
            _ => Self::Off,
        }
    }
}

/// `scm`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ScmWords {
    pub command: Vec<String>,
    pub tasks: Vec<String>,
}

impl Settings {
    /// What a stack of layers comes to.
    pub fn of(stack: &Stack) -> Self {
        let mut all = stack.merged();
        // What is said to be nothing in one of `agents` may still change a known one.
        all.iter_mut()
            .filter(|(name, _)| *name != "agents")
            .for_each(|(_, value)| without_nulls(value));
        // Each value was held against the table before it came into a layer.
        serde_json::from_value(Value::Object(all)).expect("the table and its types agree")
    }
}
