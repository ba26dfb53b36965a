//! Where a loop stands: a fold of its journal, bounded however long the journal grows.

use super::event::{CheckReport, Door, Exit, Fault, Marker, Said, Wish, is_false};
use super::failure::Reason;
use super::fallback::Standing;
use super::format::of_limit;
use super::outcome::{Outcome, Status};
use super::plan::Plan;
use super::scm::{Keeping, TaskReport};
use super::session::Stay;
use super::usage::{Session, Tokens};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many iterations are remembered one by one.
pub const REMEMBERED: usize = 20;

/// Everything the engine knows of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What was asked for; limits may have been changed since.
    pub plan: Plan,
    /// What is going on.
    pub phase: Phase,
    /// What a person wants.
    pub wish: Wish,
    /// Through which door the wish came.
    pub wished_by: Door,
    /// The number of the newest iteration; 0 is preflight.
    pub iteration: u32,
    /// How many iterations count against the limit.
    pub counted: u32,
    /// Failures since the last good exit.
    pub consecutive_failures: u32,
    /// Failures in all.
    pub total_failures: u32,
    /// Dollars known to be spent.
    pub cost_usd: f64,
    /// Whether an iteration did not report its cost.
    pub cost_unknown: bool,
    /// Monotonic time of this loop, summed over its runners.
    pub clock_ms: u64,
    /// The part of it that counts as work.
    pub active_ms: u64,
    /// Wall time of the last event.
    pub wall_ms: i64,
    /// Wall time at which the newest iteration began.
    pub iteration_wall_ms: Option<i64>,
    /// The check reports of the newest iteration.
    pub checks: Vec<Option<CheckReport>>,
    /// What became of green work.
    #[serde(default)]
    pub keeping: Keeping,
    /// Whether no child loop can be at work any more: none can start before the next iteration.
    #[serde(default)]
    pub drained: bool,
    /// Whether preflight found a red check; none if it did not run to its end.
    pub red_at_start: Option<bool>,
    /// What the agent claimed in the newest iteration.
    pub claims: Claims,
    /// What cannot be mended by trying again.
    pub fault: Option<(Fault, String)>,
    /// Where each agent stands, in the plan's order; empty as long as none had to rest.
    #[serde(default)]
    pub team: Vec<Standing>,
    /// Which of them works now, or worked last.
    #[serde(default)]
    pub using: usize,
    /// Tokens known to be used.
    #[serde(default)]
    pub tokens: Tokens,
    /// The last sessions of its agents, the newest last.
    #[serde(default)]
    pub sessions: Vec<Session>,
    /// The next iteration rests until here, on the loop's clock.
    pub rest_until_ms: u64,
    /// The last iterations.
    pub recent: VecDeque<Iteration>,
    /// What a blocked agent had asked before a person resumed, until an iteration that was told has ended.
    pub question: Option<String>,
    /// What people said, until an iteration that was told has ended.
    pub answers: Vec<String>,
    /// How many of these the running iteration was told.
    pub answers_told: usize,
    /// The inbox is read up to here.
    pub inbox_offset: u64,
    /// The newest agent process, to be found again after a crash.
    pub process: Option<(u32, u64)>,
    /// Whether the ending has been written down.
    pub finished: bool,
    /// How it stands in the session that it lives in; none where ralph itself starts the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stay: Option<Stay>,
}

/// What is going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has begun.
    Waiting,
    /// The checks of the newest iteration run.
    Checking,
    /// The work of the newest iteration is green, and the tasks for it run.
    Committing,
    /// The agent runs, or is about to.
    Running {
        /// Whether the journal says so.
        started: bool,
        /// When it began, on the loop's clock.
        since_ms: u64,
        /// When it is stopped because a marker was seen.
        stop_at_ms: Option<u64>,
    },
    /// The agent is being stopped.
    Killing {
        /// Why.
        why: How,
        /// Whether there is no grace.
        hard: bool,
    },
    /// Nothing is left to be done but by child loops.
    Draining {
        /// When they are stopped, on the loop's clock; none is never.
        until_ms: Option<u64>,
        /// Whether they are not waited for.
        stop: bool,
    },
    /// Nothing runs until a time comes.
    Resting {
        /// On the loop's clock.
        until_ms: u64,
        /// By the wall's, in milliseconds since 1970, where an agent rests: sleep counts there too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall_ms: Option<i64>,
    },
    /// Nothing runs until a person says so.
    Paused,
    /// It is over.
    Ended(Outcome),
}

/// How an iteration came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The agent exited by itself.
    Exited,
    /// It took too long.
    TimedOut,
    /// It was silent for too long.
    Inactive,
    /// Its screen did not get ready for the prompt.
    Unready,
    /// It said that all was over, and did not go.
    Lingered,
    /// The done pattern matched.
    Matched,
    /// A marker was seen, and it did not exit by itself.
    Marked,
    /// The time of the whole loop was used up.
    OutOfTime,
    /// A person did not want to wait.
    Stopped,
    /// Something broke that trying again does not mend.
    Faulted,
    /// Ralph was killed while it ran.
    Interrupted,
}

/// What the agent claimed in one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// What its last words hold.
    pub said: Said,
    /// The markers seen.
    pub markers: Vec<Marker>,
    /// Whether it exited with the code that means waiting.
    pub exit_waiting: Option<i32>,
}

/// One iteration, remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number.
    pub number: u32,
    /// How it came to its end.
    pub how: How,
    /// How its process ended.
    pub exit: Exit,
    /// How long it took.
    pub ms: u64,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// Why it came to a bad end, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether it does not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refunded: bool,
    /// Whether it said that it came to a good end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub finished: bool,
    /// Who worked, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Tokens that it took, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// How many steps it took, if it says.
    #[serde(default)]
    pub steps: Option<u32>,
    /// Why it failed by its own doing, in its last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often it was not allowed something.
    #[serde(default)]
    pub denied: u32,
    /// What it was not allowed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// Whether it claimed the work.
    pub claimed: bool,
    /// Its check reports, in the plan's order.
    pub checks: Vec<Option<CheckReport>>,
    /// How the tasks for its work went, if its checks were green.
    #[serde(default)]
    pub tasks: Vec<TaskReport>,
    /// How its commit in the loop's own worktree went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<TaskReport>,
}

impl Iteration {
    /// Whether the agent is to blame for this end: its own bad exit, or an overrun. What its stream says of its end
    /// outweighs its exit code.
    pub fn is_failure(&self) -> bool {
        match self.how {
            _ if self.refunded => false,
            How::Exited if self.finished => false,
            How::Exited => !self.exit.is_good() || self.reason.is_some(),
            How::Lingered => !self.finished,
            How::TimedOut | How::Unready => true,
            _ => false,
        }
    }
}

/// What must be under way now.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// This check.
    Check {
        /// Of this iteration.
        iteration: u32,
        /// Its place in the plan.
        check: usize,
    },
    /// This task for green work.
    Commit {
        /// Of this iteration.
        iteration: u32,
        /// Its place in the plan.
        task: usize,
    },
    /// The end of all child loops.
    Drain {
        /// In this iteration.
        iteration: u32,
        /// By stopping them.
        stop: bool,
    },
    /// The agent.
    Run {
        /// In this iteration.
        iteration: u32,
    },
    /// The end of the agent.
    Kill {
        /// Of this iteration.
        iteration: u32,
        /// Without grace.
        hard: bool,
    },
    /// An alarm, on the loop's clock.
    WakeAt(u64),
    /// An alarm by the wall's clock, in milliseconds since 1970.
    WakeAtWall(i64),
    /// The ending's line.
    Finish(Outcome),
    /// The runner goes away.
    Leave,
}

impl State {
    /// A loop that has not begun.
    pub fn new(plan: Plan) -> Self {
        Self {
            checks: vec![None; plan.proof.checks.len()],
            stay: plan.session.as_ref().map(|_| Stay::default()),
            plan,
            phase: Phase::Waiting,
            wish: Wish::Go,
            wished_by: Door::Inbox,
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
            keeping: Keeping::default(),
            drained: false,
            red_at_start: None,
            claims: Claims::default(),
            fault: None,
            team: Vec::new(),
            using: 0,
            tokens: Tokens::default(),
            sessions: Vec::new(),
            rest_until_ms: 0,
            recent: VecDeque::new(),
            question: None,
            answers: Vec::new(),
            answers_told: 0,
            inbox_offset: 0,
            process: None,
            finished: false,
        }
    }

    /// What must be under way now, by the state alone.
    pub fn orders(&self) -> Vec<Effect> {
        let iteration = self.iteration;
        match &self.phase {
            Phase::Waiting => vec![],
            Phase::Checking => self
                .checks
                .iter()
                .position(Option::is_none)
                .map(|check| Effect::Check { iteration, check })
                .into_iter()
                .collect(),
            Phase::Committing => self
                .task_due()
                .map(|task| Effect::Commit { iteration, task })
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

    /// The loop in one word, given whether somebody holds its lock.
    pub fn status(&self, held: bool) -> Status {
        match &self.phase {
            Phase::Ended(outcome) => outcome.status(),
            Phase::Paused => Status::Paused,
            _ if held => Status::Running,
            _ => Status::Crashed,
        }
    }

    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The number that the last iteration can have: those that do not count make it higher.
    pub fn last_number(&self) -> Option<u32> {
        let refunded = self.iteration.saturating_sub(self.counted);
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(refunded))
    }

    /// Which iteration this is, and of how many: `7/25`. One that did not count has used up its number all the same, so
    /// that after some of those it reads `7, counted 5/25`.
    pub fn place(&self, number: u32) -> String {
        let max = self.plan.limits.iterations;
        match max {
            Some(max) if self.counted < self.iteration => {
                format!("{number}, counted {}/{max}", self.counted)
            }
            _ => of_limit(number, max),
        }
    }

    /// Dollars spent, or none if nobody knows.
    pub fn known_cost(&self) -> Option<f64> {
        (!self.cost_unknown).then_some(self.cost_usd)
    }

    /// When the running agent is stopped, and why.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (u64, How)> {
        let (since, marked) = match self.phase {
            Phase::Running {
                started: true,
                since_ms,
                stop_at_ms,
            } => (Some(since_ms), stop_at_ms),
            _ => (None, None),
        };
        let limits = &self.plan.limits;
        let iteration = since
            .zip(limits.iteration_ms)
            .map(|(since, ms)| (since.saturating_add(ms), How::TimedOut));
        let time = since
            .and(self.out_of_time_at())
            .map(|at| (at, How::OutOfTime));
        let marked = marked.map(|at| (at, How::Marked));
        [marked, time, iteration].into_iter().flatten()
    }

    /// When the loop's time is used up if work goes on without a break; or when it was.
    pub(super) fn out_of_time_at(&self) -> Option<u64> {
        let idle = self.clock_ms.saturating_sub(self.active_ms);
        Some(self.plan.limits.time_ms?.saturating_add(idle))
    }
}
