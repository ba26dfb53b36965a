//! Events: everything that can happen to a loop. One event is one line of the journal.
//!
//! The serialized names are the published journal format (docs/journal.md) and never change.

mod report;
mod request;

pub use report::{AgentReport, CheckReport, ProcessExit, TextSignals};
pub use request::{Request, RequestSource};

use super::limits::LimitChange;
use super::outcome::{OutcomeSummary, StopReason};
use super::scm::ScmTaskReport;
use super::usage::Tokens;
use serde::{Deserialize, Serialize};

/// When an event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Wall-clock time, in milliseconds since 1970.
    pub(crate) wall_ms: i64,
    /// Monotonic milliseconds since this runner's previous event; 0 for its first.
    pub(crate) delta_ms: u64,
}

/// Something that happened to a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A runner took the lock, after it had killed any processes an earlier runner left.
    Opened {
        /// The runner's process ID.
        pid: u32,
        /// The runner's version.
        version: String,
        /// What the iteration that an earlier runner left unfinished had cost so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The tokens that iteration had used so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
        /// Whether the runner is a hook inside the agent's client session.
        #[serde(default, skip_serializing_if = "is_false", rename = "inside")]
        in_session: bool,
    },
    /// A person, a signal or the host program made a request.
    Asked {
        /// The request.
        #[serde(rename = "wish")]
        request: Request,
        /// How it reached the loop.
        by: RequestSource,
        /// The inbox has been read up to this offset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person sent the agent a message, with `ralph say` or `ralph resume --answer`.
    Answered {
        /// The message, for the next prompt.
        text: String,
        /// The inbox has been read up to this offset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person changed a limit.
    Changed {
        /// The limit and its new value.
        limit: LimitChange,
        /// The inbox has been read up to this offset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A check ended.
    Checked {
        /// The iteration; 0 is preflight.
        iteration: u32,
        /// The check's index in the plan.
        check: usize,
        /// Its result.
        report: CheckReport,
    },
    /// An SCM task ended, or had nothing to do.
    Committed {
        /// The iteration whose work it was for.
        iteration: u32,
        /// The task's index in the plan.
        task: usize,
        /// Its result.
        report: ScmTaskReport,
    },
    /// An iteration began. The agent starts only after this line is durable.
    Started {
        /// Its number; numbers never repeat.
        iteration: u32,
        /// The agent's name, if the loop has several agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A person ended a rest early.
    Hurried {
        /// The inbox has been read up to this offset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// The agent's process exists.
    Spawned {
        /// Its iteration.
        iteration: u32,
        /// The process ID, which is also its process group and session.
        pid: u32,
        /// The kernel's start time of that process; a process ID alone may be reused.
        start_time: u64,
    },
    /// The runner noticed something while the agent ran, or between iterations.
    Noticed {
        /// The newest iteration at that time.
        iteration: u32,
        /// What it noticed.
        notice: Notice,
        /// The content of a BLOCKED marker.
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "words")]
        text: Option<String>,
    },
    /// The agent and every process it had started are gone.
    Ended {
        /// Its iteration.
        iteration: u32,
        /// Everything known about it.
        #[serde(default)]
        report: AgentReport,
    },
    /// A turn of the client session broke off. The loop waits there for a person.
    #[serde(rename = "stumbled")]
    TurnFailed {
        /// The iteration.
        iteration: u32,
        /// The client's error message.
        #[serde(rename = "words")]
        message: String,
    },
    /// No child loop is running any more.
    Drained {
        /// The iteration.
        iteration: u32,
        /// The child loops that ended by themselves.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waited: Vec<String>,
        /// The child loops that were stopped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stopped: Vec<String>,
    },
    /// An error that retrying cannot fix.
    Faulted {
        /// Its class.
        class: Fault,
        /// A sentence for people.
        detail: String,
    },
    /// A time that the engine had asked for has come.
    Woke,
    /// The loop has ended. Written for readers; the engine decided before.
    Finished {
        /// How it ended.
        outcome: OutcomeSummary,
        /// Why it ended, in one word for scripts.
        stop_reason: StopReason,
        /// Whether the loop succeeded.
        success: bool,
        /// The runner's exit code.
        exit_code: i32,
        /// Iterations started.
        iterations: u32,
        /// Total cost; null if unknown.
        cost_usd: Option<f64>,
        /// Active time in seconds.
        duration_s: f64,
        /// The path of the loop's worktree, if it has one.
        worktree: Option<String>,
    },
    /// An event written by a later version of ralph.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Whether it contains text from an agent, a person or the system, which may contain a secret.
    pub(crate) fn has_untrusted_text(&self) -> bool {
        match self {
            Self::Answered { .. }
            | Self::Ended { .. }
            | Self::Committed { .. }
            | Self::TurnFailed { .. }
            | Self::Faulted { .. } => true,
            Self::Noticed { text, .. } => text.is_some(),
            _ => false,
        }
    }
}

/// Something that the runner noticed about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A line matched the done pattern.
    Pattern,
    /// A marker or the done file appeared.
    Marker(Marker),
    /// The inactivity timeout passed without output, or on a terminal without a change of the
    /// screen's text.
    Silence,
    /// The agent's screen did not become ready for the prompt, so nothing was typed.
    Unready,
    /// The agent reported the end of its run, but its process did not exit.
    Lingering,
}

/// A file or message by which the agent signals something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Marker {
    /// `DONE` in the task directory.
    Done,
    /// `BLOCKED`
    Blocked,
    /// `WAIT` or `WAIT_WITHOUT_RESTART`
    Wait,
    /// The done file that the plan asks for.
    File,
    /// A bus message in which the agent asks not to be restarted.
    Bus,
}

/// The class of an error that retrying cannot fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// The agent's program does not exist.
    NotFound,
    /// The agent's program is not executable, or the agent lacks a permission it needs.
    Permission,
    /// The agent is not logged in.
    Login,
    /// The agent's account has no credit.
    Credit,
    /// The model does not exist.
    Model,
    /// The agent rejected its arguments.
    Usage,
    /// The prompt file is missing or unreadable.
    PromptFile,
    /// The workspace is missing.
    Workspace,
    /// A marker is not a regular file.
    Marker,
    /// Processes survived SIGKILL.
    Survivors,
    /// The disk is full, or a write failed.
    Disk,
    /// There is a cost limit, but the cost cannot be known.
    Cost,
    /// The client session is lost, or the loop's file there is unreadable.
    Session,
}

impl Fault {
    /// The name used in the journal and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Permission => "permission",
            Self::Login => "login",
            Self::Credit => "credit",
            Self::Model => "model",
            Self::Usage => "usage",
            Self::PromptFile => "prompt-file",
            Self::Workspace => "workspace",
            Self::Marker => "marker",
            Self::Survivors => "survivors",
            Self::Disk => "disk",
            Self::Cost => "cost",
            Self::Session => "session",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
