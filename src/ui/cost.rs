//! What a loop cost, as far as anybody knows.

use crate::engine::format::{dollars, thousands};
use crate::engine::{Act, State, Tally};

/// In words; none if nobody knows.
pub fn cost(state: &State) -> Option<String> {
    let usd = dollars(state.cost_usd);
    match known_cost(state) {
        Some(_) => Some(usd),
        None => (state.cost_usd > 0.0).then(|| format!("at least {usd}")),
    }
}

/// In words, with what it may cost.
pub fn cost_of_limit(state: &State) -> Option<String> {
    let max = state
        .plan
        .limits
        .cost_usd
        .map(|max| format!(" of {}", dollars(max)));
    cost(state).map(|cost| cost + &max.unwrap_or_default())
}

/// What the running iteration has spent and used so far.
#[derive(Default)]
pub struct Meter(Tally);

impl Meter {
    /// Counts what an act says of that.
    pub fn count(&mut self, act: &Act<'_>) {
        if matches!(act, Act::Cost(_) | Act::Used { .. }) {
            self.0.count(act);
        }
    }

    /// Dollars and tokens of the loop by now, in words.
    pub fn words(&self, state: &State) -> Vec<String> {
        let plan = &state.plan;
        let model = state.agent().model.as_deref().unwrap_or_default();
        let spent = state.cost_usd + self.0.cost(&plan.prices, model).unwrap_or(0.0);
        let max = plan
            .limits
            .cost_usd
            .map(|max| format!(" of {}", dollars(max)));
        let cost =
            (spent > 0.0 || max.is_some()).then(|| dollars(spent) + &max.unwrap_or_default());
        let used = state.tokens.total() + self.0.tokens().unwrap_or_default().total();
        let max = plan
            .limits
            .tokens
            .map(|max| format!(" of {}", thousands(max)));
        let tokens = (used > 0 || max.is_some())
            .then(|| format!("{}{} tokens", thousands(used), max.unwrap_or_default()));
        cost.into_iter().chain(tokens).collect()
    }
}

/// Dollars spent, or none if nobody knows: an agent that cannot tell has told nothing while it works.
pub fn known_cost(state: &State) -> Option<f64> {
    let told =
        state.plan.agent.reports_cost || state.recent.iter().any(|last| last.cost_usd.is_some());
    state
        .known_cost()
        .filter(|usd| told || *usd > 0.0 || state.iteration == 0)
}
