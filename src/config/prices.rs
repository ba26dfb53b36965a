//! What do models cost? A table that comes with ralph, and what the user adds to it.

use super::{Stack, Wrong, wrong};
use crate::engine::usage::{Price, Prices};
use serde_json::Value;
use std::collections::BTreeMap;

/// All prices.
pub fn prices(stack: &Stack, own: &BTreeMap<String, Value>) -> Result<Prices, Wrong> {
    let mut all = known();
    for (model, price) in own {
        match serde_json::from_value::<Price>(price.clone()) {
            Ok(price) => all.0.insert(model.clone(), price),
            Err(error) => {
                return wrong(
                    format!("{}.{model}: {error}", stack.name("prices")),
                    "dollars for a million tokens, as in { \"input\": 1.25, \"output\": 10 }",
                );
            }
        };
    }
    Ok(all)
}

fn known() -> Prices {
    toml::from_str(include_str!("../../presets/prices.toml"))
        .expect("the embedded prices are right")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::usage::Tokens;

    #[test]
    fn every_price_that_comes_with_ralph_is_sound() {
        for (model, price) in known().0 {
            let read = price.cache_read.unwrap_or(price.input);
            assert!(
                read <= price.input && price.input < price.output,
                "{model}: {price:?}"
            );
        }
    }

    #[test]
    fn a_dated_model_costs_what_its_family_does_and_an_unknown_one_nobody_knows() {
        let tokens = Tokens {
            input: 1_000_000,
            ..Tokens::default()
        };
        for (model, usd) in [
            ("gpt-5.5", Some(5.0)),
            ("gpt-5.5-2026-04-01", Some(5.0)),
            ("openai/gpt-5.5-pro", Some(30.0)),
            ("claude-opus-5-5", Some(4.0)),
            ("gpt-6-sol", Some(2.0)),
            ("gpt-6-sol-fast", None),
            ("claude-opus-4-1-20250805", Some(15.0)),
            ("gpt-5.5-turbo", None),
            ("mock-model", None),
        ] {
            assert_eq!(known().cost(model, &tokens), usd, "{model}");
        }
    }
}
