//! Defines the causes of agent failures, and the loop's reaction to each of them.

use super::event::{AgentReport, Fault};
use super::iteration::{Iteration, IterationEnd, RECENT_MAX};
use super::state::State;
use serde::{Deserialize, Serialize};

/// The cause of an agent's failure. The journal calls it `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The time at which the limit resets, in milliseconds since 1970; `None` if the agent does not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// How the iteration ended: why ralph killed the agent, or that it exited by itself. `None`
    /// unless the kind is [`FailureKind::Killed`] or [`FailureKind::Crashed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<IterationEnd>,
}

/// The kind of an agent's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The account has reached its usage limit.
    UsageLimit,
    /// The service throttles the agent's requests.
    RateLimit,
    /// The service is overloaded.
    Overloaded,
    /// The service fails or cannot be reached: an error of the server or the network, or no event
    /// at all.
    Unavailable,
    /// The agent is not logged in, or its login has expired.
    Login,
    /// The account has no credit.
    Credit,
    /// The model does not exist, or the account cannot use it.
    Model,
    /// The prompt is too long for the model.
    Context,
    /// Everything that the agent tried was denied.
    Denied,
    /// The agent refuses to run, because it lacks a permission that it needs.
    Permission,
    /// The model refused the task.
    Refused,
    /// The agent rejected its arguments.
    Usage,
    /// The agent's program does not exist.
    NotFound,
    /// The agent failed, and the cause is unknown.
    Crashed,
    /// Ralph killed the agent; [`AgentFailure::why`] has the reason.
    Killed,
}

/// The loop's reaction to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    /// Wait until the cause has passed. Neither the iteration nor a failure is counted.
    Wait,
    /// End the loop: retrying cannot fix this.
    Stop(Fault),
    /// Count a failure, and back off before the next iteration.
    Fail,
}

impl FailureKind {
    /// Returns the loop's reaction to this kind of failure.
    pub(crate) fn policy(self) -> FailurePolicy {
        match self {
            Self::UsageLimit | Self::RateLimit | Self::Overloaded | Self::Unavailable => {
                FailurePolicy::Wait
            }
            Self::Login => FailurePolicy::Stop(Fault::Login),
            Self::Credit => FailurePolicy::Stop(Fault::Credit),
            Self::Model => FailurePolicy::Stop(Fault::Model),
            Self::Permission => FailurePolicy::Stop(Fault::Permission),
            Self::Usage => FailurePolicy::Stop(Fault::Usage),
            Self::NotFound => FailurePolicy::Stop(Fault::NotFound),
            // Whether a killed agent has failed depends on the reason for the kill: see
            // `Iteration::is_failure`.
            // An agent that was denied everything learns from the next prompt what it may do: see
            // `State::was_denied_too_often`.
            Self::Context | Self::Denied | Self::Refused | Self::Crashed | Self::Killed => {
                FailurePolicy::Fail
            }
        }
    }

    /// Returns the kind of failure for an agent that could not be started because of `fault`;
    /// `None` if the agent is not the cause.
    fn from_fault(fault: Fault) -> Option<Self> {
        match fault {
            Fault::NotFound => Some(Self::NotFound),
            Fault::Permission => Some(Self::Denied),
            Fault::Usage => Some(Self::Usage),
            _ => None,
        }
    }

    /// Returns the name used in the journal and in settings.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage-limit",
            Self::RateLimit => "rate-limit",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Login => "login",
            Self::Credit => "credit",
            Self::Model => "model",
            Self::Context => "context",
            Self::Denied => "denied",
            Self::Permission => "permission",
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::NotFound => "not-found",
            Self::Crashed => "crashed",
            Self::Killed => "killed",
        }
    }

    /// Returns whether a fallback agent may succeed instead, because it has its own account and
    /// service.
    pub(crate) fn is_agent_specific(self) -> bool {
        matches!(
            self,
            Self::UsageLimit
                | Self::RateLimit
                | Self::Overloaded
                | Self::Unavailable
                | Self::Login
                | Self::Credit
        )
    }

    /// Returns a short description for people. It follows the agent's name and a colon.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage limit reached",
            Self::RateLimit => "rate limited",
            Self::Overloaded => "its service is overloaded",
            Self::Unavailable => "its service fails or cannot be reached",
            Self::Login => "it is not logged in",
            Self::Credit => "its account has no credit",
            Self::Model => "its model does not exist, or the account cannot use it",
            Self::Context => "the prompt is too long for its model",
            Self::Denied => "everything it tried was denied",
            Self::Permission => "it lacks a permission it needs",
            Self::Refused => "its model refused the task",
            Self::Usage => "it rejected its arguments",
            Self::NotFound => "its program was not found",
            Self::Crashed => "it crashed",
            Self::Killed => "it was killed",
        }
    }
}

impl From<FailureKind> for AgentFailure {
    fn from(kind: FailureKind) -> Self {
        Self {
            kind,
            until_ms: None,
            why: None,
        }
    }
}

impl State {
    /// Returns the failure that an iteration ended with; `None` if it did not fail. `report` is the
    /// result of the iteration's agent.
    pub(super) fn failure_of(
        &self,
        end: IterationEnd,
        report: &AgentReport,
    ) -> Option<AgentFailure> {
        match end {
            _ if self.claims.exit_waiting.is_some() => None,
            IterationEnd::Exited | IterationEnd::Lingered if report.finished => report.reason,
            IterationEnd::Exited | IterationEnd::Lingered => {
                let by_exit_code = || {
                    let rule = self.agent().exit_rule(report.exit)?;
                    rule.means.failure_kind().map(AgentFailure::from)
                };
                report
                    .reason
                    .or_else(by_exit_code)
                    .or_else(|| unexplained(end, report))
            }
            IterationEnd::PatternMatched => {
                report.reason.filter(|_| report.was_denied_everything())
            }
            IterationEnd::MarkerSeen => None,
            _ if self.waited_for_service(end, report) => {
                let at_limit = report.reason.filter(|_| report.is_at_limit());
                Some(at_limit.unwrap_or(FailureKind::Unavailable.into()))
            }
            IterationEnd::Faulted if self.process.is_none() => {
                let (fault, _) = self.fault.as_ref()?;
                let kind = FailureKind::from_fault(*fault);
                Some(kind.map_or_else(|| killed(end), AgentFailure::from))
            }
            _ => Some(killed(end)),
        }
    }

    /// Returns whether the agent waited for its service until it was killed. Under the first rules,
    /// that was a timeout like any other.
    pub(super) fn waited_for_service(&self, end: IterationEnd, report: &AgentReport) -> bool {
        matches!(end, IterationEnd::Inactive | IterationEnd::TimedOut)
            && (report.silent || report.is_at_limit())
            && !self.plan.has_first_rules()
    }

    /// Returns whether the agent was denied everything in as many iterations in a row as the
    /// failure limit allows. Without that limit, the loop continues.
    pub(super) fn was_denied_too_often(&self) -> bool {
        let Some(max) = self.plan.limits.failures else {
            return false;
        };
        let is_denied = |last: &&Iteration| {
            last.is_failure()
                && last
                    .reason
                    .is_some_and(|reason| reason.kind == FailureKind::Denied)
        };
        let denied = self.recent.iter().rev().take_while(is_denied).count();
        self.consecutive_failures >= max && denied >= RECENT_MAX.min(max as usize)
    }
}

impl AgentReport {
    /// Returns whether the agent is at a limit or its service is unavailable, so that waiting
    /// helps.
    pub(super) fn is_at_limit(&self) -> bool {
        self.reason
            .is_some_and(|reason| reason.kind.policy() == FailurePolicy::Wait)
    }

    /// Returns whether everything that the agent tried was denied.
    pub(super) fn was_denied_everything(&self) -> bool {
        self.reason
            .is_some_and(|reason| reason.kind == FailureKind::Denied)
    }
}

fn killed(end: IterationEnd) -> AgentFailure {
    AgentFailure {
        kind: FailureKind::Killed,
        until_ms: None,
        why: Some(end),
    }
}

fn unexplained(end: IterationEnd, report: &AgentReport) -> Option<AgentFailure> {
    match end {
        IterationEnd::Lingered => Some(killed(end)),
        _ => (!report.exit.is_success()).then(|| AgentFailure {
            why: Some(end),
            ..FailureKind::Crashed.into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_pass_by_themselves_are_waited_for() {
        for (kind, waits) in [
            (FailureKind::UsageLimit, true),
            (FailureKind::RateLimit, true),
            (FailureKind::Overloaded, true),
            (FailureKind::Unavailable, true),
            (FailureKind::Login, false),
            (FailureKind::Credit, false),
            (FailureKind::Context, false),
            (FailureKind::Crashed, false),
        ] {
            assert_eq!(kind.policy() == FailurePolicy::Wait, waits, "{kind:?}");
        }
    }

    #[test]
    fn a_kind_has_the_same_name_in_messages_and_in_the_journal() {
        for name in [
            "usage-limit",
            "rate-limit",
            "overloaded",
            "unavailable",
            "login",
            "credit",
            "model",
            "context",
            "denied",
            "permission",
            "refused",
            "usage",
            "not-found",
            "crashed",
            "killed",
        ] {
            let kind: FailureKind = serde_json::from_value(name.into()).unwrap();
            assert_eq!(kind.as_str(), name);
        }
    }
}
