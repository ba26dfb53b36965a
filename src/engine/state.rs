//! A loop's state: a fold of its journal, of bounded size however long the journal grows.
//!
//! [`State::step`](super::step) changes it; [`State::orders`] derives from it what must be running.
//! Some fields keep their serialized names from earlier versions, because `state.json` caches the
//! state.

use super::event::{CheckReport, Fault, Marker, Request, RequestSource, TextSignals};
use super::fallback::AgentAvailability;
use super::format::with_limit;
use super::iteration::{Iteration, IterationEnd};
use super::outcome::{Outcome, Status};
use super::plan::Plan;
use super::scm::ScmState;
use super::session::SessionState;
use super::usage::{SessionUsage, Tokens};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Everything the engine knows about a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The plan, with the limits as they are now.
    pub(crate) plan: Plan,
    /// What the loop is doing.
    pub(crate) phase: Phase,
    /// The request in force.
    #[serde(rename = "wish")]
    pub(crate) request: Request,
    /// How that request reached the loop.
    #[serde(rename = "wished_by")]
    pub(crate) requested_by: RequestSource,
    /// The number of the newest iteration; 0 is preflight.
    pub(crate) iteration: u32,
    /// How many iterations count against the limit.
    pub(crate) counted: u32,
    /// The agent's failures since its last success.
    pub(crate) consecutive_failures: u32,
    /// All failures of the agent.
    pub(crate) total_failures: u32,
    /// Dollars known to be spent.
    pub(crate) cost_usd: f64,
    /// Whether an iteration did not report its cost.
    pub(crate) cost_unknown: bool,
    /// The loop's clock: monotonic time, summed over its runners.
    pub(crate) clock_ms: u64,
    /// The part of it that counts against the time limit.
    pub(crate) active_ms: u64,
    /// Wall-clock time of the last event.
    pub(crate) wall_ms: i64,
    /// Wall-clock time at which the newest iteration began.
    pub(crate) iteration_wall_ms: Option<i64>,
    /// The newest iteration's check results, in the plan's order.
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The SCM tasks.
    #[serde(default, rename = "keeping")]
    pub(crate) scm: ScmState,
    /// Whether no child loop is running. None can start before the next iteration.
    #[serde(default)]
    pub(crate) drained: bool,
    /// Whether preflight found a red check; `None` if preflight did not complete.
    pub(crate) red_at_start: Option<bool>,
    /// The agent's claims in the newest iteration.
    pub(crate) claims: Claims,
    /// An error that retrying cannot fix.
    pub(crate) fault: Option<(Fault, String)>,
    /// Which agents rest or are excluded, in the plan's order; empty until the first has to rest.
    #[serde(default, rename = "team")]
    pub(crate) availability: Vec<AgentAvailability>,
    /// The index of the agent that runs now, or ran last.
    #[serde(default, rename = "using")]
    pub(crate) agent_index: usize,
    /// Tokens known to be used.
    #[serde(default)]
    pub(crate) tokens: Tokens,
    /// The usage of the agents' last sessions, the newest last.
    #[serde(default, rename = "sessions")]
    pub(crate) session_usage: Vec<SessionUsage>,
    /// The next iteration does not start before this time on the loop's clock.
    pub(crate) rest_until_ms: u64,
    /// The last iterations.
    pub(crate) recent: VecDeque<Iteration>,
    /// What a blocked agent asked before the loop was resumed, until an agent has seen it together
    /// with the answer.
    pub(crate) question: Option<String>,
    /// Messages from people, until an agent has seen them.
    pub(crate) answers: Vec<String>,
    /// How many of these are in the running iteration's prompt.
    #[serde(rename = "answers_told")]
    pub(crate) answers_delivered: usize,
    /// The inbox has been read up to this offset.
    pub(crate) inbox_offset: u64,
    /// The newest agent's process, to find it again after a crash.
    pub(crate) process: Option<ProcessIdentity>,
    /// Whether the journal contains the ending.
    pub(crate) finished: bool,
    /// The client session in which the loop runs; `None` if ralph starts the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "stay")]
    pub(crate) session: Option<SessionState>,
}

/// What a loop is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Nothing yet: no runner has opened the loop.
    #[serde(rename = "waiting")]
    NotStarted,
    /// The newest iteration's checks run.
    Checking,
    /// The newest iteration's SCM tasks run.
    Committing,
    /// The agent runs, or is about to.
    Running {
        /// Whether the journal contains the iteration's start.
        started: bool,
        /// When the iteration began, on the loop's clock.
        since_ms: u64,
        /// When the agent is killed because it left a marker.
        stop_at_ms: Option<u64>,
    },
    /// The agent is being killed.
    Killing {
        /// Why.
        why: IterationEnd,
        /// Whether with SIGKILL at once.
        hard: bool,
    },
    /// The loop is about to end and waits for its child loops.
    Draining {
        /// When the child loops are stopped, on the loop's clock; `None` is never.
        until_ms: Option<u64>,
        /// Whether they are being stopped.
        stop: bool,
    },
    /// Nothing runs until a certain time.
    Resting {
        /// That time on the loop's clock.
        until_ms: u64,
        /// That time in milliseconds since 1970, if every agent is at a limit. Time in system sleep
        /// counts for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall_ms: Option<i64>,
    },
    /// Nothing runs until a person resumes the loop.
    Paused,
    /// The loop has ended.
    Ended(Outcome),
}

/// The agent's claims in one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// Signals in its final message.
    #[serde(rename = "said")]
    pub(crate) signals: TextSignals,
    /// Markers that were seen.
    pub(crate) markers: Vec<Marker>,
    /// The exit code, if it was the one that means waiting.
    pub(crate) exit_waiting: Option<i32>,
}

/// A process. Its ID alone may be reused, but not together with its start time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64)", into = "(u32, u64)")]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// The kernel's start time of the process.
    pub(crate) start_time: u64,
}

impl From<(u32, u64)> for ProcessIdentity {
    fn from((pid, start_time): (u32, u64)) -> Self {
        Self { pid, start_time }
    }
}

impl From<ProcessIdentity> for (u32, u64) {
    fn from(process: ProcessIdentity) -> Self {
        (process.pid, process.start_time)
    }
}

/// Something that must be running, or must happen, now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Run a check.
    Check {
        /// For this iteration.
        iteration: u32,
        /// Its index in the plan.
        check: usize,
    },
    /// Run an SCM task.
    ScmTask {
        /// For this iteration.
        iteration: u32,
        /// Its index in the plan.
        task: usize,
    },
    /// Wait for child loops.
    Drain {
        /// In this iteration.
        iteration: u32,
        /// Whether to stop them.
        stop: bool,
    },
    /// Run the agent.
    Run {
        /// In this iteration.
        iteration: u32,
    },
    /// Kill the agent.
    Kill {
        /// Of this iteration.
        iteration: u32,
        /// Whether with SIGKILL at once.
        hard: bool,
    },
    /// Send [`Event::Woke`](super::Event::Woke) at this time on the loop's clock.
    WakeAt(u64),
    /// Send [`Event::Woke`](super::Event::Woke) at this wall-clock time, in milliseconds since
    /// 1970.
    WakeAtWall(i64),
    /// Write the ending to the journal.
    Finish(Outcome),
    /// Exit; there is nothing to do.
    Leave,
}

impl State {
    /// A loop that has not started.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            checks: vec![None; plan.proof.checks.len()],
            session: plan.session.as_ref().map(|_| SessionState::default()),
            plan,
            phase: Phase::NotStarted,
            request: Request::Go,
            requested_by: RequestSource::Inbox,
            iteration: 0,
            counted: 0,
            consecutive_failures: 0,
            total_failures: 0,
            cost_usd: 0.0,
            cost_unknown: false,
            clock_ms: 0,
            active_ms: 0,
            wall_ms: 0,
            iteration_wall_ms: None,
            scm: ScmState::default(),
            drained: false,
            red_at_start: None,
            claims: Claims::default(),
            fault: None,
            availability: Vec::new(),
            agent_index: 0,
            tokens: Tokens::default(),
            session_usage: Vec::new(),
            rest_until_ms: 0,
            recent: VecDeque::new(),
            question: None,
            answers: Vec::new(),
            answers_delivered: 0,
            inbox_offset: 0,
            process: None,
            finished: false,
        }
    }

    /// What must be running now. The runner starts what is ordered and not running, and stops what
    /// is running and not ordered.
    pub(crate) fn orders(&self) -> Vec<Effect> {
        let iteration = self.iteration;
        match &self.phase {
            Phase::NotStarted => vec![],
            Phase::Checking => self
                .checks
                .iter()
                .position(Option::is_none)
                .map(|check| Effect::Check { iteration, check })
                .into_iter()
                .collect(),
            Phase::Committing => self
                .next_scm_task()
                .map(|task| Effect::ScmTask { iteration, task })
                .into_iter()
                .collect(),
            Phase::Running { started, .. } => {
                let number = if *started { iteration } else { iteration + 1 };
                let mut orders = vec![Effect::Run { iteration: number }];
                orders.extend(self.deadlines().map(|(at, _)| at).min().map(Effect::WakeAt));
                orders
            }
            Phase::Draining { until_ms, stop } => {
                let mut orders = vec![Effect::Drain {
                    iteration,
                    stop: *stop,
                }];
                orders.extend(until_ms.filter(|_| !stop).map(Effect::WakeAt));
                orders
            }
            Phase::Killing { hard, .. } => vec![Effect::Kill {
                iteration,
                hard: *hard,
            }],
            Phase::Resting {
                wall_ms: Some(wall_ms),
                ..
            } => vec![Effect::WakeAtWall(*wall_ms)],
            Phase::Resting { until_ms, .. } => {
                let out_of_time = self.out_of_time_at().unwrap_or(u64::MAX);
                vec![Effect::WakeAt(out_of_time.min(*until_ms))]
            }
            Phase::Paused => vec![Effect::Leave],
            Phase::Ended(_) if self.finished => vec![Effect::Leave],
            Phase::Ended(outcome) => vec![Effect::Finish(outcome.clone())],
        }
    }

    /// The loop's status. `held` says whether a runner holds its lock.
    pub(crate) fn status(&self, held: bool) -> Status {
        match &self.phase {
            Phase::Ended(outcome) => outcome.status(),
            Phase::Paused => Status::Paused,
            _ if held => Status::Running,
            _ => Status::Crashed,
        }
    }

    /// How the loop ended, if it did.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The highest number an iteration can have. Iterations that do not count raise it above the
    /// limit.
    pub(crate) fn last_number(&self) -> Option<u32> {
        let refunded = self.iteration.saturating_sub(self.counted);
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(refunded))
    }

    /// An iteration's number and the limit: `7/25`. Once an iteration did not count: `7, counted
    /// 5/25`.
    pub(crate) fn iteration_label(&self, number: u32) -> String {
        let max = self.plan.limits.iterations;
        match max {
            Some(max) if self.counted < self.iteration => {
                format!("{number}, counted {}/{max}", self.counted)
            }
            _ => with_limit(number, max),
        }
    }

    /// Dollars spent, for display; `None` if unknown. An agent that reports no cost has not spent 0
    /// dollars while its first iteration runs.
    pub(crate) fn reported_cost(&self) -> Option<f64> {
        let is_reported =
            self.plan.agent.reports_cost || self.recent.iter().any(|last| last.cost_usd.is_some());
        self.known_cost()
            .filter(|usd| is_reported || *usd > 0.0 || self.iteration == 0)
    }

    /// Whether the agent failed. An exit code that asks to wait is not a failure.
    pub(crate) fn has_failed(&self, iteration: &Iteration) -> bool {
        iteration.is_failure() && self.claims.exit_waiting.is_none()
    }

    /// Dollars spent; `None` if an iteration did not report its cost.
    pub(crate) fn known_cost(&self) -> Option<f64> {
        (!self.cost_unknown).then_some(self.cost_usd)
    }

    /// When the running agent is killed, on the loop's clock, and why.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (u64, IterationEnd)> {
        let (since, stop_at) = match self.phase {
            Phase::Running {
                started: true,
                since_ms,
                stop_at_ms,
            } => (Some(since_ms), stop_at_ms),
            _ => (None, None),
        };
        let iteration = since
            .zip(self.plan.limits.iteration_ms)
            .map(|(since, ms)| (since.saturating_add(ms), IterationEnd::TimedOut));
        let time = since
            .and(self.out_of_time_at())
            .map(|at| (at, IterationEnd::OutOfTime));
        let marker = stop_at.map(|at| (at, IterationEnd::MarkerSeen));
        [marker, time, iteration].into_iter().flatten()
    }

    /// When the time limit is reached, on the loop's clock, if the loop stays active until then.
    pub(super) fn out_of_time_at(&self) -> Option<u64> {
        let idle = self.clock_ms.saturating_sub(self.active_ms);
        Some(self.plan.limits.time_ms?.saturating_add(idle))
    }
}
