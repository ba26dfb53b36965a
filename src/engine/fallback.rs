//! Chooses which of a loop's agents runs next. An agent may rest at a limit or be excluded after a
//! failure; the next agent in the plan then takes over.

use super::event::{AgentReport, Fault, is_default};
use super::failure::{AgentFailure, FailureKind, FailurePolicy};
use super::plan::Agent;
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// The shortest change of the wall clock that counts as one, in milliseconds. Smaller differences
/// between the two clocks come from rounding and from adjusting the wall clock's speed.
const CLOCK_STEP_MS: i64 = 1000;

/// An agent's availability for the next iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentAvailability {
    /// The time at which the agent may run again, in milliseconds since 1970; `None` if it does not
    /// rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until_wall_ms: Option<i64>,
    /// The failure because of which the agent rests or is excluded; `None` if the agent is
    /// available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<FailureKind>,
    /// Number of consecutive rests without a success in between.
    #[serde(default)]
    pub(crate) waits: u32,
    /// Whether the rest ends at a guessed time, when the agent is tried again, and not at a reset
    /// time that the agent reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) is_probe: bool,
    /// The fault, with a description, that excludes the agent until a person resumes the loop;
    /// `None` if the agent is not excluded.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "out")]
    pub(crate) excluded: Option<(Fault, String)>,
}

/// The choice of the agent that runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAgent {
    /// Run the agent at this index in the plan.
    Use(usize),
    /// No agent can run before this time, in milliseconds since 1970.
    AllRestingUntil(i64),
}

impl State {
    /// Returns the agent that is running, or that ran last.
    pub(crate) fn agent(&self) -> &Agent {
        self.plan
            .agents()
            .nth(self.agent_index)
            .unwrap_or(&self.plan.agent)
    }

    /// Returns the version of this agent's program; `None` if it is unknown.
    pub(crate) fn agent_version(&self) -> Option<&String> {
        self.agent_versions.get(&self.agent().name)
    }

    pub(super) fn learn_agent_version(&mut self, version: Option<&String>) {
        if let Some(version) = version {
            let name = self.agent().name.clone();
            self.agent_versions.insert(name, version.clone());
        }
    }

    fn availability_mut(&mut self) -> &mut AgentAvailability {
        let agents = self.plan.agents().count();
        self.availability.resize_with(
            agents.max(self.availability.len()),
            AgentAvailability::default,
        );
        let index = self.agent_index.min(agents - 1);
        &mut self.availability[index]
    }

    /// Returns the first agent that neither rests nor is excluded. If there is none, returns the
    /// time at which the first rest ends.
    pub(crate) fn next_agent(&self) -> NextAgent {
        let available = AgentAvailability::default();
        let mut agents = (0..self.plan.agents().count())
            .map(|index| (index, self.availability.get(index).unwrap_or(&available)));
        let mut soonest = i64::MAX;
        let first = agents.find(|(_, agent)| {
            let until = agent.until_wall_ms.filter(|until| *until > self.wall_ms);
            if agent.excluded.is_none() {
                soonest = soonest.min(until.unwrap_or(i64::MAX));
            }
            agent.excluded.is_none() && until.is_none()
        });
        match first {
            Some((index, _)) => NextAgent::Use(index),
            // All agents are excluded. That is a fault, and `decide` tests for faults before
            // agents.
            None if soonest == i64::MAX => NextAgent::Use(0),
            None => NextAgent::AllRestingUntil(soonest),
        }
    }

    /// Applies the failure's policy. Returns whether the iteration is refunded: neither the
    /// iteration nor the failure then counts.
    pub(super) fn apply_failure(&mut self, failure: AgentFailure, report: &AgentReport) -> bool {
        let is_first_rules = self.plan.has_first_rules();
        // Under the first rules, missing credit ended the loop.
        let has_alternative = !self.plan.fallback.is_empty()
            && failure.kind.is_agent_specific()
            && !(is_first_rules && failure.kind == FailureKind::Credit);
        let policy = match failure.kind {
            // Under the first rules, the first such denial ended the loop.
            FailureKind::Denied if is_first_rules => FailurePolicy::Stop(Fault::Permission),
            kind => kind.policy(),
        };
        match policy {
            FailurePolicy::Fail => false,
            FailurePolicy::Wait => {
                let (now_ms, waits) = (self.wall_ms, self.availability_mut().waits);
                let probe_ms =
                    doubled(self.plan.rest.probe_ms, waits, self.plan.rest.probe_cap_ms) as i64;
                let agent = self.availability_mut();
                agent.waits = agent.waits.saturating_add(1);
                agent.why = Some(failure.kind);
                // A reset time in the past must be wrong, because the agent is still at its limit.
                let until = failure.until_ms.filter(|until| *until > now_ms);
                agent.is_probe = until.is_none();
                agent.until_wall_ms = until.or_else(|| Some(now_ms.saturating_add(probe_ms)));
                if agent.is_probe {
                    self.waited_ms = self.waited_ms.saturating_add(report.ms);
                }
                true
            }
            FailurePolicy::Stop(fault) => {
                let detail = self.fault_detail(failure.kind, report);
                let agent = self.availability_mut();
                agent.why = Some(failure.kind);
                agent.excluded = Some((fault, detail));
                let all_excluded = (0..self.plan.agents().count()).all(|index| {
                    let agent = self.availability.get(index);
                    agent.is_some_and(|agent| agent.excluded.is_some())
                });
                if !has_alternative || all_excluded {
                    let excluded = self
                        .availability
                        .iter()
                        .filter_map(|agent| agent.excluded.as_ref());
                    let details: Vec<&str> = excluded.map(|(_, detail)| detail.as_str()).collect();
                    self.fault = Some((fault, details.join("; ")));
                }
                has_alternative
            }
        }
    }

    /// Clears the current agent's rests, because the agent works again.
    pub(super) fn reset_availability(&mut self) {
        *self.availability_mut() = AgentAvailability::default();
    }

    /// Returns whether the loop rests and no agent has reported when it will be available.
    pub(super) fn is_probing(&self) -> bool {
        let resting = |agent: &&AgentAvailability| {
            agent.excluded.is_none()
                && agent
                    .until_wall_ms
                    .is_some_and(|until| until > self.wall_ms)
        };
        matches!(
            self.phase,
            Phase::Resting {
                wall_ms: Some(_),
                ..
            }
        ) && self
            .availability
            .iter()
            .filter(resting)
            .all(|agent| agent.is_probe)
    }

    /// Returns whether the next iteration only tries whether its agent is available again.
    pub(super) fn next_is_probe(&self) -> bool {
        match self.next_agent() {
            NextAgent::Use(index) => {
                let agent = self.availability.get(index);
                agent.is_some_and(|agent| agent.is_probe)
            }
            NextAgent::AllRestingUntil(_) => false,
        }
    }

    /// Returns why the loop waits or waited for its agents: `claude: its service fails or cannot
    /// be reached`. Empty if no agent has a reason.
    pub(crate) fn waiting_for(&self) -> String {
        let agents = self.plan.agents().zip(&self.availability);
        let whys = agents.filter_map(|(agent, availability)| {
            Some(format!("{}: {}", agent.name, availability.why?.describe()))
        });
        whys.collect::<Vec<_>>().join("; ")
    }

    /// Lets excluded agents run again, because the person who resumed the loop may have fixed the
    /// cause.
    pub(super) fn clear_exclusions(&mut self) {
        for agent in &mut self.availability {
            agent.excluded = None;
        }
    }

    /// Ends every rest earlier by the time that the wall clock was set back, which would otherwise
    /// lengthen them.
    pub(super) fn shorten_rests(&mut self, set_back_ms: i64) {
        if set_back_ms < CLOCK_STEP_MS {
            return;
        }
        let ends = self.availability.iter_mut();
        let ends = ends.filter_map(|agent| agent.until_wall_ms.as_mut());
        let own = match &mut self.phase {
            Phase::Resting { wall_ms, .. } => wall_ms.as_mut(),
            _ => None,
        };
        for until_ms in ends.chain(own) {
            *until_ms = until_ms.saturating_sub(set_back_ms);
        }
    }

    /// Ends every rest, because a person asked not to wait.
    pub(super) fn skip_rest(&mut self) {
        self.rest_until_ms = 0;
        for agent in &mut self.availability {
            agent.until_wall_ms = None;
        }
    }

    /// Returns how a person can allow what the agent was denied; `None` if that is unknown.
    pub(crate) fn allow_hint(&self, denial: Option<&str>) -> Option<String> {
        let agent = self.agent();
        let level = agent
            .next_approval()
            .map(|level| format!("allow more with --approve {level}"));
        let line = denial.and_then(|denial| agent.allow_hint(denial));
        match (line, level) {
            (Some(line), Some(level)) => Some(format!("{line}, or {level}")),
            (line, level) => line.or(level),
        }
    }

    /// Returns one line for people with the problem, the agent's own message and a fix.
    pub(super) fn fault_detail(&self, kind: FailureKind, report: &AgentReport) -> String {
        let agent = self.agent();
        let rule = agent
            .exit_rule(report.exit)
            .filter(|_| report.reason.is_none());
        let exited = rule.map(|rule| format!("{} exited with {}", agent.name, rule.code));
        let means = rule.map_or(kind.describe(), |rule| rule.means.describe());
        let mut text = format!("{}: {means}", exited.unwrap_or_else(|| agent.name.clone()));
        let message = report.error.as_deref().or(report.denial.as_deref());
        if let Some(last) = message
            .and_then(|message| message.lines().last())
            .filter(|_| rule.is_none())
        {
            text.extend([" (", last.trim(), ")"]);
        }
        let hint = match kind {
            _ if rule.is_some_and(|rule| !rule.hint.is_empty()) => {
                rule.map(|rule| rule.hint.clone())
            }
            FailureKind::Login if !agent.login.is_empty() => {
                Some(format!("log in: {}", agent.login))
            }
            FailureKind::Credit => {
                Some("add credit to its account, or use another login or agent".into())
            }
            FailureKind::Model => Some("choose another model with --model".into()),
            FailureKind::Denied => self.allow_hint(report.denial.as_deref()),
            _ => None,
        };
        text.extend(hint.map(|hint| format!(": {hint}")));
        text
    }
}

/// Returns `base_ms` doubled `times` times, but at most `cap_ms`.
pub(super) fn doubled(base_ms: u64, times: u32, cap_ms: u64) -> u64 {
    base_ms.saturating_mul(1 << times.min(40)).min(cap_ms)
}
