//! Defines the plan: a complete, validated description of a loop.
//!
//! A plan is built once, from the settings, and written to the first line of the journal. It
//! contains all of a loop's behavior as data; the engine does not see where a value came from.
//! Durations are in milliseconds.

mod agent;
mod proof;
mod sandbox;

pub use agent::Approve;
pub(crate) use agent::{
    Agent, AllowRule, DialectName, ExitCodeRule, ExitMeaning, FailurePattern, PromptDelivery,
    SCRIPT,
};
pub(crate) use proof::{Check, OnFail, Proof, SIGNAL_KINDS, SetupCommand, Signal, line_pattern};
pub use sandbox::Sandbox;

use super::event::is_default;
use super::limits::Limits;
use super::session::ClientSession;
use super::usage::Prices;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The rules of journals that name none: a check that turns green proves the work without a claim.
pub(crate) const FIRST_RULES: u32 = 1;

/// The rules of new loops, and the latest that this version knows.
pub(crate) const RULES: u32 = 2;

/// A complete, validated description of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The version of the rules for when a loop is done. A loop keeps the rules under which it was
    /// created.
    #[serde(default = "first_rules")]
    pub(crate) rules: u32,
    /// What the agent should do.
    pub(crate) task: Task,
    /// The conditions for counting the task as done.
    pub(crate) proof: Proof,
    /// The limits that end the loop.
    pub(crate) limits: Limits,
    /// Rests between iterations, after failures and at usage limits.
    pub(crate) rest: Rest,
    /// The agent to run first.
    pub(crate) agent: Agent,
    /// Agents that take over, in this order, while the first one rests at a limit or is not logged
    /// in.
    #[serde(default)]
    pub(crate) fallback: Vec<Agent>,
    /// The sandbox in which the agents run; `None` if they run without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<Sandbox>,
    /// The contents of the prompt besides the task.
    pub(crate) context: PromptContext,
    /// Times that processes have before ralph kills them or gives up.
    pub(crate) grace: GracePeriods,
    /// Token prices, for agents that report tokens but no cost.
    #[serde(default)]
    pub(crate) prices: Prices,
    /// The SCM tasks to run for an iteration whose checks are all green.
    #[serde(default)]
    pub(crate) scm: Scm,
    /// Whether the working tree is stored before each iteration's checks. Journals of earlier
    /// versions have no checkpoints.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) checkpoints: bool,
    /// A shell command to run when the loop ends; `None` for none.
    #[serde(default)]
    pub(crate) notify: Option<String>,
    /// The directory in which the agent and the checks run.
    pub(crate) workspace: PathBuf,
    /// The git worktree that was created for this loop; `None` if it has none.
    #[serde(default)]
    pub(crate) worktree: Option<Worktree>,
    /// The client session in which the loop runs; `None` if ralph starts the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<ClientSession>,
    /// Environment variables whose values occur in [user text](Plan::user_text_mut). The text
    /// contains their names instead, which keeps secrets out of the journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "covered")]
    pub(crate) redacted: Vec<String>,
    /// Whether another loop may use the same workspace.
    pub(crate) share_workspace: bool,
    /// The loop's name, if another loop may write guardrail logs to the same workspace at the same
    /// time. Their names then contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_owner: Option<String>,
    /// Maximum amount of an iteration's output to keep, in bytes.
    pub(crate) log_cap: u64,
    /// Free disk space required to start an iteration, in bytes.
    pub(crate) min_free: u64,
}

impl Plan {
    /// Returns whether the loop was created under the first rules. It keeps them, so that its
    /// journal folds as it did then.
    pub(crate) fn has_first_rules(&self) -> bool {
        self.rules == FIRST_RULES
    }

    /// Returns the top of the repository whose worktree the loop works in, or else the workspace.
    pub(crate) fn repository(&self) -> &Path {
        let git_dir = self
            .worktree
            .as_ref()
            .map(|worktree| worktree.repository.as_path());
        let git_dir = git_dir.filter(|dir| dir.ends_with(".git"));
        git_dir.and_then(Path::parent).unwrap_or(&self.workspace)
    }

    /// Returns the path, relative to the workspace, of the log with the full output of a check or
    /// an SCM task in an iteration.
    pub(crate) fn guardrail_log(&self, iteration: u32, slug: &str) -> String {
        let owner = self.log_owner.as_ref().map(|owner| format!("_{owner}"));
        let owner = owner.unwrap_or_default();
        format!(".ralph/guardrail_{iteration}_{slug}{owner}.log")
    }

    /// Returns all agents, in order of preference.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Agent> + Clone {
        std::iter::once(&self.agent).chain(&self.fallback)
    }

    /// Returns every text that a person typed and that the journal would contain verbatim, except
    /// for names, paths and the done pattern. Each text may contain a secret.
    pub(crate) fn user_text_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let task = self.task.text.iter_mut().chain(&mut self.task.title);
        let setup = self.proof.setup.iter_mut().map(|setup| &mut setup.command);
        let checks = self.proof.checks.iter_mut().map(|check| &mut check.command);
        let checks = checks.chain(setup);
        let agents = std::iter::once(&mut self.agent)
            .chain(&mut self.fallback)
            .flat_map(|agent| {
                let command = agent.command.iter_mut().chain(&mut agent.model);
                command.chain(agent.env.values_mut())
            });
        let promises = self
            .proof
            .signals
            .iter_mut()
            .filter_map(|signal| match signal {
                Signal::Promise(text) => Some(text),
                Signal::Pattern(_) | Signal::File(_) => None,
            });
        let scm = self.scm.command.iter_mut().chain(&mut self.scm.tasks);
        task.chain(checks)
            .chain(agents)
            .chain(promises)
            .chain(&mut self.proof.fallback)
            .chain(scm)
            .chain(&mut self.notify)
            .chain([&mut self.context.template])
    }
}

/// The maximum size of a prompt file, in bytes.
pub(crate) const PROMPT_FILE_MAX: u64 = 16 << 20;

/// The task. Exactly one of `text` and `file` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// A short title; `None` if the user set none.
    pub(crate) title: Option<String>,
    /// The task's text; `None` if it is in a file.
    pub(crate) text: Option<String>,
    /// The file that contains the task, read again for every iteration; `None` if the text is in
    /// the plan.
    pub(crate) file: Option<PathBuf>,
}

/// Rests between iterations, after failures and at usage limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// How long to rest after every iteration, in milliseconds.
    pub(crate) delay_ms: u64,
    /// How long to rest after the first failure, in milliseconds. Each further consecutive failure
    /// doubles the time.
    pub(crate) backoff_ms: u64,
    /// How long to rest at most after a failure, in milliseconds.
    pub(crate) backoff_cap_ms: u64,
    /// The first rest at a usage limit whose reset time is unknown, in milliseconds. It doubles
    /// each time the agent is tried again and still at the limit.
    #[serde(default = "default_probe_ms")]
    pub(crate) probe_ms: u64,
    /// The longest rest at a usage limit whose reset time is unknown, in milliseconds.
    #[serde(default = "default_probe_cap_ms")]
    pub(crate) probe_cap_ms: u64,
}

/// The SCM tasks to run for an iteration whose checks are all green.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scm {
    /// The program and its first arguments, normally `git`.
    pub(crate) command: Vec<String>,
    /// The tasks, in order. Each task is `commit`, `push` or other arguments for the command.
    pub(crate) tasks: Vec<String>,
}

impl Scm {
    /// Returns the name of a task in the names of logs.
    pub(crate) fn slug(task: usize) -> String {
        format!("scm-{}", task + 1)
    }
}

/// A git worktree that was created for one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Worktree {
    /// The worktree's top directory.
    pub(crate) path: PathBuf,
    /// The branch that is checked out in the worktree.
    pub(crate) branch: String,
    /// Whether the branch was created for the loop.
    pub(crate) new_branch: bool,
    /// The git directory of the repository that the worktree belongs to.
    pub(crate) repository: PathBuf,
    /// The user's current directory when the loop was created.
    pub(crate) from: PathBuf,
    /// The commit at which the loop's work begins.
    pub(crate) base: String,
    /// The branch that the user was on; `None` if HEAD was detached.
    pub(crate) base_branch: Option<String>,
    /// The timeout for a commit in the worktree, including its hooks, in milliseconds.
    pub(crate) commit_timeout_ms: u64,
}

/// The contents of the prompt besides the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PromptContext {
    /// The amount of context in the prompt.
    pub(crate) level: ContextLevel,
    /// Maximum length of the diff, in characters.
    pub(crate) diff_chars: usize,
    /// Maximum length of each red check's output, in characters.
    pub(crate) output_chars: usize,
    /// Maximum number of messages from the project's bus, of which the newest are used.
    #[serde(default)]
    pub(crate) bus: usize,
    /// The text of the prompt template.
    pub(crate) template: String,
}

/// The amount of context in a prompt besides the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContextLevel {
    /// No context: the prompt is the task, byte for byte.
    None,
    /// The rules of the loop and the red checks, but no diff and no history.
    Feedback,
    /// All available context.
    #[default]
    Full,
}

/// Times that processes have before ralph kills them or gives up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GracePeriods {
    /// Time between SIGTERM and SIGKILL, in milliseconds.
    pub(crate) term_ms: u64,
    /// Time between the appearance of a marker while the agent runs and SIGTERM, in milliseconds.
    pub(crate) marker_ms: u64,
    /// Time that processes have to exit after SIGKILL before the loop fails, in milliseconds.
    pub(crate) survivor_ms: u64,
    /// Time that an agent's screen has to become ready for the prompt, in milliseconds.
    #[serde(default = "default_ready_ms")]
    pub(crate) ready_ms: u64,
    /// Time that an agent may keep running after it reported the end of its run, in milliseconds.
    #[serde(default = "default_linger_ms")]
    pub(crate) linger_ms: u64,
    /// Time that child loops may continue after the work is done, in milliseconds; `None` means
    /// without limit.
    #[serde(default)]
    pub(crate) children_ms: Option<u64>,
}

// Journals from earlier versions lack these fields. The defaults are the values that those versions
// used.

fn first_rules() -> u32 {
    FIRST_RULES
}

fn default_probe_ms() -> u64 {
    30_000
}

fn default_probe_cap_ms() -> u64 {
    900_000
}

fn default_ready_ms() -> u64 {
    30_000
}

fn default_linger_ms() -> u64 {
    10_000
}
