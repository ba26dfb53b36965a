//! Defines the limits that end a loop, in one table: each limit's key, usage, unit and texts.
//!
//! Everything that lists limits (flags, `ralph set`, prompts, status, endings) iterates over
//! [`LIMITS`]. A new limit needs a variant and a row here, a field in [`Limits`] and a row in
//! `presets/settings.toml`.

use super::format::{dollars, duration, thousands};
use super::outcome::StopReason;
use super::state::{Phase, State};
use super::usage::Tokens;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A limit that can end a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The number of consecutive failures.
    Failures,
    /// The dollars spent.
    Cost,
    /// The tokens used.
    Tokens,
    /// The active time. Pauses and waits for a usage limit to reset do not count.
    Time,
    /// The number of iterations, except refunded ones.
    Iterations,
    /// Iterations in a row without progress.
    Stalls,
    /// Number of times that a held-out check failed, of which the agent learned.
    Peeks,
    /// Time spent waiting in a row for agents that do not say when they will be available.
    Rest,
    /// Blocked ends of a client's session in a row, between which the agent uses no tool.
    Blocks,
}

/// An amount in the unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Amount {
    /// A number of iterations, failures or blocks.
    Count(u32),
    /// An amount of dollars.
    Dollars(f64),
    /// A number of tokens.
    Tokens(u64),
    /// A duration in milliseconds.
    Millis(u64),
}

/// A change that `ralph set` makes to a limit of an existing loop.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitChange {
    /// The limit to change.
    pub limit: Limit,
    /// The new maximum; `None` removes the limit.
    pub max: Option<Amount>,
}

/// The maximum of each limit, for a loop or for one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Maximum number of iterations, except refunded ones; `None` means no limit.
    pub(crate) iterations: Option<u32>,
    /// Maximum dollars, as the agent reports them; `None` means no limit.
    pub(crate) cost_usd: Option<f64>,
    /// Whether the loop may continue under a cost limit while the cost is unknown.
    #[serde(default)]
    pub(crate) unknown_cost: bool,
    /// Maximum tokens, as the agent reports them; `None` means no limit.
    #[serde(default)]
    pub(crate) tokens: Option<u64>,
    /// Maximum active time of the whole loop, in milliseconds; `None` means no limit.
    pub(crate) time_ms: Option<u64>,
    /// Maximum number of consecutive failures; `None` means no limit.
    pub(crate) failures: Option<u32>,
    /// Iterations in a row without progress.
    #[serde(default)]
    pub(crate) stalls: Option<u32>,
    /// Failures of held-out checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peeks: Option<u32>,
    /// Waiting in a row for agents that do not say when they will be available, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest_ms: Option<u64>,
    /// Duration of one iteration, in milliseconds.
    pub(crate) iteration_ms: Option<u64>,
    /// Maximum time without output in one iteration, in milliseconds; `None` means no limit.
    pub(crate) inactivity_ms: Option<u64>,
    /// Blocked ends of a client's session in a row; `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<u32>,
}

/// A row in the table of limits: the names, unit and texts of one limit.
pub(crate) struct LimitRow {
    pub(crate) limit: Limit,
    /// The limit's name in JSON and in messages.
    pub(crate) name: &'static str,
    /// The name of the setting, the flag and the `ralph set` argument; `None` if users cannot set
    /// the limit.
    pub(crate) key: Option<&'static str>,
    /// The noun that follows an amount; empty if the formatted amount needs none.
    pub(crate) noun: &'static str,
    /// Zero in the limit's unit.
    pub(crate) zero: Amount,
    /// Whether the limit is a budget. Prompts and endings show the used amount of a budget.
    pub(crate) is_budget: bool,
    /// Whether resuming the loop resets the used amount to zero.
    pub(crate) is_reset_by_resume: bool,
    /// The stop reason, for scripts, if the limit ends the loop.
    pub(crate) stop_reason: StopReason,
    /// Why a loop at this limit ended, for people.
    reached: &'static str,
    /// Why a loop at this limit cannot continue, as a clause about the loop.
    pub(crate) exhausted: &'static str,
    used: fn(&State) -> Amount,
    max: fn(&Limits) -> Option<Amount>,
    set: fn(&mut Limits, Option<Amount>),
}

/// All limits, in the order in which they are tested.
pub(crate) const LIMITS: [LimitRow; 9] = [
    LimitRow {
        limit: Limit::Failures,
        name: "failures",
        key: Some("max-failures"),
        noun: "in a row",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: true,
        stop_reason: StopReason::Failures,
        reached: "too many failures in a row",
        exhausted: "its failure limit is reached",
        used: |state| Amount::Count(state.failures()),
        max: |limits| limits.failures.map(Amount::Count),
        set: |limits, max| limits.failures = max.map(Amount::count),
    },
    LimitRow {
        limit: Limit::Cost,
        name: "cost",
        key: Some("max-cost"),
        noun: "",
        zero: Amount::Dollars(0.0),
        is_budget: true,
        is_reset_by_resume: false,
        stop_reason: StopReason::BudgetExhausted,
        reached: "cost limit reached",
        exhausted: "its cost limit is reached",
        used: |state| Amount::Dollars(state.cost_usd),
        max: |limits| limits.cost_usd.map(Amount::Dollars),
        set: |limits, max| limits.cost_usd = max.map(Amount::number),
    },
    LimitRow {
        limit: Limit::Tokens,
        name: "tokens",
        key: Some("max-tokens"),
        noun: "tokens",
        zero: Amount::Tokens(0),
        is_budget: true,
        is_reset_by_resume: false,
        stop_reason: StopReason::BudgetExhausted,
        reached: "token limit reached",
        exhausted: "its token limit is reached",
        used: |state| Amount::Tokens(state.tokens.total()),
        max: |limits| limits.tokens.map(Amount::Tokens),
        set: |limits, max| limits.tokens = max.map(Amount::whole),
    },
    LimitRow {
        limit: Limit::Time,
        name: "time",
        key: Some("max-time"),
        noun: "",
        zero: Amount::Millis(0),
        is_budget: true,
        is_reset_by_resume: false,
        stop_reason: StopReason::Timeout,
        reached: "time limit reached",
        exhausted: "its time limit is reached",
        used: |state| Amount::Millis(state.active_ms),
        max: |limits| limits.time_ms.map(Amount::Millis),
        set: |limits, max| limits.time_ms = max.map(Amount::whole),
    },
    LimitRow {
        limit: Limit::Iterations,
        name: "iterations",
        key: Some("max-iterations"),
        noun: "",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: false,
        stop_reason: StopReason::MaxIterations,
        reached: "iteration limit reached",
        exhausted: "its iteration limit is reached",
        used: |state| Amount::Count(state.counted),
        max: |limits| limits.iterations.map(Amount::Count),
        set: |limits, max| limits.iterations = max.map(Amount::count),
    },
    LimitRow {
        limit: Limit::Stalls,
        name: "stalls",
        key: Some("max-stalls"),
        noun: "in a row",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: true,
        stop_reason: StopReason::Stalled,
        reached: "no progress",
        exhausted: "it made no progress",
        used: |state| Amount::Count(state.progress.stalls),
        max: |limits| limits.stalls.map(Amount::Count),
        set: |limits, max| limits.stalls = max.map(Amount::count),
    },
    LimitRow {
        limit: Limit::Peeks,
        name: "peeks",
        key: Some("max-peeks"),
        noun: "",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: true,
        stop_reason: StopReason::MaxPeeks,
        reached: "a held-out check failed too often",
        exhausted: "a held-out check failed too often",
        used: |state| Amount::Count(state.peeks_used()),
        max: |limits| limits.peeks.map(Amount::Count),
        set: |limits, max| limits.peeks = max.map(Amount::count),
    },
    LimitRow {
        limit: Limit::Rest,
        name: "rest",
        key: Some("max-rest"),
        noun: "",
        zero: Amount::Millis(0),
        is_budget: false,
        is_reset_by_resume: true,
        stop_reason: StopReason::MaxRest,
        reached: "waited too long for its agent",
        exhausted: "it has waited too long for its agent",
        used: |state| Amount::Millis(state.waited_ms),
        max: |limits| limits.rest_ms.map(Amount::Millis),
        set: |limits, max| limits.rest_ms = max.map(Amount::whole),
    },
    LimitRow {
        limit: Limit::Blocks,
        name: "blocks",
        key: None,
        noun: "",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: false,
        stop_reason: StopReason::BlockCap,
        reached: "the client ends a session after repeated turns without a tool call",
        exhausted: "its client will not let ralph continue the session again",
        used: |state| Amount::Count(state.idle_blocks()),
        max: |limits| limits.blocks.map(Amount::Count),
        set: |limits, max| limits.blocks = max.map(Amount::count),
    },
];

impl Limit {
    /// Returns the limit's row in the table.
    pub(crate) fn row(self) -> &'static LimitRow {
        LIMITS
            .iter()
            .find(|row| row.limit == self)
            .expect("every limit has a row")
    }

    /// Returns the limit that the setting `key` sets; `None` if the setting is not a limit.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        let row = LIMITS.iter().find(|row| row.key == Some(key))?;
        Some(row.limit)
    }

    /// Returns the name used in JSON and in messages.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns why a loop at this limit ended, for people. `success` is `true` if the
    /// ending counts as success.
    pub(crate) fn describe_ending(self, success: bool) -> &'static str {
        if success {
            "ran to its iteration limit"
        } else {
            self.row().reached
        }
    }
}

impl LimitRow {
    /// Returns the maximum in `limits`; `None` means no limit.
    pub(crate) fn max(&self, limits: &Limits) -> Option<Amount> {
        (self.max)(limits)
    }

    /// Sets the maximum in `limits`; `None` removes the limit.
    pub(crate) fn set(&self, limits: &mut Limits, max: Option<Amount>) {
        (self.set)(limits, max);
    }
}

impl Amount {
    /// Returns the plain number: dollars, milliseconds or a count.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Count(count) => f64::from(count),
            Self::Dollars(usd) => usd,
            Self::Tokens(whole) | Self::Millis(whole) => whole as f64,
        }
    }

    /// Returns `number` in the same unit as `self`; `None` if it is negative, or a fraction in a
    /// unit of whole numbers.
    fn with_number(self, number: f64) -> Option<Self> {
        let is_whole = number.fract() == 0.0;
        Some(match self {
            _ if number < 0.0 => return None,
            Self::Dollars(_) => Self::Dollars(number),
            _ if !is_whole => return None,
            Self::Count(_) => Self::Count(number as u32),
            Self::Tokens(_) => Self::Tokens(number as u64),
            Self::Millis(_) => Self::Millis(number as u64),
        })
    }

    fn whole(self) -> u64 {
        match self {
            Self::Count(count) => u64::from(count),
            Self::Dollars(usd) => usd as u64,
            Self::Tokens(whole) | Self::Millis(whole) => whole,
        }
    }

    fn count(self) -> u32 {
        u32::try_from(self.whole()).unwrap_or(u32::MAX)
    }

    /// Returns a value for `ralph set` that is at least twice this maximum and more than `used`.
    fn raised_above(self, used: Self) -> String {
        match self {
            Self::Count(max) => max
                .saturating_mul(2)
                .max(used.count().saturating_add(1))
                .to_string(),
            Self::Dollars(max) => {
                let cents = (max.max(used.number()) * 200.0).ceil();
                format!("{:.2}", cents / 100.0)
            }
            Self::Tokens(max) => max.max(used.whole()).saturating_mul(2).to_string(),
            Self::Millis(max) => match (max / 500).max(used.whole() / 1000 + 1) {
                hours if hours.is_multiple_of(3600) => format!("{}h", hours / 3600),
                minutes if minutes.is_multiple_of(60) => format!("{}m", minutes / 60),
                seconds => format!("{seconds}s"),
            },
        }
    }
}

/// Formats the amount for people: `$0.6000`, `12.3k`, `5m`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match *self {
            Self::Count(count) => count.to_string(),
            Self::Dollars(usd) => dollars(usd),
            Self::Tokens(count) => thousands(count),
            Self::Millis(ms) => duration(ms),
        })
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Count(count) => serializer.serialize_u32(count),
            Self::Dollars(usd) => serializer.serialize_f64(usd),
            Self::Tokens(whole) | Self::Millis(whole) => serializer.serialize_u64(whole),
        }
    }
}

/// A change as the journal and the inbox store it: the limit's key, and a number in the limit's
/// unit.
#[derive(Serialize, Deserialize)]
struct JournaledChange<T> {
    name: String,
    value: Option<T>,
}

impl Serialize for LimitChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JournaledChange {
            name: self.limit.row().key.unwrap_or_default().to_owned(),
            value: self.max,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LimitChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let change = JournaledChange::<f64>::deserialize(deserializer)?;
        let limit = Limit::from_key(&change.name)
            .ok_or_else(|| D::Error::custom(format!("unknown limit {:?}", change.name)))?;
        let amount = |number| {
            let amount = limit.row().zero.with_number(number);
            amount
                .ok_or_else(|| D::Error::custom(format!("{number} is not a valid {}", change.name)))
        };
        let max = change.value.map(amount).transpose()?;
        Ok(Self { limit, max })
    }
}

impl State {
    /// Returns the first limit that is reached; `None` if another iteration may start.
    pub(crate) fn reached_limit(&self) -> Option<Limit> {
        let is_reached = |row: &&LimitRow| {
            row.max(&self.plan.limits)
                .is_some_and(|max| (row.used)(self) >= max)
        };
        LIMITS.iter().find(is_reached).map(|row| row.limit)
    }

    /// Returns whether an agent is running that can use up a budget of the loop.
    pub(crate) fn has_running_budget(&self) -> bool {
        let limits = &self.plan.limits;
        matches!(self.phase, Phase::Running { started: true, .. })
            && (limits.cost_usd.is_some() || limits.tokens.is_some())
    }

    /// Returns the budget that is used up if the newest iteration has spent this much so far, and
    /// how much of it is used; `None` if the agent may continue.
    pub(crate) fn exhausted_budget(
        &self,
        cost_usd: Option<f64>,
        tokens: Option<Tokens>,
    ) -> Option<(Limit, Amount)> {
        let cost = self.cost_usd + cost_usd.unwrap_or(0.0);
        let tokens = tokens.unwrap_or_default().total();
        let used = [
            (Limit::Cost, Amount::Dollars(cost)),
            (
                Limit::Tokens,
                Amount::Tokens(self.tokens.total().saturating_add(tokens)),
            ),
        ];
        used.into_iter().find(|(limit, used)| {
            let max = limit.row().max(&self.plan.limits);
            max.is_some_and(|max| *used >= max)
        })
    }

    /// Returns the used amount of a limit and its maximum: `$0.6000 of $0.5000`, or `unknown cost
    /// of $0.5000`.
    pub(crate) fn usage_of(&self, limit: Limit) -> String {
        let row = limit.row();
        let used = match (row.used)(self) {
            _ if limit == Limit::Cost => self.cost_label(),
            used => used.to_string(),
        };
        match row.max(&self.plan.limits) {
            Some(max) => format!("{used} of {max}"),
            None => used,
        }
    }

    /// Returns the used amount of each budget, for the prompt: `$0.6000 of $2.00`, `5.0k of 9.0k
    /// tokens`.
    pub(crate) fn used_budgets(&self) -> impl Iterator<Item = String> {
        LIMITS
            .iter()
            .filter(|row| row.is_budget && row.max(&self.plan.limits).is_some())
            .map(|row| {
                format!("{} {}", self.usage_of(row.limit), row.noun)
                    .trim_end()
                    .to_owned()
            })
    }

    /// Returns the `ralph set` arguments that raise each limit a resumed loop would run into at
    /// once, to at least twice its value; `None` if there is none.
    pub(crate) fn raised_limits(&self) -> Option<String> {
        let raised = LIMITS.iter().filter_map(|row| {
            let key = row.key.filter(|_| !row.is_reset_by_resume)?;
            let (max, used) = (row.max(&self.plan.limits)?, (row.used)(self));
            (used >= max).then(|| format!("{key}={}", max.raised_above(used)))
        });
        let raised: Vec<String> = raised.collect();
        (!raised.is_empty()).then(|| raised.join(" "))
    }

    pub(super) fn change_limit(&mut self, change: &LimitChange) {
        change.limit.row().set(&mut self.plan.limits, change.max);
    }
}
