//! Converts an agent's usage figures, which may be increments or running totals, to increments.

use super::ActSink;
use crate::engine::Act;
use crate::engine::usage::{SessionUsage, Tokens};
use std::collections::BTreeMap;

/// Maximum number of models counted separately.
const MODELS_MAX: usize = 64;

/// The tokens and dollars that have been emitted so far.
#[derive(Default)]
pub(super) struct UsageMeter {
    emitted: BTreeMap<String, Tokens>,
    total_cost_usd: f64,
    /// Tokens from earlier iterations that the agent's totals include and that have not been
    /// subtracted yet.
    baseline: Tokens,
    /// Sessions that the agent may resume.
    sessions: Vec<SessionUsage>,
}

impl UsageMeter {
    /// Creates a meter for an agent that may resume one of `sessions`.
    pub(super) fn resuming(sessions: &[SessionUsage]) -> Self {
        Self {
            sessions: sessions.to_vec(),
            ..Self::default()
        }
    }

    /// Records the session in which the agent works. If the session is resumed, the agent's totals
    /// include its earlier usage, which is not emitted again.
    pub(super) fn start_session(&mut self, id: &str) {
        if let Some(index) = self.sessions.iter().position(|session| session.id == id) {
            let earlier = self.sessions.remove(index);
            (self.baseline, self.total_cost_usd) = (earlier.tokens, earlier.cost_usd);
        }
    }

    /// Adds the tokens that a model has used since its last report.
    pub(super) fn add(&mut self, model: &str, tokens: Tokens, emit: &mut ActSink<'_>) {
        if tokens == Tokens::default() {
            return;
        }
        self.record(model, tokens);
        emit(Act::TokensUsed {
            model: model.into(),
            tokens,
        });
    }

    /// Sets the total tokens that a model has used since the start of the run.
    pub(super) fn set_model_total(&mut self, model: &str, total: Tokens, emit: &mut ActSink<'_>) {
        let emitted = self.emitted.get(model).copied().unwrap_or_default();
        self.add_above_baseline(model, total.saturating_sub(emitted), emit);
    }

    /// Sets the total tokens that all models have used since the start of the run. The increase is
    /// attributed to `model`.
    pub(super) fn set_total(&mut self, model: &str, total: Tokens, emit: &mut ActSink<'_>) {
        let mut emitted = Tokens::default();
        self.emitted.values().for_each(|tokens| emitted += *tokens);
        self.add_above_baseline(model, total.saturating_sub(emitted), emit);
    }

    /// Adds the tokens that exceed the remaining baseline.
    fn add_above_baseline(&mut self, model: &str, tokens: Tokens, emit: &mut ActSink<'_>) {
        let new = tokens.saturating_sub(self.baseline);
        let earlier = tokens.saturating_sub(new);
        self.baseline = self.baseline.saturating_sub(earlier);
        self.record(model, earlier);
        self.add(model, new, emit);
    }

    fn record(&mut self, model: &str, tokens: Tokens) {
        let known = self.emitted.len() < MODELS_MAX || self.emitted.contains_key(model);
        *self
            .emitted
            .entry(if known { model } else { "" }.to_owned())
            .or_default() += tokens;
    }

    /// Sets the total dollars spent since the start of the run.
    pub(super) fn set_total_cost(&mut self, total_usd: f64, emit: &mut ActSink<'_>) {
        if total_usd.is_finite() {
            emit(Act::Cost((total_usd - self.total_cost_usd).max(0.0)));
            self.total_cost_usd = self.total_cost_usd.max(total_usd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(input: u64) -> Tokens {
        Tokens {
            input,
            ..Tokens::default()
        }
    }

    #[test]
    fn usage_is_never_emitted_twice() {
        let mut meter = UsageMeter::default();
        let mut emitted = Vec::new();
        let mut emit = |act: Act<'_>| match act {
            Act::TokensUsed { model, tokens } => {
                emitted.push((model.into_owned(), tokens.input as f64));
            }
            Act::Cost(usd) => emitted.push(("usd".to_owned(), usd)),
            other => panic!("{other:?}"),
        };
        meter.add("a", input(10), &mut emit);
        meter.set_model_total("a", input(15), &mut emit);
        meter.set_model_total("a", input(15), &mut emit);
        meter.set_total("b", input(18), &mut emit);
        meter.set_total("b", input(1), &mut emit);
        meter.set_total_cost(0.5, &mut emit);
        meter.set_total_cost(0.75, &mut emit);
        meter.set_total_cost(f64::NAN, &mut emit);
        let expected = [
            ("a", 10.0),
            ("a", 5.0),
            ("b", 3.0),
            ("usd", 0.5),
            ("usd", 0.25),
        ];
        assert_eq!(
            emitted,
            expected.map(|(name, count)| (name.to_owned(), count))
        );
    }

    #[test]
    fn a_resumed_session_counts_from_its_earlier_total() {
        let sessions = [SessionUsage {
            id: "s".into(),
            cost_usd: 0.5,
            tokens: input(100),
        }];
        for (id, expected) in [("s", [20.0, 30.0, 0.25]), ("t", [20.0, 130.0, 0.75])] {
            let mut meter = UsageMeter::resuming(&sessions);
            let mut emitted = Vec::new();
            let mut emit = |act: Act<'_>| match act {
                Act::TokensUsed { tokens, .. } => emitted.push(tokens.input as f64),
                Act::Cost(usd) => emitted.push(usd),
                other => panic!("{other:?}"),
            };
            meter.start_session(id);
            meter.add("a", input(20), &mut emit);
            meter.set_model_total("a", input(70), &mut emit);
            meter.set_model_total("b", input(80), &mut emit);
            meter.set_total_cost(0.75, &mut emit);
            let tokens: f64 = emitted[1..emitted.len() - 1].iter().sum();
            let sums = [emitted[0], tokens, emitted[emitted.len() - 1]];
            assert_eq!(
                format!("{sums:?}"),
                format!("{expected:?}"),
                "{id}: {emitted:?}"
            );
        }
    }
}
