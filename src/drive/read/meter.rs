//! What an agent has counted by now. Figures that count from its start are told as what came since.

use super::Tell;
use crate::engine::Act;
use crate::engine::tokens::Tokens;
use std::collections::BTreeMap;

/// More models than these are not told apart.
const MODELS_MAX: usize = 64;

/// Tokens and dollars that were told by now.
#[derive(Default)]
pub struct Meter {
    told: BTreeMap<String, Tokens>,
    cost_usd: f64,
}

impl Meter {
    /// A model took so many tokens more.
    pub fn more(&mut self, model: &str, tokens: Tokens, tell: &mut Tell<'_>) {
        if tokens == Tokens::default() {
            return;
        }
        let known = self.told.len() < MODELS_MAX || self.told.contains_key(model);
        *self.told.entry(if known { model } else { "" }.to_owned()).or_default() += tokens;
        tell(Act::Used { model: model.into(), tokens });
    }

    /// A model has taken so many tokens since the start.
    pub fn of_model(&mut self, model: &str, all: Tokens, tell: &mut Tell<'_>) {
        let told = self.told.get(model).copied().unwrap_or_default();
        self.more(model, beyond(all, told), tell);
    }

    /// All models together have taken so many tokens since the start; this one took what is new.
    pub fn of_all(&mut self, model: &str, all: Tokens, tell: &mut Tell<'_>) {
        let mut told = Tokens::default();
        self.told.values().for_each(|tokens| told += *tokens);
        self.more(model, beyond(all, told), tell);
    }

    /// So many dollars were spent since the start.
    pub fn cost(&mut self, total_usd: f64, tell: &mut Tell<'_>) {
        if total_usd.is_finite() {
            tell(Act::Cost((total_usd - self.cost_usd).max(0.0)));
            self.cost_usd = self.cost_usd.max(total_usd);
        }
    }
}

fn beyond(all: Tokens, told: Tokens) -> Tokens {
    Tokens {
        input: all.input.saturating_sub(told.input),
        cache_read: all.cache_read.saturating_sub(told.cache_read),
        cache_write: all.cache_write.saturating_sub(told.cache_write),
        output: all.output.saturating_sub(told.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(input: u64) -> Tokens {
        Tokens { input, ..Tokens::default() }
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
        let expected = [("a", 10.0), ("a", 5.0), ("b", 3.0), ("usd", 0.5), ("usd", 0.25)];
        assert_eq!(told, expected.map(|(name, count)| (name.to_owned(), count)));
    }
}
