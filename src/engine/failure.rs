//! Why an agent came to a bad end, in one word, and what a loop does about each: the one table of reasons.

use super::event::{Fault, Report};
use super::state::{How, State};
use serde::{Deserialize, Serialize};

/// Why an agent came to a bad end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What kind of thing.
    pub kind: Kind,
    /// When it is over, in milliseconds since 1970, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// Why ralph killed it, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<How>,
}

/// What kind of thing brought an agent to a bad end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// What its account may use is used up for now.
    UsageLimit,
    /// It asked too often.
    RateLimit,
    /// Its service has no room.
    Overloaded,
    /// It is not logged in, or its login is no longer valid.
    Login,
    /// Its account has no money.
    Credit,
    /// There is no such model, or not for this account.
    Model,
    /// What it was told is too long for its model.
    Context,
    /// It was not allowed what it had to do, and did nothing.
    Denied,
    /// It would not do it.
    Refused,
    /// It did not understand how it was called.
    Usage,
    /// Its program is not there.
    NotFound,
    /// It broke, and did not say more.
    Crashed,
    /// Ralph ended it; why is another question.
    Killed,
}

/// What a loop does about a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It waits, and neither the iteration nor a failure counts.
    Wait,
    /// It stops at once: trying again would not help.
    Stop(Fault),
    /// It counts a failure, and backs off.
    Fail,
}

impl Kind {
    /// What a loop does about it.
    pub fn course(self) -> Course {
        match self {
            Self::UsageLimit | Self::RateLimit | Self::Overloaded => Course::Wait,
            Self::Login => Course::Stop(Fault::Login),
            Self::Credit => Course::Stop(Fault::Credit),
            Self::Model => Course::Stop(Fault::Model),
            Self::Denied => Course::Stop(Fault::Permission),
            Self::Usage => Course::Stop(Fault::Usage),
            Self::NotFound => Course::Stop(Fault::NotFound),
            // Whether one that was killed has failed depends on why: `Iteration::is_failure` knows.
            Self::Context | Self::Refused | Self::Crashed | Self::Killed => Course::Fail,
        }
    }

    /// The reason of an agent that could not be started because of this; none if the fault is not the agent's.
    fn of_fault(fault: Fault) -> Option<Self> {
        let all = [Self::NotFound, Self::Denied, Self::Usage];
        all.into_iter()
            .find(|kind| kind.course() == Course::Stop(fault))
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage-limit",
            Self::RateLimit => "rate-limit",
            Self::Overloaded => "overloaded",
            Self::Login => "login",
            Self::Credit => "credit",
            Self::Model => "model",
            Self::Context => "context",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::NotFound => "not-found",
            Self::Crashed => "crashed",
            Self::Killed => "killed",
        }
    }

    /// Whether another agent may do better: its account, its service and its login are others.
    pub fn is_the_agents_own(self) -> bool {
        matches!(
            self,
            Self::UsageLimit | Self::RateLimit | Self::Overloaded | Self::Login
        )
    }

    /// What the agent is, or has.
    pub fn words(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage limit reached",
            Self::RateLimit => "rate limited",
            Self::Overloaded => "its service is overloaded",
            Self::Login => "it is not logged in",
            Self::Credit => "its account has no credit",
            Self::Model => "its model is not known",
            Self::Context => "the prompt is too long for its model",
            Self::Denied => "it was not allowed to do anything",
            Self::Refused => "it refused",
            Self::Usage => "it did not understand how it was called",
            Self::NotFound => "its program is not there",
            Self::Crashed => "it broke",
            Self::Killed => "it was ended",
        }
    }
}

impl From<Kind> for Reason {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            until_ms: None,
            why: None,
        }
    }
}

impl State {
    /// Why an iteration came to a bad end: every bad end has exactly one reason, and a good one has none.
    pub(super) fn reason_of(&self, how: How, report: &Report) -> Option<Reason> {
        match how {
            _ if self.claims.exit_waiting.is_some() => None,
            How::Exited | How::Lingered if report.finished => report.reason,
            How::Exited | How::Lingered => {
                let by_code = || {
                    self.agent()
                        .rule(report.exit)?
                        .means
                        .kind()
                        .map(Reason::from)
                };
                report
                    .reason
                    .or_else(by_code)
                    .or_else(|| unexplained(how, report))
            }
            How::Matched => report.reason.filter(|_| report.was_kept_from_all()),
            How::Marked => None,
            How::Faulted if self.process.is_none() => {
                let (fault, _) = self.fault.as_ref()?;
                Some(Kind::of_fault(*fault).map_or_else(|| killed(how), Reason::from))
            }
            _ => Some(killed(how)),
        }
    }
}

impl Report {
    /// Whether it was not allowed what it tried, and did nothing.
    pub(super) fn was_kept_from_all(&self) -> bool {
        self.reason
            .is_some_and(|reason| reason.kind == Kind::Denied)
    }
}

/// The reason of an agent that ralph ended.
fn killed(how: How) -> Reason {
    Reason {
        kind: Kind::Killed,
        until_ms: None,
        why: Some(how),
    }
}

/// The reason of a bad end that nobody explains.
fn unexplained(how: How, report: &Report) -> Option<Reason> {
    match how {
        How::Lingered => Some(killed(how)),
        _ => (!report.exit.is_good()).then(|| Kind::Crashed.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        for (kind, waits) in [
            (Kind::UsageLimit, true),
            (Kind::RateLimit, true),
            (Kind::Overloaded, true),
            (Kind::Login, false),
            (Kind::Credit, false),
            (Kind::Context, false),
            (Kind::Crashed, false),
        ] {
            assert_eq!(kind.course() == Course::Wait, waits, "{kind:?}");
        }
    }

    #[test]
    fn a_word_is_the_same_for_people_and_in_the_journal() {
        for word in [
            "usage-limit",
            "rate-limit",
            "overloaded",
            "login",
            "credit",
            "model",
            "context",
            "denied",
            "refused",
            "usage",
            "not-found",
            "crashed",
            "killed",
        ] {
            let kind: Kind = serde_json::from_value(word.into()).unwrap();
            assert_eq!(kind.word(), word);
        }
    }
}
