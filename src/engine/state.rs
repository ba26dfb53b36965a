//! Defines a loop's state: a fold of its journal whose size is bounded, however long the journal
//! grows.
//!
//! [`State::step`](super::step) changes the state; [`State::orders`](super::orders) derives from it
//! what must be running. Some fields keep the serialized names of earlier versions, because `state.json` caches
//! the state.

use super::checkpoint::CheckpointState;
use super::event::{CheckReport, Fault, Marker, Request, RequestSource, TextSignals, is_default};
use super::fallback::AgentAvailability;
use super::format::{dollars, with_limit};
use super::graded::GradedState;
use super::idle::Verdict;
use super::iteration::{Iteration, IterationEnd};
use super::label::LabelState;
use super::long_rest::LongRest;
use super::look::LookState;
use super::outcome::{Liveness, Outcome, Status};
use super::plan::Plan;
use super::receipt::EndFacts;
use super::review::Review;
use super::scm::ScmState;
use super::session::SessionState;
use super::stall::{Content, StallState};
use super::usage::{SessionUsage, Tokens};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A loop's state. The engine uses no other input to decide what happens next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate fact about the loop"
)]
pub(crate) struct State {
    /// The plan, with its current limits.
    pub(crate) plan: Plan,
    /// The loop's current activity.
    pub(crate) phase: Phase,
    /// The request in force: go, pause or stop.
    #[serde(rename = "wish")]
    pub(crate) request: Request,
    /// The source of the request in force.
    #[serde(rename = "wished_by")]
    pub(crate) requested_by: RequestSource,
    /// The source of the pause in force, a person or the host program before a signal; `None` if
    /// there is no pause.
    pub(crate) paused_by: Option<RequestSource>,
    /// The number of the latest iteration; 0 is preflight.
    pub(crate) iteration: u32,
    /// Number of iterations that count against the limit.
    pub(crate) counted: u32,
    /// How often the agent has failed since its last success.
    pub(crate) consecutive_failures: u32,
    /// How often the agent has failed in total.
    pub(crate) total_failures: u32,
    /// Total dollars known to be spent.
    pub(crate) cost_usd: f64,
    /// Whether an iteration did not report its cost.
    pub(crate) cost_unknown: bool,
    /// The loop's clock: monotonic milliseconds, summed over its runners.
    pub(crate) clock_ms: u64,
    /// The part of `clock_ms` that counts against the time limit, in milliseconds.
    pub(crate) active_ms: u64,
    /// Wall-clock time of the last event, in milliseconds since 1970.
    pub(crate) wall_ms: i64,
    /// Wall-clock time at which the latest iteration began, in milliseconds since 1970; `None`
    /// before the first.
    pub(crate) iteration_wall_ms: Option<i64>,
    /// The latest iteration's check results, in the plan's order; `None` for a check that has not
    /// run.
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The state of the loop's SCM tasks.
    #[serde(default, rename = "keeping")]
    pub(crate) scm: ScmState,
    /// Whether all child loops have ended. No new child loop can start until the next iteration.
    #[serde(default)]
    pub(crate) drained: bool,
    /// Whether preflight found a red check; `None` if preflight did not complete.
    pub(crate) red_at_start: Option<bool>,
    /// The working tree's content at the start and around the newest iteration.
    #[serde(default)]
    pub(crate) content: Content,
    /// Whether every check was green when the newest iteration began.
    #[serde(default)]
    pub(crate) began_green: bool,
    /// Whether a claim is needed after all, because checks turned green without a change.
    #[serde(default)]
    pub(crate) claim_needed: bool,
    /// Whether the loop makes progress.
    #[serde(default)]
    pub(crate) progress: StallState,
    /// The second look at the newest iteration's work.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) look: LookState,
    /// Number of times since the last resume that the agent learned that a held-out check failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) peeks: u32,
    /// What happened to the files while the newest iteration was graded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) graded: GradedState,
    /// What the checks can prove.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) label: LabelState,
    /// The loop's checkpoints and its best iteration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) checkpoint: CheckpointState,
    /// Added lines that a person should read, at the last ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<Review>,
    /// The commit and the versions at the last ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<EndFacts>,
    /// The agent's claims in the newest iteration.
    pub(crate) claims: Claims,
    /// An error that ends the loop because retrying cannot fix it, with a description for people;
    /// `None` if no such error has occurred.
    pub(crate) fault: Option<(Fault, String)>,
    /// The availability of the agents, in the plan's order; empty as long as all agents are
    /// available.
    #[serde(default, rename = "team")]
    pub(crate) availability: Vec<AgentAvailability>,
    /// The index of the agent that is running, or that ran last.
    #[serde(default, rename = "using")]
    pub(crate) agent_index: usize,
    /// The versions of the agents' programs, by the names of the agents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) agent_versions: BTreeMap<String, String>,
    /// Total tokens known to be used.
    #[serde(default)]
    pub(crate) tokens: Tokens,
    /// The usage of the agents' last sessions, newest last.
    #[serde(default, rename = "sessions")]
    pub(crate) session_usage: Vec<SessionUsage>,
    /// How long the loop has waited in a row for agents that do not say when they will be
    /// available, in milliseconds.
    #[serde(default)]
    pub(crate) waited_ms: u64,
    /// The long rest whose start was notified; `None` once its end was notified, or the loop ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notified_rest: Option<LongRest>,
    /// What was known before the newest iteration began, in case its agent does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous_verdict: Option<Box<Verdict>>,
    /// The earliest start of the next iteration, in milliseconds on the loop's clock.
    pub(crate) rest_until_ms: u64,
    /// The last iterations, at most [`RECENT_MAX`](super::iteration::RECENT_MAX), newest last.
    pub(crate) recent: VecDeque<Iteration>,
    /// The question of a blocked agent, kept when the loop is resumed; `None` once an agent has
    /// received the question with the answer.
    pub(crate) question: Option<String>,
    /// Messages from people that no agent has received yet.
    pub(crate) answers: Vec<String>,
    /// Number of `answers` that are in the running iteration's prompt.
    #[serde(rename = "answers_told")]
    pub(crate) answers_delivered: usize,
    /// How many bytes of the inbox have been read.
    pub(crate) inbox_offset: u64,
    /// The process of the latest iteration's agent, needed to find it after a crash; `None` if it
    /// has not started.
    pub(crate) process: Option<ProcessIdentity>,
    /// The ID of the system on which the last runner ran; `None` if it is unknown. The IDs of
    /// processes are valid only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
    /// The machine that the loop has moved to; `None` if it has not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// How many machines of a fleet have owned the loop; 0 outside fleets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) epoch: u64,
    /// Whether the journal contains the loop's ending.
    pub(crate) finished: bool,
    /// The state of the client session in which the loop runs; `None` if ralph starts the agent
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "stay")]
    pub(crate) session: Option<SessionState>,
}

/// A loop's current activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// No activity yet: no runner has opened the loop.
    #[serde(rename = "waiting")]
    NotStarted,
    /// The latest iteration's checks are running.
    Checking,
    /// The latest iteration's checks run again, by the tests and settings of the loop's start.
    Looking,
    /// The latest iteration's SCM tasks are running.
    Committing,
    /// The agent is running, or about to start.
    Running {
        /// Whether the journal contains the iteration's start.
        started: bool,
        /// The start of the phase, in milliseconds on the loop's clock.
        since_ms: u64,
        /// The time at which the agent is killed because it left a marker, in milliseconds on the
        /// loop's clock; `None` if it left no marker.
        stop_at_ms: Option<u64>,
    },
    /// The agent is being killed.
    Killing {
        /// Why the agent is killed.
        why: IterationEnd,
        /// Whether to send SIGKILL at once, without SIGTERM first.
        hard: bool,
    },
    /// The loop is about to end and waits for its child loops.
    Draining {
        /// The time at which the child loops are stopped, in milliseconds on the loop's clock;
        /// `None` means never.
        until_ms: Option<u64>,
        /// Whether the child loops are being stopped.
        stop: bool,
    },
    /// Nothing runs until the rest is over.
    Resting {
        /// The end of the rest, in milliseconds on the loop's clock.
        until_ms: u64,
        /// The end of the rest, in milliseconds since 1970, if every agent is at a limit; `None`
        /// for any other rest. Unlike the loop's clock, it includes the time during which the
        /// system sleeps.
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
    /// Signals in the agent's final message.
    #[serde(rename = "said")]
    pub(crate) signals: TextSignals,
    /// Markers that the agent left.
    pub(crate) markers: Vec<Marker>,
    /// What is written in the markers, for those that are not empty.
    #[serde(default)]
    pub(crate) marker_texts: BTreeMap<Marker, String>,
    /// The agent's exit code if it asks to wait; `None` for any other exit.
    pub(crate) exit_waiting: Option<i32>,
}

/// Identifies a process. The kernel reuses process IDs, but never together with the same start
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64)", into = "(u32, u64)")]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// The process's start time, in the kernel's clock ticks.
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

impl State {
    /// Returns the state of a loop that has not started.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            checks: vec![None; plan.proof.checks.len()],
            session: plan.session.as_ref().map(|_| SessionState::default()),
            plan,
            phase: Phase::NotStarted,
            request: Request::Go,
            requested_by: RequestSource::Inbox,
            paused_by: None,
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
            content: Content::default(),
            began_green: false,
            claim_needed: false,
            progress: StallState::default(),
            look: LookState::default(),
            peeks: 0,
            graded: GradedState::default(),
            label: LabelState::default(),
            checkpoint: CheckpointState::default(),
            review: None,
            end: None,
            claims: Claims::default(),
            fault: None,
            availability: Vec::new(),
            agent_index: 0,
            agent_versions: BTreeMap::new(),
            tokens: Tokens::default(),
            session_usage: Vec::new(),
            waited_ms: 0,
            notified_rest: None,
            previous_verdict: None,
            rest_until_ms: 0,
            recent: VecDeque::new(),
            question: None,
            answers: Vec::new(),
            answers_delivered: 0,
            inbox_offset: 0,
            process: None,
            boot: None,
            host: None,
            epoch: 0,
            finished: false,
        }
    }

    /// Returns the loop's status.
    pub(crate) fn status(&self, liveness: Liveness) -> Status {
        match (&self.phase, liveness) {
            (Phase::Ended(outcome), _) => outcome.status(),
            (Phase::Paused, _) => Status::Paused,
            (_, Liveness::Running) => Status::Running,
            (_, Liveness::Starting) => Status::Starting,
            (_, Liveness::Idle) => Status::Crashed,
        }
    }

    /// Returns the loop's outcome; `None` if the loop has not ended.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns the highest number that an iteration can have; `None` if there is no limit. Refunded
    /// iterations raise the number above the limit.
    pub(crate) fn last_number(&self) -> Option<u32> {
        let refunded = self.iteration.saturating_sub(self.counted);
        self.plan
            .limits
            .iterations
            .map(|max| max.saturating_add(refunded))
    }

    /// Returns an iteration's number and the limit: `7/25`, or `7, counted 5/25` if an iteration
    /// was refunded.
    pub(crate) fn iteration_label(&self, number: u32) -> String {
        let max = self.plan.limits.iterations;
        match max {
            Some(max) if self.counted < self.iteration => {
                format!("{number}, counted {}/{max}", self.counted)
            }
            _ => with_limit(number, max),
        }
    }

    /// Returns the dollars spent, for scripts; `None` if unknown. During the first iteration of an
    /// agent that reports no cost, the cost is unknown, not 0.
    pub(crate) fn reported_cost(&self) -> Option<f64> {
        let is_reported =
            self.plan.agent.reports_cost || self.recent.iter().any(|last| last.cost_usd.is_some());
        self.known_cost()
            .filter(|usd| is_reported || *usd > 0.0 || self.iteration == 0)
    }

    /// Formats the loop's cost. Returns `None` if no agent reported one, also in the first
    /// iteration. If some iterations reported no cost, the text begins with `at least`.
    pub(crate) fn cost_text(&self) -> Option<String> {
        let usd = dollars(self.cost_usd);
        let has_report = self.recent.iter().any(|last| last.cost_usd.is_some());
        let is_known = self.iteration == 0 || self.cost_usd > 0.0 || has_report;
        match self.reported_cost().filter(|_| is_known) {
            Some(_) => Some(usd),
            None => (self.cost_usd > 0.0).then(|| format!("at least {usd}")),
        }
    }

    /// Returns the dollars spent, for display: `$0.6000`, `at least $0.6000` if an iteration did not
    /// report its cost, or `unknown cost`.
    pub(crate) fn cost_label(&self) -> String {
        match self.reported_cost() {
            Some(usd) => dollars(usd),
            None if self.cost_usd > 0.0 => format!("at least {}", dollars(self.cost_usd)),
            None => "unknown cost".into(),
        }
    }

    /// Returns whether the agent failed in the latest iteration. An exit code that asks to wait is
    /// not a failure.
    pub(crate) fn has_failed(&self, iteration: &Iteration) -> bool {
        iteration.is_failure() && self.claims.exit_waiting.is_none()
    }

    /// Returns the dollars spent; `None` if an iteration did not report its cost.
    pub(crate) fn known_cost(&self) -> Option<f64> {
        (!self.cost_unknown).then_some(self.cost_usd)
    }

    /// Returns the deadlines of the running agent: the time at which to kill it, in milliseconds on
    /// the loop's clock, and the reason.
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

    /// Returns when the time limit stops the running check or SCM task, on the loop's clock; `None`
    /// if it does not.
    ///
    /// It does not stop the commit that saves the work in the loop's worktree, nor the checks that
    /// run again after child loops: a loop that was done stays done.
    pub(super) fn job_stops_at(&self) -> Option<u64> {
        let is_bounded = match self.phase {
            Phase::Checking => !self.awaits_checkpoint(),
            Phase::Looking => true,
            Phase::Committing => self.next_scm_task() != Some(self.worktree_task()),
            _ => false,
        };
        self.out_of_time_at()
            .filter(|_| is_bounded && !self.drained)
    }

    /// Returns the time at which the time limit is reached if the loop stays active, in
    /// milliseconds on the loop's clock; `None` if there is no limit.
    pub(super) fn out_of_time_at(&self) -> Option<u64> {
        let idle = self.clock_ms.saturating_sub(self.active_ms);
        Some(self.plan.limits.time_ms?.saturating_add(idle))
    }
}
