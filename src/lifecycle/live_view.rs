//! Adds to a loop's state what its journal records only when the iteration ends: the time since the
//! last event, and what the running agent has spent so far.

use crate::engine::{Liveness, Now, Phase, State, Tally};
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::store::{LoopDir, LoopView};
use jiff::Timestamp;

/// Returns the view with its state as of now. The state of a loop that is not running does not
/// change.
pub(crate) fn live(dir: &LoopDir, mut view: LoopView, liveness: Liveness) -> LoopView {
    if liveness == Liveness::Running && view.state.outcome().is_none() {
        add_time(&mut view.state);
        add_spending(dir, &mut view.state);
    }
    view
}

/// Adds the wall-clock time since the last event: between events, the loop's own clock is known
/// only to its runner.
fn add_time(state: &mut State) {
    let wall_ms = Timestamp::now().as_millisecond().max(state.wall_ms);
    let delta_ms = wall_ms.abs_diff(state.wall_ms);
    state.pass_time(Now { wall_ms, delta_ms });
}

/// Adds the cost and the tokens in the running iteration's activity.
fn add_spending(dir: &LoopDir, state: &mut State) {
    let is_running = matches!(
        state.phase,
        Phase::Running { started: true, .. } | Phase::Killing { .. }
    );
    let reader = is_running.then(|| ActivityReader::open(&dir.activity(state.iteration)));
    let Some(mut reader) = reader.flatten() else {
        return;
    };
    let mut tally = Tally::default();
    let mut is_cut = false;
    let read = reader.read(&mut |item| match item {
        ActivityItem::Act { act, .. } => drop(tally.add(&act)),
        ActivityItem::Dropped(_) => is_cut = true,
    });
    if read.is_err() {
        return;
    }
    let model = state.agent().model.as_deref().unwrap_or_default();
    let cost = tally.cost(&state.plan.prices, model);
    state.add_usage(cost, tally.tokens());
    // The dropped acts may have reported a cost, too.
    state.cost_unknown |= is_cut;
}
