//! Loads model prices: the embedded table, extended by the setting `prices`.

use super::{ConfigError, LayerStack, config_error};
use crate::engine::usage::{Price, Prices};
use serde_json::Value;
use std::collections::BTreeMap;

/// Loads the embedded prices, extended and overridden by `custom`.
pub(super) fn load_prices(
    stack: &LayerStack,
    custom: &BTreeMap<String, Value>,
) -> Result<Prices, ConfigError> {
    let mut all = embedded_prices();
    for (model, price) in custom {
        match serde_json::from_value::<Price>(price.clone()) {
            Ok(price) => all.0.insert(model.clone(), price),
            Err(error) => {
                return config_error(
                    format!("{}.{model}: {error}", stack.display_name("prices")),
                    "set dollars per million tokens, as in { \"input\": 1.25, \"output\": 10 }",
                );
            }
        };
    }
    Ok(all)
}

fn embedded_prices() -> Prices {
    toml::from_str(include_str!("../../presets/prices.toml"))
        .expect("the embedded prices are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::usage::Tokens;

    #[test]
    fn every_embedded_price_is_plausible() {
        for (model, price) in embedded_prices().0 {
            let read = price.cache_read.unwrap_or(price.input);
            assert!(
                read <= price.input && price.input < price.output,
                "{model}: {price:?}"
            );
        }
    }

    #[test]
    fn a_dated_model_has_the_price_of_its_family_and_an_unknown_one_has_none() {
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
            assert_eq!(embedded_prices().cost(model, &tokens), usd, "{model}");
        }
    }
}
