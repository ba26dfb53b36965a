//! What an iteration that a crash cut short had cost by then: its log is read once more.

use super::Runner;
use crate::engine::Tally;
use crate::engine::usage::Tokens;
use std::fs::File;
use std::io::Read;

impl Runner<'_> {
    /// Dollars and tokens, as far as the agent had told.
    pub(super) fn recount(&self) -> (Option<f64>, Option<Tokens>) {
        let by_hand = self.task.look(None).cost_usd;
        let (state, agent) = (&self.state, self.state.agent());
        if !agent.dialect.is_stream() {
            return (by_hand, None);
        }
        let mut tally = Tally::default();
        let mut reader =
            self.habits[state.using].reader(&state.plan.workspace, &state.sessions, String::new);
        let log = self.dir.iteration(state.iteration).join("output.log");
        // The end of a long log lies beside it until the iteration is over.
        for path in [log.clone(), log.with_extension("tail")] {
            let Ok(mut log) = File::open(path) else {
                continue;
            };
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = log.read(&mut buffer) {
                reader.feed(&buffer[..count], &mut |act| {
                    tally.count(&act);
                });
            }
        }
        let told = tally.cost(
            &state.plan.prices,
            agent.model.as_deref().unwrap_or_default(),
        );
        let cost_usd = by_hand.map(|usd| usd + told.unwrap_or(0.0)).or(told);
        (cost_usd, tally.tokens())
    }
}
