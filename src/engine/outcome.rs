//! Outcomes: the ways a loop can end, and their meaning to scripts and people.

use super::event::{Fault, Marker, RequestSource};
use super::exit_code::ExitCode;
use super::format::iteration_count;
use super::limits::Limit;
use super::state::State;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way a loop ended.
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
        /// The limit that was reached.
        limit: Limit,
        /// Whether this counts as success: a plain loop ran all its iterations and its checks are
        /// green.
        success: bool,
    },
    /// Several iterations in a row made no progress: the files and the failures of the checks were
    /// the same as before.
    Stalled,
    /// An error that retrying cannot fix.
    Fatal {
        /// The class of the error.
        class: Fault,
        /// A description of the error, for people.
        detail: String,
    },
    /// The agent cannot continue without a person.
    Blocked {
        /// The reason that the agent reported.
        why: String,
    },
    /// The checks are green, but not by the tests and settings that the loop began with. A person
    /// decides whether the changes of these are right.
    Disputed {
        /// The first of the files whose change is disputed.
        files: Vec<String>,
        /// The agent's reason for the change, or why the checks could not run again; `None` if
        /// there is neither.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The agent asked not to be restarted.
    Waiting {
        /// The way the agent asked.
        why: WaitReason,
    },
    /// A person or the host program stopped the loop.
    Stopped {
        /// The source of the request.
        by: RequestSource,
    },
}

/// The way an agent asked not to be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The agent exited with this code, which asks to wait.
    Exit(i32),
    /// The agent left a `WAIT` marker.
    Marker,
    /// The agent posted a bus message that asks to wait.
    Bus,
}

/// Why a loop ended or paused, in one word for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// Every check is green.
    AllChecksPassed,
    /// The agent claimed that the task is done; there are no checks.
    Completed,
    /// The limit on iterations was reached.
    MaxIterations,
    /// The limit on cost or tokens was reached.
    BudgetExhausted,
    /// The limit on active time was reached.
    Timeout,
    /// The limit on consecutive failures was reached.
    Failures,
    /// Several iterations in a row made no progress.
    Stalled,
    /// The limit on waiting for an unavailable agent was reached.
    MaxRest,
    /// A held-out check failed as often as allowed.
    MaxPeeks,
    /// The client does not let ralph block the end of its session again.
    BlockCap,
    /// An error occurred that retrying cannot fix.
    Fatal,
    /// The agent cannot continue without a person.
    Blocked,
    /// A person has to decide about changed tests or settings.
    Disputed,
    /// The agent asked not to be restarted.
    Waiting,
    /// A person or the host program stopped the loop.
    Stopped,
    /// The loop is paused and has not ended.
    Paused,
    /// A reason written by a later version of ralph.
    #[serde(other)]
    Unknown,
}

/// Whether a process works on a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// No runner holds the loop's lock.
    Idle,
    /// A command is starting the loop's runner, which does not hold the lock yet.
    Starting,
    /// A runner holds the loop's lock, or a client session works on the loop.
    Running,
}

/// A loop's status, as `ralph ls` and `ralph status` show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The loop exists, and its runner is about to take the lock.
    Starting,
    /// A runner holds the loop's lock.
    Running,
    /// Nothing runs until a person resumes the loop.
    Paused,
    /// The loop succeeded.
    Done,
    /// The loop reached a limit, or hit an error that retrying cannot fix.
    Failed,
    /// The agent needs an answer.
    Blocked,
    /// The agent asked not to be restarted.
    Waiting,
    /// A person or the host program stopped the loop.
    Stopped,
    /// The loop has not ended, but no runner holds its lock.
    Crashed,
}

/// An outcome in the form that scripts read, in the journal and in `--json` output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutcomeSummary {
    /// `done`, `limit`, `stalled`, `fatal`, `blocked`, `disputed`, `waiting` or `stopped`.
    pub kind: String,
    /// The limit, the fault's class or the stop reason; for `blocked`, the agent's own text; for
    /// `disputed`, the files.
    pub why: String,
    /// A description of the outcome, for people.
    #[serde(default)]
    pub detail: String,
}

impl Status {
    /// All states, in the order in which a loop can have them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Starting,
        Self::Running,
        Self::Paused,
        Self::Done,
        Self::Failed,
        Self::Blocked,
        Self::Waiting,
        Self::Stopped,
        Self::Crashed,
    ];

    /// Returns the name used in JSON and in messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
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

    /// Returns the exit code of `ralph wait` for a loop that has this status and is not running.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::Success,
            Self::Paused | Self::Blocked | Self::Waiting => ExitCode::Resumable,
            Self::Stopped => ExitCode::Stopped,
            Self::Failed | Self::Crashed | Self::Starting | Self::Running => ExitCode::Failure,
        }
    }
}

impl Outcome {
    /// Returns the loop's status after this outcome.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Done { .. } | Self::Limit { success: true, .. } => Status::Done,
            Self::Limit { .. } | Self::Stalled | Self::Fatal { .. } => Status::Failed,
            Self::Blocked { .. } | Self::Disputed { .. } => Status::Blocked,
            Self::Waiting { .. } => Status::Waiting,
            Self::Stopped { .. } => Status::Stopped,
        }
    }

    /// Returns the exit code of `ralph run` after this outcome.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            // No iteration has started, and none can until the checks are corrected.
            Self::Fatal {
                class: Fault::WeakChecks,
                ..
            } => ExitCode::Usage,
            _ => self.status().exit_code(),
        }
    }

    /// Returns the stop reason, one word for scripts.
    pub fn stop_reason(&self) -> StopReason {
        match self {
            Self::Done { checked: true } => StopReason::AllChecksPassed,
            Self::Done { checked: false } => StopReason::Completed,
            Self::Limit { limit, .. } => limit.row().stop_reason,
            Self::Stalled => StopReason::Stalled,
            Self::Fatal { .. } => StopReason::Fatal,
            Self::Blocked { .. } => StopReason::Blocked,
            Self::Disputed { .. } => StopReason::Disputed,
            Self::Waiting { .. } => StopReason::Waiting,
            Self::Stopped { .. } => StopReason::Stopped,
        }
    }

    /// Returns the outcome in the form that scripts read.
    pub fn summary(&self) -> OutcomeSummary {
        let (kind, why, detail) = match self {
            Self::Done { checked } => {
                let detail = if *checked {
                    "every check is green"
                } else {
                    "the agent claimed it; there are no checks"
                };
                ("done", self.stop_reason().to_string(), detail.into())
            }
            Self::Limit { limit, success } => (
                "limit",
                limit.as_str().into(),
                limit.describe_ending(*success).into(),
            ),
            Self::Stalled => {
                let detail = "no progress: the files and the failures stayed the same";
                ("stalled", self.stop_reason().to_string(), detail.into())
            }
            Self::Fatal { class, detail } => ("fatal", class.as_str().into(), detail.clone()),
            Self::Blocked { why } => ("blocked", why.clone(), why.clone()),
            Self::Disputed { files, why } => (
                "disputed",
                files.join(", "),
                describe_dispute(files, why.as_deref()),
            ),
            Self::Waiting { why } => {
                let detail = match why {
                    WaitReason::Bus => "message on the bus".into(),
                    WaitReason::Exit(_) | WaitReason::Marker => why.to_string(),
                };
                let detail = format!("the agent asked to wait: {detail}");
                ("waiting", why.to_string(), detail)
            }
            Self::Stopped { by } => {
                let label = by.label();
                let detail = match by {
                    RequestSource::Host | RequestSource::Parent => format!("by {label}"),
                    _ => format!("by a person ({label})"),
                };
                ("stopped", label.into(), detail)
            }
        };
        OutcomeSummary {
            kind: kind.into(),
            why,
            detail,
        }
    }
}

fn describe_dispute(files: &[String], why: Option<&str>) -> String {
    let mut detail = "every check is green, but not by the original tests and settings".to_owned();
    if !files.is_empty() {
        detail.extend(["; changed: ", &files.join(", ")]);
    }
    if let Some(why) = why {
        detail.extend(["; ", why]);
    }
    detail
}

/// Formats the reason as in the journal: `exit 42`, `WAIT marker` or `bus`.
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Marker => f.write_str("WAIT marker"),
            Self::Bus => f.write_str("bus"),
        }
    }
}

impl StopReason {
    /// Returns the reason's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllChecksPassed => "all_checks_passed",
            Self::Completed => "completed",
            Self::MaxIterations => "max_iterations",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Timeout => "timeout",
            Self::Failures => "failures",
            Self::Stalled => "stalled",
            Self::MaxRest => "max_rest",
            Self::MaxPeeks => "max_peeks",
            Self::BlockCap => "block_cap",
            Self::Fatal => "fatal",
            Self::Blocked => "blocked",
            Self::Disputed => "disputed",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl State {
    /// Returns what the agent wrote in the marker or the bus message that led to this outcome;
    /// `None` if it wrote nothing.
    fn ending_text(&self, outcome: &Outcome) -> Option<&str> {
        let marker = match outcome {
            Outcome::Done { .. } => Marker::Done,
            Outcome::Waiting {
                why: WaitReason::Marker,
            } => Marker::Wait,
            Outcome::Waiting {
                why: WaitReason::Bus,
            } => Marker::Bus,
            _ => return None,
        };
        self.claims.marker_texts.get(&marker).map(String::as_str)
    }

    /// Returns the outcome in the form that scripts read, with the used amount of a reached budget;
    /// `None` if the loop has not ended.
    pub(crate) fn outcome_summary(&self) -> Option<OutcomeSummary> {
        let outcome = self.outcome()?;
        let mut summary = outcome.summary();
        match outcome {
            Outcome::Done { checked: true } if !self.plan.has_first_rules() => {
                if let Some(basis) = self.done_basis() {
                    summary.detail = basis.describe().into();
                }
                summary.detail.push_str(&self.describe_basis());
                summary.detail.push_str(&self.describe_graded());
            }
            Outcome::Done { checked: false } if !self.plan.has_first_rules() => {
                summary.detail.push_str(&self.describe_change());
            }
            Outcome::Stalled => {
                summary.detail = format!(
                    "no progress in {}: the files and the failures stayed the same",
                    iteration_count(self.progress.stalls)
                );
            }
            Outcome::Limit {
                limit: Limit::Rest, ..
            } => {
                let usage = self.usage_of(Limit::Rest);
                summary
                    .detail
                    .extend([" (", &usage, "): ", &self.waiting_for()]);
            }
            Outcome::Limit { limit, .. } if limit.row().is_budget => {
                summary.detail.extend([" (", &self.usage_of(*limit), ")"]);
            }
            _ => {}
        }
        if matches!(outcome, Outcome::Limit { success: true, .. }) && !self.checks.is_empty() {
            summary.detail.push_str(", checks green");
        }
        if let Some(text) = self.ending_text(outcome) {
            summary.detail.extend(["; the agent says: ", text]);
        }
        if let Some(text) = self.overruled_claim() {
            summary.detail.extend(["; ", &text]);
        }
        Some(summary)
    }
}
