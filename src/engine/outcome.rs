//! How a loop can end, and what each ending means to scripts and people.

use super::event::{Fault, RequestSource};
use super::exit_code::ExitCode;
use super::limits::Limit;
use super::state::State;
use serde::{Deserialize, Serialize};

/// How a loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The work is proven done.
    Done {
        /// Whether checks were part of the proof.
        checked: bool,
    },
    /// A limit was reached.
    Limit {
        /// The limit.
        limit: Limit,
        /// Whether this is a success: a plain loop ran all its iterations and its checks are green.
        success: bool,
    },
    /// An error that retrying cannot fix.
    Fatal {
        /// The class of the error.
        class: Fault,
        /// A sentence for people.
        detail: String,
    },
    /// The agent cannot continue without a person.
    Blocked {
        /// The agent's reason.
        why: String,
    },
    /// The agent asked not to be restarted.
    Waiting {
        /// How it asked: an exit code, a marker or the bus.
        why: String,
    },
    /// A person or the host program stopped the loop.
    Stopped {
        /// The [source](RequestSource::label) of the request.
        by: String,
    },
}

/// A loop's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// A runner holds its lock.
    Running,
    /// It rests until a person resumes it.
    Paused,
    /// It succeeded.
    Done,
    /// It reached a limit, or an error that retrying cannot fix.
    Failed,
    /// The agent needs an answer.
    Blocked,
    /// The agent asked not to be restarted.
    Waiting,
    /// A person stopped it.
    Stopped,
    /// It has not ended, and no runner holds its lock.
    Crashed,
}

/// An outcome as scripts read it, in the journal and in `--json` output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutcomeSummary {
    /// `done`, `limit`, `fatal`, `blocked`, `waiting` or `stopped`.
    pub kind: String,
    /// The limit, the fault's class or the stop reason; for `blocked` the agent's own text.
    pub why: String,
    /// A sentence for people.
    #[serde(default)]
    pub detail: String,
}

impl Status {
    /// The name used in JSON and in messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
        }
    }

    /// The exit code of `ralph wait` for a loop with this status that is not running.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::Success,
            Self::Paused | Self::Blocked | Self::Waiting => ExitCode::Resumable,
            Self::Stopped => ExitCode::Stopped,
            Self::Failed | Self::Crashed | Self::Running => ExitCode::Failure,
        }
    }
}

impl Outcome {
    /// The loop's status after this outcome.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Done { .. } | Self::Limit { success: true, .. } => Status::Done,
            Self::Limit { .. } | Self::Fatal { .. } => Status::Failed,
            Self::Blocked { .. } => Status::Blocked,
            Self::Waiting { .. } => Status::Waiting,
            Self::Stopped { .. } => Status::Stopped,
        }
    }

    /// The exit code of `ralph run` after this outcome.
    pub fn exit_code(&self) -> ExitCode {
        self.status().exit_code()
    }

    /// One word for scripts.
    pub fn stop_reason(&self) -> &'static str {
        match self {
            Self::Done { checked: true } => "all_checks_passed",
            Self::Done { checked: false } => "completed",
            Self::Limit { limit, .. } => limit.row().stop_reason,
            Self::Fatal { .. } => "fatal",
            Self::Blocked { .. } => "blocked",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// The outcome as scripts read it.
    pub fn summary(&self) -> OutcomeSummary {
        let (kind, why, detail) = match self {
            Self::Done { checked: true } => {
                ("done", "all_checks_passed", "every check is green".into())
            }
            Self::Done { checked: false } => (
                "done",
                "completed",
                "the agent claimed it; there are no checks".into(),
            ),
            Self::Limit { limit, success } => (
                "limit",
                limit.as_str(),
                limit.describe_ending(*success).into(),
            ),
            Self::Fatal { class, detail } => ("fatal", class.as_str(), detail.clone()),
            Self::Blocked { why } => ("blocked", why.as_str(), why.clone()),
            Self::Waiting { why } if why == "bus" => (
                "waiting",
                "bus",
                "the agent asked to wait: message on the bus".into(),
            ),
            Self::Waiting { why } => (
                "waiting",
                why.as_str(),
                format!("the agent asked to wait: {why}"),
            ),
            Self::Stopped { by } if by == RequestSource::Host.label() => {
                ("stopped", by.as_str(), format!("by {by}"))
            }
            Self::Stopped { by } => ("stopped", by.as_str(), format!("by a person ({by})")),
        };
        OutcomeSummary {
            kind: kind.into(),
            why: why.into(),
            detail,
        }
    }
}

impl State {
    /// The outcome as scripts read it, with how much of a limit was used.
    pub(crate) fn outcome_summary(&self) -> Option<OutcomeSummary> {
        let outcome = self.outcome()?;
        let mut summary = outcome.summary();
        if let Outcome::Limit { limit, .. } = outcome
            && limit.row().is_budget
        {
            summary.detail.extend([" (", &self.usage_of(*limit), ")"]);
        }
        Some(summary)
    }
}
