//! What an agent has counted by now. Figures that count from its start are told as what came since.

use super::Tell;
use crate::engine::Act;
use crate::engine::usage::{Session, Tokens};
use std::collections::BTreeMap;

/// More models than these are not told apart.
const MODELS_MAX: usize = 64;

/// Tokens and dollars that were told by now.
#[derive(Default)]
pub struct Meter {
    told: BTreeMap<String, Tokens>,
    cost_usd: f64,
    /// What its figures hold of iterations before this one, and was not met yet.
    before: Tokens,
    /// Sessions that it may go on with.
    sessions: Vec<Session>,
}

impl Meter {
    /// One that knows what these sessions have taken by now.
    pub fn after(sessions: &[Session]) -> Self {
        Self {
            sessions: sessions.to_vec(),
            ..Self::default()
        }
    }

    /// It works in this session: what was counted for that before is in its figures, and is not told again.
    pub fn session(&mut self, id: &str) {
        if let Some(at) = self.sessions.iter().position(|session| session.id == id) {
            let known = self.sessions.remove(at);
            (self.before, self.cost_usd) = (known.tokens, known.cost_usd);
        }
    }

    /// A model took so many tokens more.
    pub fn more(&mut self, model: &str, tokens: Tokens, tell: &mut Tell<'_>) {
        if tokens == Tokens::default() {
            return;
        }
        self.note(model, tokens);
        tell(Act::Used {
            model: model.into(),
            tokens,
        });
    }

    /// A model has taken so many tokens since the start.
    pub fn of_model(&mut self, model: &str, all: Tokens, tell: &mut Tell<'_>) {
        let told = self.told.get(model).copied().unwrap_or_default();
        self.rest(model, all.beyond(told), tell);
    }

    /// All models together have taken so many tokens since the start; this one took what is new.
    pub fn of_all(&mut self, model: &str, all: Tokens, tell: &mut Tell<'_>) {
        let mut told = Tokens::default();
        self.told.values().for_each(|tokens| told += *tokens);
        self.rest(model, all.beyond(told), tell);
    }

    /// These tokens were not told yet; some of them may have been taken before this iteration.
    fn rest(&mut self, model: &str, new: Tokens, tell: &mut Tell<'_>) {
        let own = new.beyond(self.before);
        let earlier = new.beyond(own);
        self.before = self.before.beyond(earlier);
        self.note(model, earlier);
        self.more(model, own, tell);
    }

    fn note(&mut self, model: &str, tokens: Tokens) {
        let known = self.told.len() < MODELS_MAX || self.told.contains_key(model);
        *self
            .told
            .entry(if known { model } else { "" }.to_owned())
            .or_default() += tokens;
    }

    /// So many dollars were spent since the start.
    pub fn cost(&mut self, total_usd: f64, tell: &mut Tell<'_>) {
        if total_usd.is_finite() {
            tell(Act::Cost((total_usd - self.cost_usd).max(0.0)));
            self.cost_usd = self.cost_usd.max(total_usd);
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
    fn what_was_told_is_not_told_again() {
        let mut meter = Meter::default();
        let mut told = Vec::new();
        let mut tell = |act: Act<'_>| match act {
            Act::Used { model, tokens } => told.push((model.into_owned(), tokens.input as f64)),
            Act::Cost(usd) => told.push(("usd".to_owned(), usd)),
            other => panic!("{other:?}"),
        };
        meter.more("a", input(10), &mut tell);
        meter.of_model("a", input(15), &mut tell);
        meter.of_model("a", input(15), &mut tell);
        meter.of_all("b", input(18), &mut tell);
        meter.of_all("b", input(1), &mut tell);
        meter.cost(0.5, &mut tell);
        meter.cost(0.75, &mut tell);
        meter.cost(f64::NAN, &mut tell);
        let expected = [
            ("a", 10.0),
            ("a", 5.0),
            ("b", 3.0),
            ("usd", 0.5),
            ("usd", 0.25),
        ];
        assert_eq!(told, expected.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn a_session_that_goes_on_counts_from_where_it_was() {
        let sessions = [Session {
            id: "s".into(),
            cost_usd: 0.5,
            tokens: input(100),
        }];
        for (id, expected) in [("s", [20.0, 30.0, 0.25]), ("t", [20.0, 130.0, 0.75])] {
            let mut meter = Meter::after(&sessions);
            let mut told = Vec::new();
            let mut tell = |act: Act<'_>| match act {
                Act::Used { tokens, .. } => told.push(tokens.input as f64),
                Act::Cost(usd) => told.push(usd),
                other => panic!("{other:?}"),
            };
            meter.session(id);
            meter.more("a", input(20), &mut tell);
            meter.of_model("a", input(70), &mut tell);
            meter.of_model("b", input(80), &mut tell);
            meter.cost(0.75, &mut tell);
            let tokens: f64 = told[1..told.len() - 1].iter().sum();
            let sums = [told[0], tokens, told[told.len() - 1]];
            assert_eq!(
                format!("{sums:?}"),
                format!("{expected:?}"),
                "{id}: {told:?}"
            );
        }
    }
}
