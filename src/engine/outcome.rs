//! How a loop can end: the one enum of endings, and what each means to a script.

use super::event::{Door, Fault, Verdict};
use super::format::{dollars, duration, plural, thousands};
use super::state::State;
use serde::{Deserialize, Serialize};

/// How a loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The work is proven.
    Done {
        /// Whether checks took part in the proof.
        checked: bool,
    },
    /// A limit was reached.
    Limit {
        /// Which.
        limit: Limit,
        /// A plain loop that ran to its limit with green checks did what it was asked.
        success: bool,
    },
    /// Trying again would not help.
    Fatal {
        /// What kind of thing.
        class: Fault,
        /// In words.
        detail: String,
    },
    /// The agent says that it cannot go on by itself.
    Blocked {
        /// Its words.
        why: String,
    },
    /// The agent asked not to be restarted.
    Waiting {
        /// How it asked.
        why: String,
    },
    /// A person ended it.
    Stopped {
        /// Through which door.
        by: String,
    },
}

/// What was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Failures in a row.
    Failures,
    /// Dollars.
    Cost,
    /// Tokens.
    Tokens,
    /// Active time.
    Time,
    /// Iterations.
    Iterations,
    /// A client's patience with what holds its agent back.
    Blocks,
}

/// A loop in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Somebody holds its lock.
    Running,
    /// It rests until resumed.
    Paused,
    /// Proven.
    Done,
    /// Out of a limit, or nothing to be done by trying again.
    Failed,
    /// The agent needs an answer.
    Blocked,
    /// The agent asked not to be restarted.
    Waiting,
    /// A person ended it.
    Stopped,
    /// It has no ending, and nobody runs it.
    Crashed,
}

impl Status {
    /// The word.
    pub fn word(self) -> &'static str {
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
}

impl Limit {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Time => "time",
            Self::Iterations => "iterations",
            Self::Blocks => "blocks",
        }
    }
}

impl Fault {
    /// The word.
    pub fn word(self) -> &'static str {
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

impl Outcome {
    /// The loop in one word.
    pub fn status(&self) -> Status {
        match self {
            Self::Done { .. } | Self::Limit { success: true, .. } => Status::Done,
            Self::Limit { .. } | Self::Fatal { .. } => Status::Failed,
            Self::Blocked { .. } => Status::Blocked,
            Self::Waiting { .. } => Status::Waiting,
            Self::Stopped { .. } => Status::Stopped,
        }
    }

    /// What a runner exits with.
    pub fn exit_code(&self) -> i32 {
        match self.status() {
            Status::Done => 0,
            Status::Blocked | Status::Waiting => 3,
            Status::Stopped => 130,
            _ => 1,
        }
    }

    /// One word for scripts.
    pub fn stop_reason(&self) -> &'static str {
        match self {
            Self::Done { checked: true } => "all_checks_passed",
            Self::Done { checked: false } => "completed",
            Self::Limit {
                limit: Limit::Iterations,
                ..
            } => "max_iterations",
            Self::Limit {
                limit: Limit::Cost | Limit::Tokens,
                ..
            } => "budget_exhausted",
            Self::Limit {
                limit: Limit::Time, ..
            } => "timeout",
            Self::Limit {
                limit: Limit::Failures,
                ..
            } => "failures",
            Self::Limit {
                limit: Limit::Blocks,
                ..
            } => "block_cap",
            Self::Fatal { .. } => "fatal",
            Self::Blocked { .. } => "blocked",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// The outcome as scripts read it.
    pub fn verdict(&self) -> Verdict {
        let (kind, why, detail) = match self {
            Self::Done { checked: true } => {
                ("done", "all_checks_passed", "every check is green".into())
            }
            Self::Done { checked: false } => (
                "done",
                "completed",
                "the agent claimed it; no check was asked for".into(),
            ),
            Self::Limit { limit, success } => ("limit", limit.word(), limit.sentence(*success)),
            Self::Fatal { class, detail } => ("fatal", class.word(), detail.clone()),
            Self::Blocked { why } => ("blocked", why.as_str(), why.clone()),
            Self::Waiting { why } if why == "bus" => (
                "waiting",
                "bus",
                "the agent asked for it by a message on the bus".into(),
            ),
            Self::Waiting { why } => (
                "waiting",
                why.as_str(),
                format!("the agent asked for it by {why}"),
            ),
            Self::Stopped { by } if by == Door::Host.word() => {
                ("stopped", by.as_str(), format!("by {by}"))
            }
            Self::Stopped { by } => ("stopped", by.as_str(), format!("by a person ({by})")),
        };
        Verdict {
            kind: kind.into(),
            why: why.into(),
            detail,
        }
    }
}

impl State {
    /// How it ended, as scripts read it, with what was used of a limit.
    pub fn verdict(&self) -> Option<Verdict> {
        let outcome = self.outcome()?;
        let mut verdict = outcome.verdict();
        if let Outcome::Limit {
            limit: limit @ (Limit::Cost | Limit::Tokens | Limit::Time),
            ..
        } = outcome
        {
            verdict.detail.extend([" (", &self.used(*limit), ")"]);
        }
        Some(verdict)
    }

    /// How much is used of a limit: `$0.6000 of $0.5000`.
    pub fn used(&self, limit: Limit) -> String {
        let limits = &self.plan.limits;
        let (used, max) = match limit {
            Limit::Failures => (
                self.failures().to_string(),
                limits.failures.map(|max| max.to_string()),
            ),
            Limit::Iterations => (
                self.counted.to_string(),
                limits.iterations.map(|max| max.to_string()),
            ),
            Limit::Cost => (dollars(self.cost_usd), limits.cost_usd.map(dollars)),
            Limit::Tokens => (thousands(self.tokens.total()), limits.tokens.map(thousands)),
            Limit::Time => (duration(self.active_ms), limits.time_ms.map(duration)),
            Limit::Blocks => (
                self.idle_blocks().to_string(),
                limits.blocks.map(|max| max.to_string()),
            ),
        };
        max.map_or(used.clone(), |max| format!("{used} of {max}"))
    }
}

impl Limit {
    /// What is said of a loop that has reached it.
    pub fn used_up(self) -> &'static str {
        match self {
            Self::Failures => "it has failed as often as it may",
            Self::Cost => "its budget is used up",
            Self::Tokens => "its tokens are used up",
            Self::Time => "its time is used up",
            Self::Iterations => "its iterations are used up",
            Self::Blocks => "its client's patience is used up",
        }
    }

    fn sentence(self, success: bool) -> String {
        match (self, success) {
            (Self::Iterations, true) => "ran to its limit of iterations, checks green".into(),
            (Self::Iterations, false) => "no iteration is left".into(),
            (Self::Cost, _) => "the budget is used up".into(),
            (Self::Tokens, _) => "the tokens are used up".into(),
            (Self::Time, _) => "the time is used up".into(),
            (Self::Failures, _) => "too many failures in a row".into(),
            (Self::Blocks, _) => {
                "its client keeps a session no longer whose agent uses no tool".into()
            }
        }
    }
}

/// "1 iteration", "2 iterations".
pub fn iterations(count: u32) -> String {
    plural(u64::from(count), "iteration")
}
