//! Long rests at usage limits and during outages: the `--notify` command runs when one begins and
//! when it ends.

use super::orders::Effect;
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// The shortest planned length of a long rest, in milliseconds.
const LONG_REST_MS: i64 = 10 * 60 * 1000;

/// A long rest: no agent can run, because each is at a limit or unavailable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongRest {
    /// The planned end, in milliseconds since 1970.
    pub until_ms: i64,
    /// The agents and why they rest: `claude: usage limit reached`.
    pub why: String,
}

/// The part of a long rest that a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestStage {
    /// The rest begins.
    #[serde(rename = "rest_started")]
    Started,
    /// The rest is over, and the next iteration begins.
    #[serde(rename = "rest_ended")]
    Ended,
}

impl State {
    /// Returns the long rest that the loop is in; `None` if it does not rest, or if less time is
    /// left than a long rest takes.
    fn long_rest(&self) -> Option<LongRest> {
        match self.phase {
            Phase::Resting {
                wall_ms: Some(until_ms),
                ..
            } if until_ms.saturating_sub(self.wall_ms) >= LONG_REST_MS => Some(LongRest {
                until_ms,
                why: self.waiting_for(),
            }),
            _ => None,
        }
    }

    /// Returns the order for the notification that is due; `None` if none is, or if the plan has no
    /// command for it. If the loop ends or pauses during a rest, the notification of that is enough.
    ///
    /// An agent that is tried again and again during an outage rests many times. That counts as one
    /// rest, which ends when an iteration has worked.
    pub(super) fn rest_notification(&self) -> Option<Effect> {
        self.plan.notify.as_ref()?;
        match (&self.notified_rest, &self.phase) {
            (None, _) => self.long_rest().map(|rest| Effect::Notify {
                stage: RestStage::Started,
                rest,
            }),
            // The rest of an outage has become one until a reset time.
            (Some(notified), Phase::Resting { .. }) if !self.is_probing() => self
                .long_rest()
                .filter(|rest| rest.why != notified.why)
                .map(|rest| Effect::Notify {
                    stage: RestStage::Started,
                    rest,
                }),
            (Some(rest), Phase::Running { started: false, .. }) if !self.next_is_probe() => {
                Some(Effect::Notify {
                    stage: RestStage::Ended,
                    rest: rest.clone(),
                })
            }
            _ => None,
        }
    }

    pub(super) fn rest_notified(&mut self, stage: RestStage, rest: &LongRest) {
        self.notified_rest = match stage {
            RestStage::Started => Some(rest.clone()),
            RestStage::Ended => None,
        };
    }
}
