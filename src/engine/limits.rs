//! The limits that end a loop: one table with each limit's key, usage, unit and texts.
//!
//! Everything that lists limits (flags, `ralph set`, prompts, status, endings) iterates over
//! [`LIMITS`]. A new limit is a variant and a row here, a field of [`Limits`] and a row in
//! `presets/settings.toml`.

use super::format::{dollars, duration, thousands};
use super::outcome::StopReason;
use super::state::State;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A limit that can end a loop.
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
    /// Iterations that count.
    Iterations,
    /// How often in a row a client lets ralph hold back an agent that uses no tool in between.
    Blocks,
}

/// How much of something that a limit bounds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Amount {
    /// A small whole number.
    Count(u32),
    /// Dollars.
    Dollars(f64),
    /// Tokens.
    Tokens(u64),
    /// Milliseconds.
    Millis(u64),
}

/// A limit that `ralph set` changes while the loop exists.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitChange {
    /// The limit.
    pub limit: Limit,
    /// The new maximum; `None` removes the limit.
    pub max: Option<Amount>,
}

/// The maximum of each limit of a loop and of its iterations. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Iterations that count.
    pub(crate) iterations: Option<u32>,
    /// Dollars, as the agent reports them.
    pub(crate) cost_usd: Option<f64>,
    /// Whether the loop continues under a cost limit although the cost is unknown.
    #[serde(default)]
    pub(crate) unknown_cost: bool,
    /// Tokens, as the agent reports them.
    #[serde(default)]
    pub(crate) tokens: Option<u64>,
    /// Active time of the whole loop.
    pub(crate) time_ms: Option<u64>,
    /// Failures in a row.
    pub(crate) failures: Option<u32>,
    /// Time of one iteration.
    pub(crate) iteration_ms: Option<u64>,
    /// Time without output in one iteration.
    pub(crate) inactivity_ms: Option<u64>,
    /// How often in a row a session's client lets ralph hold back an agent that uses no tool in
    /// between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<u32>,
}

/// A row of the table of limits.
pub(crate) struct LimitRow {
    pub(crate) limit: Limit,
    /// The name in JSON and in messages.
    pub(crate) name: &'static str,
    /// The setting, which is also the flag and the name in `ralph set`; `None` if users cannot set
    /// it.
    pub(crate) key: Option<&'static str>,
    /// The noun after an amount, if its format has no unit.
    pub(crate) noun: &'static str,
    /// Zero, in the limit's unit.
    pub(crate) zero: Amount,
    /// Whether it is a budget: prompts and endings say how much of it is used.
    pub(crate) is_budget: bool,
    /// Whether resuming the loop resets what is used.
    pub(crate) is_reset_by_resume: bool,
    /// The reason when the limit ends the loop.
    pub(crate) stop_reason: StopReason,
    /// The ending as people read it.
    reached: &'static str,
    /// A clause about a loop that has reached the limit.
    pub(crate) exhausted: &'static str,
    used: fn(&State) -> Amount,
    max: fn(&Limits) -> Option<Amount>,
    set: fn(&mut Limits, Option<Amount>),
}

/// All limits, in the order in which they are tested.
pub(crate) const LIMITS: [LimitRow; 6] = [
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
        limit: Limit::Blocks,
        name: "blocks",
        key: None,
        noun: "",
        zero: Amount::Count(0),
        is_budget: false,
        is_reset_by_resume: false,
        stop_reason: StopReason::BlockCap,
        reached: "the client ends a session whose agent uses no tools",
        exhausted: "its client does not hold the session any longer",
        used: |state| Amount::Count(state.idle_blocks()),
        max: |limits| limits.blocks.map(Amount::Count),
        set: |limits, max| limits.blocks = max.map(Amount::count),
    },
];

impl Limit {
    /// The limit's row in the table.
    pub(crate) fn row(self) -> &'static LimitRow {
        LIMITS
            .iter()
            .find(|row| row.limit == self)
            .expect("every limit has a row")
    }

    /// The limit that a setting of this name sets.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        let row = LIMITS.iter().find(|row| row.key == Some(key))?;
        Some(row.limit)
    }

    /// The name used in JSON and in messages.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The ending at this limit, for people.
    pub(super) fn describe_ending(self, success: bool) -> &'static str {
        if success {
            "ran to its iteration limit, checks green"
        } else {
            self.row().reached
        }
    }
}

impl LimitRow {
    /// The maximum that these limits set; `None` means no limit.
    pub(crate) fn max(&self, limits: &Limits) -> Option<Amount> {
        (self.max)(limits)
    }

    /// Sets the maximum; `None` means no limit.
    pub(crate) fn set(&self, limits: &mut Limits, max: Option<Amount>) {
        (self.set)(limits, max);
    }
}

impl Amount {
    /// The number without its unit: dollars, milliseconds or a count.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Count(count) => f64::from(count),
            Self::Dollars(usd) => usd,
            Self::Tokens(whole) | Self::Millis(whole) => whole as f64,
        }
    }

    /// This number in the same unit.
    fn with_number(self, number: f64) -> Self {
        match self {
            Self::Count(_) => Self::Count(number as u32),
            Self::Dollars(_) => Self::Dollars(number),
            Self::Tokens(_) => Self::Tokens(number as u64),
            Self::Millis(_) => Self::Millis(number as u64),
        }
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

    /// At least twice this maximum, and more than `used`, as an argument of `ralph set`.
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

/// A change as the journal and the inbox contain it: the limit's key, and a number in its unit.
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
        let max = change
            .value
            .map(|number| limit.row().zero.with_number(number));
        Ok(Self { limit, max })
    }
}

impl State {
    /// The limit that is reached, if any. No iteration starts beyond a limit.
    pub(crate) fn reached_limit(&self) -> Option<Limit> {
        let is_reached = |row: &&LimitRow| {
            row.max(&self.plan.limits)
                .is_some_and(|max| (row.used)(self) >= max)
        };
        LIMITS.iter().find(is_reached).map(|row| row.limit)
    }

    /// How much of a limit is used: `$0.6000 of $0.5000`.
    pub(crate) fn usage_of(&self, limit: Limit) -> String {
        let row = limit.row();
        let used = (row.used)(self);
        match row.max(&self.plan.limits) {
            Some(max) => format!("{used} of {max}"),
            None => used.to_string(),
        }
    }

    /// How much of each budget is used, for the agent: `$0.60 of $2.00`, `5.0k of 9.0k tokens`.
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

    /// The `ralph set` argument that raises a reached limit, to at least twice its value. `None` if
    /// raising the limit is not what lets the loop continue.
    pub(crate) fn raised_limit(&self, limit: Limit) -> Option<String> {
        let row = limit.row();
        let key = row.key.filter(|_| !row.is_reset_by_resume)?;
        let raised = row.max(&self.plan.limits)?.raised_above((row.used)(self));
        Some(format!("{key}={raised}"))
    }

    pub(super) fn change_limit(&mut self, change: &LimitChange) {
        change.limit.row().set(&mut self.plan.limits, change.max);
    }
}
