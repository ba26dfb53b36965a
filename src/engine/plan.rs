//! What a loop was asked to do, complete and validated: it stands in the first line of the journal.
//!
//! Every semantic is data here; the engine never asks where one came from. Durations are milliseconds.

use super::event::Exit;
use super::failure::Kind;
use super::session::Session;
use super::usage::Prices;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A complete, validated description of one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the agent is to do.
    pub task: Task,
    /// What proves that it is done.
    pub proof: Proof,
    /// Where the loop stops at the latest.
    pub limits: Limits,
    /// What happens between iterations.
    pub rest: Rest,
    /// How the agent is called.
    pub agent: Agent,
    /// Who takes over while it rests at a limit or has no login, in this order.
    #[serde(default)]
    pub fallback: Vec<Agent>,
    /// What the prompt carries besides the task.
    pub context: Context,
    /// How patient ralph is with processes.
    pub grace: Grace,
    /// What tokens cost, where an agent counts them and names no dollars.
    #[serde(default)]
    pub prices: Prices,
    /// What is done with the work of an iteration whose checks are all green.
    #[serde(default)]
    pub scm: Scm,
    /// The command that is told of every ending.
    #[serde(default)]
    pub notify: Option<String>,
    /// The directory in which agent and checks run.
    pub workspace: PathBuf,
    /// The place of its own that the workspace is in, if it has one.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// The session of a client that it lives in, unless ralph starts its agents itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The variables whose values a person has typed: their names stand in the words of this plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covered: Vec<String>,
    /// Whether another loop may use the same workspace.
    pub share_workspace: bool,
    /// How much of an iteration's output is kept, in bytes.
    pub log_cap: u64,
    /// How many bytes must be free on disk before an iteration starts.
    pub min_free: u64,
}

impl Plan {
    /// The agents, in the order in which they are asked.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> + Clone {
        std::iter::once(&self.agent).chain(&self.fallback)
    }
}

/// Where the task's words come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// A short name for the work, where one was given beside a file.
    pub title: Option<String>,
    /// The text, if it was given as words.
    pub text: Option<String>,
    /// The file that holds it, re-read at every iteration. One of the two is set.
    pub file: Option<PathBuf>,
}

/// What is asked for before a loop counts as done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Commands that ralph itself runs; all must be green.
    pub checks: Vec<Check>,
    /// Whether they run once before the first iteration.
    pub preflight: bool,
    /// A promise asked for explicitly.
    pub promise: Option<String>,
    /// A pattern asked for explicitly.
    pub pattern: Option<String>,
    /// A file asked for explicitly.
    pub file: Option<PathBuf>,
    /// Promises taken when nothing explicit was asked for and the checks prove nothing;
    /// the first is the one asked for. Empty: no promise is asked for by itself.
    pub fallback: Vec<String>,
}

impl Proof {
    /// Whether a signal was asked for explicitly.
    pub fn explicit(&self) -> bool {
        self.promise.is_some() || self.pattern.is_some() || self.file.is_some()
    }
}

/// One command that must exit 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Run with `sh -c` in the workspace.
    pub command: String,
    /// A file-name-safe word for it, unique within the plan.
    pub slug: String,
    /// Past this it is red.
    pub timeout_ms: u64,
    /// How its red output enters the next prompt.
    pub on_fail: OnFail,
}

impl Check {
    /// The file in the workspace that holds all it printed in an iteration.
    pub fn guardrail(&self, iteration: u32) -> String {
        format!(".ralph/guardrail_{iteration}_{}.log", self.slug)
    }
}

/// How a red check's output enters the next prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFail {
    /// After the task.
    #[default]
    Append,
    /// Before the task.
    Prepend,
    /// Instead of the task's text.
    Replace,
}

/// Where the loop stops at the latest; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Iterations that count.
    pub iterations: Option<u32>,
    /// Dollars, by the agent's own report.
    pub cost_usd: Option<f64>,
    /// Whether dollars that nobody can know are put up with.
    #[serde(default)]
    pub unknown_cost: bool,
    /// Tokens, by the agent's own report.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Active time of the whole loop.
    pub time_ms: Option<u64>,
    /// Failures in a row.
    pub failures: Option<u32>,
    /// Time of one iteration.
    pub iteration_ms: Option<u64>,
    /// Silence of one iteration.
    pub inactivity_ms: Option<u64>,
    /// How often in a row a session's client lets its agent be held back that uses no tool in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
}

/// What happens between iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rest {
    /// The pause after an iteration.
    pub delay_ms: u64,
    /// The pause after a first failure; doubled with each further one.
    pub backoff_ms: u64,
    /// The longest pause after failures.
    pub backoff_cap_ms: u64,
    /// The pause at an agent's limit that does not say when it is over; doubled each time.
    #[serde(default = "half_a_minute")]
    pub probe_ms: u64,
    /// The longest of these.
    #[serde(default = "a_quarter")]
    pub probe_cap_ms: u64,
}

/// What the command of a scripted agent begins with; its script follows.
pub const SCRIPT: &str = "script:";

/// How the agent is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// What people call it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that it needs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How the prompt goes in.
    #[serde(default)]
    pub prompt: Delivery,
    /// What it may do without asking; none where its own command says.
    #[serde(default)]
    pub approve: Option<Approve>,
    /// The exit code that means "waiting: do not restart me".
    pub exit_waiting: Option<i32>,
    /// Exit codes of its own that mean more than that it failed.
    #[serde(default)]
    pub exits: Vec<ExitRule>,
    /// Patterns of the lines by which it says that it was not allowed something.
    #[serde(default)]
    pub denied: Vec<String>,
    /// The form of its output.
    #[serde(default)]
    pub dialect: Dialect,
    /// What the words mean by which it fails.
    #[serde(default)]
    pub reasons: Vec<ReasonRule>,
    /// How a person logs in to it.
    #[serde(default)]
    pub login: String,
    /// The words that keep it to a number of dollars, `{usd}` in their place.
    #[serde(default)]
    pub budget: Vec<String>,
    /// Who pays for its work, where that is known.
    #[serde(default)]
    pub payer: Option<String>,
    /// Variables with keys that would pay instead, and are kept from it.
    #[serde(default)]
    pub held_back: Vec<String>,
    /// Variables that say it runs inside another agent, and are kept from it.
    #[serde(default)]
    pub unset: Vec<String>,
    /// The model that it was asked to use.
    #[serde(default)]
    pub model: Option<String>,
    /// Whether this agent's cost can be known.
    pub reports_cost: bool,
    /// Whether it has a terminal, at which the prompt is typed, instead of pipes.
    #[serde(default)]
    pub terminal: bool,
    /// What its screen shows when it is ready for the prompt, as a pattern; none: it is painted and still.
    #[serde(default)]
    pub ready: Option<String>,
}

/// The form of an agent's output. Those that are not text are one JSON object a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// Words for people.
    #[default]
    Text,
    /// Claude Code's `stream-json`.
    Claude,
    /// Codex' `exec --json`.
    Codex,
    /// Gemini CLI's `stream-json`.
    Gemini,
    /// Opencode's `--format json`.
    Opencode,
    /// Qwen Code's `stream-json`, a cousin of Claude Code's.
    Qwen,
    /// Copilot CLI's `--output-format json`.
    Copilot,
    /// Droid's `stream-json`.
    Droid,
    /// pi's `--mode json`.
    Pi,
    /// Amp's `--stream-json`, by its documentation a cousin of Claude Code's.
    Amp,
    /// Cursor agent's `stream-json`, by its documentation.
    Cursor,
    /// Goose's `stream-json`, by its documentation.
    Goose,
}

impl Dialect {
    /// Whether it is made of events, among which the final words are known.
    pub fn is_stream(self) -> bool {
        self != Self::Text
    }

    /// Whether its events tell of tokens.
    pub fn counts_tokens(self) -> bool {
        self.is_stream() && self != Self::Copilot
    }

    /// Whether it tells what it costs, in dollars.
    pub fn tells_cost(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode | Self::Pi)
    }
}

/// What words mean by which an agent fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonRule {
    /// A pattern of them. What its group `reset` matches says when the trouble is over.
    pub pattern: String,
    /// What they mean.
    pub means: Kind,
}

/// How the prompt goes in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// By standard input.
    #[default]
    Stdin,
    /// As the last argument.
    Argument,
    /// In a file whose path is the last argument.
    File,
}

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Approve {
    /// Nothing but reading.
    None,
    /// Change files in the workspace.
    Edits,
    /// Everything.
    All,
}

/// An exit code that says more than that the agent failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExitRule {
    /// The code.
    pub code: i32,
    /// What it means.
    pub means: Meaning,
    /// What a person would do about it.
    pub hint: String,
}

/// What an exit code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// Do not start it again.
    Waiting,
    /// It is not logged in.
    Login,
    /// It does not understand how it was called.
    Usage,
    /// It may not do what it must.
    Permission,
    /// It is out of something that comes back with time.
    Limit,
}

impl Agent {
    /// What an exit code of its own means.
    pub fn rule(&self, exit: Exit) -> Option<&ExitRule> {
        self.exits.iter().find(|rule| Some(rule.code) == exit.code)
    }
}

impl Meaning {
    /// What the agent says by it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Waiting => "it waits",
            Self::Login => "it is not logged in",
            Self::Usage => "it did not understand how it was called",
            Self::Permission => "it may not do what it must",
            Self::Limit => "it is out of quota for now",
        }
    }

    /// The reason that it stands for; none if it is no bad end.
    pub fn kind(self) -> Option<Kind> {
        Some(match self {
            Self::Waiting => return None,
            Self::Login => Kind::Login,
            Self::Usage => Kind::Usage,
            Self::Permission => Kind::Denied,
            Self::Limit => Kind::UsageLimit,
        })
    }
}

/// What is done with the work of an iteration whose checks are all green.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scm {
    /// The program and its own words, `git` as a rule.
    pub command: Vec<String>,
    /// `commit`, `push` or other words for it, in order; none is nothing.
    pub tasks: Vec<String>,
}

impl Scm {
    /// The file in the workspace that holds all that a task printed in an iteration.
    pub fn guardrail(iteration: u32, task: usize) -> String {
        format!(".ralph/guardrail_{iteration}_scm-{}.log", task + 1)
    }
}

/// A worktree of git that was made for one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its top.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: String,
    /// Whether that branch was made for it.
    pub new_branch: bool,
    /// Where git keeps the repository that it belongs to.
    pub repository: PathBuf,
    /// The directory in which the user was.
    pub from: PathBuf,
    /// The commit at which the work began.
    pub base: String,
    /// The branch that the user was on, if it was one.
    pub base_branch: Option<String>,
    /// How long a commit there may take, with its hooks.
    pub commit_timeout_ms: u64,
}

/// What the prompt carries besides the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// How much.
    pub level: Level,
    /// The diff's cap, in characters.
    pub diff_chars: usize,
    /// The cap of each red check's output, in characters.
    pub output_chars: usize,
    /// How many messages of the project's bus it carries.
    #[serde(default)]
    pub bus: usize,
    /// The prompt's template.
    pub template: String,
}

/// How much a prompt carries besides the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// Nothing: the task byte for byte.
    None,
    /// The rules of the loop and the red checks, without diff and history.
    Feedback,
    /// Everything.
    #[default]
    Full,
}

/// How patient ralph is with processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grace {
    /// Between TERM and KILL.
    pub term_ms: u64,
    /// Between a marker seen in mid-run and TERM.
    pub marker_ms: u64,
    /// How long a process may outlive KILL before the loop gives up.
    pub survivor_ms: u64,
    /// How long an agent's screen may take until it is ready for the prompt.
    #[serde(default = "half_a_minute")]
    pub ready_ms: u64,
    /// How long an agent may stay once it has said that all is over.
    #[serde(default = "ten_seconds")]
    pub linger_ms: u64,
    /// How long child loops may go on once the work is done; none is for ever.
    #[serde(default)]
    pub children_ms: Option<u64>,
}

/// What held before there was such a setting.
fn a_quarter() -> u64 {
    900_000
}

/// What held before there was such a setting.
fn ten_seconds() -> u64 {
    10_000
}

/// What held before there was such a setting.
fn half_a_minute() -> u64 {
    30_000
}
