//! What a loop cost, as far as anybody knows.

use crate::engine::State;
use crate::engine::words::dollars;

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
    let max = state.plan.limits.cost_usd.map(|max| format!(" of {}", dollars(max)));
    cost(state).map(|cost| cost + &max.unwrap_or_default())
}

/// Dollars spent, or none if nobody knows: an agent that cannot tell has told nothing while it works.
pub fn known_cost(state: &State) -> Option<f64> {
    let told = state.plan.agent.reports_cost || state.recent.iter().any(|last| last.cost_usd.is_some());
    state.known_cost().filter(|usd| told || *usd > 0.0 || state.iteration == 0)
}
