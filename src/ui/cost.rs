//! Formats a loop's cost and token usage.

use crate::engine::format::{dollars, thousands};
use crate::engine::{Act, State, Tally};

/// Formats the loop's cost and its limit: `$1.20 of $5.00`. Returns `None` if the cost is unknown.
pub(super) fn cost_of_limit(state: &State) -> Option<String> {
    let max = state
        .plan
        .limits
        .cost_usd
        .map(|max| format!(" of {}", dollars(max)));
    state
        .cost_text()
        .map(|cost| cost + &max.unwrap_or_default())
}

/// The cost and tokens of the running iteration so far. The journal records them only when the
/// iteration ends.
#[derive(Default)]
pub(super) struct IterationSpend(Tally);

impl IterationSpend {
    /// Adds the cost or usage that `act` reports.
    pub(super) fn add(&mut self, act: &Act<'_>) {
        if matches!(act, Act::Cost(_) | Act::TokensUsed { .. }) {
            self.0.add(act);
        }
    }

    /// Returns the loop's dollars and tokens, including the running iteration. The dollars are `None`
    /// if they are unknown.
    pub(super) fn totals(&self, state: &State) -> (Option<f64>, u64) {
        let plan = &state.plan;
        let model = state.agent().model.as_deref().unwrap_or_default();
        let spent = state.cost_usd + self.0.cost(&plan.prices, model).unwrap_or(0.0);
        let has_max = plan.limits.cost_usd.is_some();
        let is_known = spent > 0.0 || (has_max && state.reported_cost().is_some());
        let used = state.tokens.total() + self.0.tokens().unwrap_or_default().total();
        (is_known.then_some(spent), used)
    }

    /// Formats the loop's cost and tokens, including the running iteration.
    pub(super) fn describe(&self, state: &State) -> Vec<String> {
        let plan = &state.plan;
        let (spent, used) = self.totals(state);
        let max = plan
            .limits
            .cost_usd
            .map(|max| format!(" of {}", dollars(max)));
        let cost = spent.map(|spent| dollars(spent) + &max.unwrap_or_default());
        let max = plan
            .limits
            .tokens
            .map(|max| format!(" of {}", thousands(max)));
        let tokens = (used > 0 || max.is_some())
            .then(|| format!("{}{} tokens", thousands(used), max.unwrap_or_default()));
        cost.into_iter().chain(tokens).collect()
    }
}
