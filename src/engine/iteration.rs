//! Iterations: how they begin, the ways they can end, the record of each one, and the effect of an
//! end on the state.

use super::act::COST_MAX;
use super::event::{AgentReport, CheckReport, Event, Fault, ProcessExit, is_default};
use super::failure::{AgentFailure, FailureKind};
use super::fallback::doubled;
use super::graded::GradedState;
use super::scm::ScmTaskReport;
use super::state::{Claims, Phase, State};
use super::usage::{SessionUsage, Tokens, rounded_usd};
use serde::{Deserialize, Serialize};

/// Maximum number of iterations whose records the state keeps.
pub(crate) const RECENT_MAX: usize = 20;

/// Maximum number of agent sessions whose usage the state keeps, enough for one session of each of
/// a few agents.
const SESSIONS_MAX: usize = 4;

/// The way an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationEnd {
    /// The agent exited on its own.
    Exited,
    /// The iteration timeout passed.
    TimedOut,
    /// The inactivity timeout passed.
    Inactive,
    /// The agent's screen did not become ready for the prompt.
    Unready,
    /// The agent reported the end of its run but did not exit.
    Lingered,
    /// A line of the agent's output matched the done pattern.
    #[serde(rename = "matched")]
    PatternMatched,
    /// The agent left a marker but did not exit.
    #[serde(rename = "marked")]
    MarkerSeen,
    /// The loop's time limit was reached.
    OutOfTime,
    /// The loop's cost or token limit was reached.
    OverBudget,
    /// A person stopped or paused the loop without waiting for the agent.
    Stopped,
    /// An error occurred that retrying cannot fix.
    Faulted,
    /// Ralph itself was killed during the iteration.
    Interrupted,
}

impl IterationEnd {
    /// Returns the name used in the journal and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::TimedOut => "timed_out",
            Self::Inactive => "inactive",
            Self::Unready => "unready",
            Self::Lingered => "lingered",
            Self::PatternMatched => "matched",
            Self::MarkerSeen => "marked",
            Self::OutOfTime => "out_of_time",
            Self::OverBudget => "over_budget",
            Self::Stopped => "stopped",
            Self::Faulted => "faulted",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The record of one iteration, for prompts, `status` and reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Iteration {
    /// The iteration's number; numbers never repeat.
    pub(crate) number: u32,
    /// The way the iteration ended.
    #[serde(rename = "how")]
    pub(crate) end: IterationEnd,
    /// The exit status of the agent's process.
    pub(crate) exit: ProcessExit,
    /// The agent's running time, in milliseconds.
    pub(crate) ms: u64,
    /// Dollars that the iteration spent; `None` if unknown.
    pub(crate) cost_usd: Option<f64>,
    /// The failure that the iteration ended with; `None` if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<AgentFailure>,
    /// Whether the iteration is excluded from the limits, because the agent was at a usage limit or
    /// another agent took over.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) refunded: bool,
    /// Whether the agent's event stream reported success.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) finished: bool,
    /// The agent's name; `None` if the loop has only one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Tokens that the iteration used; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// Number of tool calls in the iteration; `None` if unknown.
    #[serde(default)]
    pub(crate) steps: Option<u32>,
    /// The agent's error message or its last lines of output; `None` if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Number of actions the agent was denied.
    #[serde(default)]
    pub(crate) denied: u32,
    /// The first denial: the denied action, or else the agent's words; `None` if no action was
    /// denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) denial: Option<String>,
    /// The first few different denials, including `denial`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denials: Vec<String>,
    /// What the agent left to the next iteration; `None` if it wrote nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Whether the agent claimed that the task is done.
    pub(crate) claimed: bool,
    /// The check results, in the plan's order; `None` for a check that has not run.
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The results of the plan's SCM tasks; empty if the checks were not green.
    #[serde(default)]
    pub(crate) tasks: Vec<ScmTaskReport>,
    /// The result of the commit in the loop's worktree; `None` if no commit ran.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "saved")]
    pub(crate) worktree_commit: Option<ScmTaskReport>,
}

impl Iteration {
    /// Returns whether the iteration counts as a failure of the agent: a bad exit or a timeout.
    /// Success reported in the agent's event stream outweighs the exit code.
    pub(crate) fn is_failure(&self) -> bool {
        match self.end {
            _ if self.refunded => false,
            IterationEnd::Exited if self.finished => false,
            IterationEnd::Exited => !self.exit.is_success() || self.reason.is_some(),
            IterationEnd::Lingered => !self.finished,
            IterationEnd::TimedOut | IterationEnd::Unready => true,
            // The done pattern of an agent that was denied everything proves nothing.
            IterationEnd::PatternMatched => self.reason.is_some(),
            _ => false,
        }
    }
}

impl State {
    /// Begins an iteration. The previous iteration's claims and check results expire.
    pub(super) fn started(&mut self, event: &Event) {
        let Event::Started {
            iteration,
            tree,
            baseline,
            version,
            ..
        } = event
        else {
            return;
        };
        let is_expected = matches!(self.phase, Phase::Running { started: false, .. })
            && *iteration == self.iteration + 1;
        if !is_expected {
            return;
        }
        self.learn_agent_version(version.as_ref());
        self.save_verdict();
        self.count_peek();
        if tree.is_some() {
            self.measured(tree.as_ref());
        }
        self.begin_content();
        self.began_green = !self.checks.is_empty() && self.all_green();
        self.begin_look(baseline.as_ref());
        self.graded = GradedState::default();
        self.iteration = *iteration;
        self.phase = Phase::Running {
            started: true,
            since_ms: self.clock_ms,
            stop_at_ms: None,
        };
        self.counted += 1;
        self.iteration_wall_ms = Some(self.wall_ms);
        self.checks = vec![None; self.plan.proof.checks.len()];
        self.scm.begin_iteration();
        self.begin_after_rewind();
        self.drained = false;
        self.claims = Claims::default();
        self.answers_delivered = self.answers.len();
        self.process = None;
    }

    /// Called when the latest iteration's agent and all its processes have exited.
    pub(super) fn agent_ended(&mut self, iteration: u32, report: &AgentReport) {
        let end = match self.phase {
            _ if iteration != self.iteration => return,
            Phase::Running { started: true, .. } => IterationEnd::Exited,
            Phase::Killing { why, .. } => why,
            _ => return,
        };
        self.turn_ended(report.steps, report.transcript_bytes);
        self.take_claims(end, report);
        self.record_iteration(end, report);
        self.clear_delivered_answers(end);
        let limits = &self.plan.limits;
        let is_unpriced = report.cost_usd.is_none() && report.tokens.is_some();
        if is_unpriced && limits.cost_usd.is_some() && !limits.unknown_cost {
            let detail = format!(
                "the cost of iteration {iteration} is unknown: its model has no price; add one to \
                 the setting `prices`, or run with --allow-unknown-cost"
            );
            self.fault = Some((Fault::Cost, detail));
        }
        if !report.survivors.is_empty() {
            let pids: Vec<String> = report.survivors.iter().map(u32::to_string).collect();
            let detail = format!("processes still running after SIGKILL: {}", pids.join(", "));
            self.fault = Some((Fault::Survivors, detail));
        }
        let refunded = self.recent.back().is_some_and(|last| last.refunded);
        if self.restore_verdict(refunded, report) {
            self.proceed();
        } else {
            self.check_or_proceed();
        }
    }

    fn take_claims(&mut self, end: IterationEnd, report: &AgentReport) {
        let matched = self.claims.signals.matched;
        let signals = &mut self.claims.signals;
        *signals = report.signals.clone();
        signals.matched |= matched;
        if report.was_denied_everything() {
            // The agent could do nothing, so its claim does not count.
            (signals.promised, signals.matched) = (false, false);
        }
        self.claims.marker_texts.extend(report.marker_texts.clone());
        self.claims.markers.extend(&report.markers);
        self.claims.markers.sort_unstable();
        self.claims.markers.dedup();
        let waiting = self.agent().exit_waiting;
        if end == IterationEnd::Exited && waiting.is_some() && report.exit.code == waiting {
            self.claims.exit_waiting = waiting;
        }
    }

    /// Removes the messages from people that the agent has received. If the agent was killed early,
    /// they stay for the next prompt.
    fn clear_delivered_answers(&mut self, end: IterationEnd) {
        let cut_short = matches!(
            end,
            IterationEnd::Stopped
                | IterationEnd::Unready
                | IterationEnd::Faulted
                | IterationEnd::Interrupted
        );
        let refunded = self.recent.back().is_some_and(|last| last.refunded);
        if !cut_short && !refunded && self.process.is_some() {
            self.question = None;
            self.answers.drain(..self.answers_delivered);
        }
        self.answers_delivered = 0;
    }

    /// Records the latest iteration, and updates costs, failures and the time to rest.
    pub(super) fn record_iteration(&mut self, end: IterationEnd, report: &AgentReport) {
        let reason = self.failure_of(end, report);
        // Other ends were caused by ralph or a person, so no failure policy applies.
        let is_agents_own = matches!(
            end,
            IterationEnd::Exited | IterationEnd::Lingered | IterationEnd::PatternMatched
        ) || self.waited_for_service(end, report);
        let refunded =
            reason.is_some_and(|reason| is_agents_own && self.apply_failure(reason, report));
        let mut iteration = Iteration {
            number: self.iteration,
            end,
            exit: report.exit,
            ms: report.ms,
            cost_usd: report.cost_usd,
            reason,
            refunded,
            finished: report.finished,
            agent: (!self.plan.fallback.is_empty()).then(|| self.agent().name.clone()),
            tokens: report.tokens,
            steps: report.steps,
            error: report.error.clone(),
            denied: report.denied,
            denial: report.denial.clone(),
            denials: report.denials.clone(),
            note: report.note.clone(),
            claimed: self.is_claimed(),
            checks: self.checks.clone(),
            tasks: Vec::new(),
            worktree_commit: None,
        };
        self.add_usage(report.cost_usd, report.tokens);
        // An agent at a limit did no work, unless it used tokens.
        self.cost_unknown |= report.cost_usd.is_none() && (!refunded || report.tokens.is_some());
        self.add_session_usage(report);
        let failed = iteration.is_failure() && self.claims.exit_waiting.is_none();
        // An agent that ralph killed, or that asked to wait, did not fail.
        iteration.error = iteration.error.filter(|_| failed || refunded);
        if !refunded {
            self.waited_ms = 0;
        }
        let mut rest_ms = self.plan.rest.delay_ms;
        if refunded {
            self.counted = self.counted.saturating_sub(1);
        } else if failed {
            self.total_failures += 1;
            self.consecutive_failures += 1;
            rest_ms = rest_ms.max(self.backoff_ms(self.consecutive_failures));
        } else if is_agents_own || end == IterationEnd::MarkerSeen {
            self.consecutive_failures = 0;
            self.reset_availability();
        }
        self.rest_until_ms = self.clock_ms.saturating_add(rest_ms);
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(iteration);
        if self.was_denied_too_often() {
            let detail = self.fault_detail(FailureKind::Denied, report);
            self.fault = Some((Fault::Permission, detail));
        }
    }

    /// Kills the agent if it has used up a budget of the loop.
    pub(super) fn spent(&mut self, iteration: u32, cost_usd: Option<f64>, tokens: Option<Tokens>) {
        let is_running = iteration == self.iteration && self.has_running_budget();
        if is_running && self.exhausted_budget(cost_usd, tokens).is_some() {
            self.kill(IterationEnd::OverBudget);
        }
    }

    /// Adds to what the loop has spent. `None` adds nothing.
    pub(crate) fn add_usage(&mut self, cost_usd: Option<f64>, tokens: Option<Tokens>) {
        let cost = self.cost_usd + cost_usd.unwrap_or(0.0);
        self.cost_usd = rounded_usd(cost).min(COST_MAX);
        self.tokens += tokens.unwrap_or_default();
    }

    /// Adds an iteration's usage to its session's total. An agent that resumes the session may
    /// report that total again.
    fn add_session_usage(&mut self, report: &AgentReport) {
        let Some(id) = &report.session else { return };
        let known = self.session_usage.iter().position(|usage| usage.id == *id);
        let mut usage = match known {
            Some(index) => self.session_usage.remove(index),
            None => SessionUsage {
                id: id.clone(),
                cost_usd: 0.0,
                tokens: Tokens::default(),
            },
        };
        usage.cost_usd = (usage.cost_usd + report.cost_usd.unwrap_or(0.0)).min(COST_MAX);
        usage.tokens += report.tokens.unwrap_or_default();
        if self.session_usage.len() == SESSIONS_MAX {
            self.session_usage.remove(0);
        }
        self.session_usage.push(usage);
    }

    /// Starts the checks after an iteration. A fault or an immediate request skips them, but not the
    /// checkpoint.
    pub(super) fn check_or_proceed(&mut self) {
        let is_skipped = self.fault.is_some() || self.request.is_immediate();
        if is_skipped && self.begin_last_checkpoint() {
            return;
        }
        if self.fault.is_some() {
            self.proceed();
        } else if self.request.is_immediate() {
            self.run_scm_tasks_or_proceed();
        } else {
            self.begin_checks();
        }
    }

    /// Returns the rest after this number of consecutive failures, in milliseconds.
    pub(super) fn backoff_ms(&self, failures: u32) -> u64 {
        let rest = &self.plan.rest;
        doubled(
            rest.backoff_ms,
            failures.saturating_sub(1),
            rest.backoff_cap_ms,
        )
    }
}

/// Returns the way an iteration ended: `exit 0`, `stopped: it took too long`.
pub(crate) fn describe_end(iteration: &Iteration) -> String {
    match iteration.end {
        IterationEnd::Exited => match (iteration.exit.code, iteration.exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "could not be started".into(),
        },
        IterationEnd::TimedOut => "stopped: it took too long".into(),
        IterationEnd::Inactive => "stopped: it was silent for too long".into(),
        IterationEnd::Unready => "stopped: its screen did not become ready for the prompt".into(),
        IterationEnd::Lingered => "finished, but did not exit and was stopped".into(),
        IterationEnd::PatternMatched => "stopped at the done pattern".into(),
        IterationEnd::MarkerSeen => "stopped after it left a marker".into(),
        IterationEnd::OutOfTime => "stopped: the loop's time limit was reached".into(),
        IterationEnd::OverBudget => "stopped: the loop's budget was used up".into(),
        IterationEnd::Stopped => "stopped on request".into(),
        IterationEnd::Faulted => "stopped by an error".into(),
        IterationEnd::Interrupted => "interrupted".into(),
    }
}
