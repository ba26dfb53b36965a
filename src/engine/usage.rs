//! Counts tokens and prices them, for agents that report tokens but no cost.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Tokens used by a model. The kinds do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input tokens that were not read from the cache.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
}

impl Tokens {
    /// Returns the sum of all kinds of tokens.
    pub fn total(&self) -> u64 {
        let all = [self.input, self.cache_read, self.cache_write, self.output];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.output = self.output.saturating_add(more.output);
    }
}

impl Tokens {
    /// Subtracts each kind separately. A difference below 0 becomes 0.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            output: self.output.saturating_sub(other.output),
        }
    }
}

/// The usage of an agent's session up to the end of its last iteration. An agent that resumes the
/// session may report totals that include this usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionUsage {
    /// The session's ID, assigned by the agent.
    pub(crate) id: String,
    /// Total dollars that the session has spent.
    pub(crate) cost_usd: f64,
    /// Total tokens that the session has used.
    pub(crate) tokens: Tokens,
}

/// A model's prices, in dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Price {
    /// Price of input tokens.
    pub(crate) input: f64,
    /// Price of output tokens.
    pub(crate) output: f64,
    /// Price of input tokens read from the cache; `None` means the same as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<f64>,
    /// Price of input tokens written to the cache; `None` means the same as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
}

/// Rounds dollars to billionths, so that sums do not show the errors of binary fractions, as in
/// 0.7799999999999999.
pub(super) fn rounded_usd(usd: f64) -> f64 {
    let rounded = (usd * 1e9).round() / 1e9;
    if rounded.is_finite() { rounded } else { usd }
}

/// Prices by model. A key that ends in `*` matches every model whose name begins with the text
/// before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Prices(pub(crate) BTreeMap<String, Price>);

impl Prices {
    /// Returns the cost of `tokens`, in dollars; `None` if the model has no price.
    pub(crate) fn cost(&self, model: &str, tokens: &Tokens) -> Option<f64> {
        let price = self.price_of(model)?;
        let (read, write) = (
            price.cache_read.unwrap_or(price.input),
            price.cache_write.unwrap_or(price.input),
        );
        let parts = [
            (tokens.input, price.input),
            (tokens.cache_read, read),
            (tokens.cache_write, write),
            (tokens.output, price.output),
        ];
        Some(
            parts
                .iter()
                .map(|(count, usd)| *count as f64 * usd)
                .sum::<f64>()
                / 1e6,
        )
    }

    /// Returns a model's price, by its full name or else by the longest matching prefix; `None` if
    /// the model has no price. For `provider/model` without a price, looks up `model`.
    pub(crate) fn price_of(&self, model: &str) -> Option<&Price> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        [model, bare]
            .into_iter()
            .find_map(|name| self.0.get(name).or_else(|| self.by_prefix(name)))
    }

    fn by_prefix(&self, model: &str) -> Option<&Price> {
        let fits = |name: &&String| {
            name.strip_suffix('*')
                .is_some_and(|prefix| model.starts_with(prefix))
        };
        self.0
            .iter()
            .filter(|(name, _)| fits(name))
            .max_by_key(|(name, _)| name.len())
            .map(|(_, price)| price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        let price = |input, output| Price {
            input,
            output,
            ..Price::default()
        };
        let all = [
            ("small*", price(1.0, 2.0)),
            ("small-fast", price(3.0, 4.0)),
            ("home/small", price(0.0, 0.0)),
        ];
        Prices(
            all.into_iter()
                .map(|(name, price)| (name.to_owned(), price))
                .collect(),
        )
    }

    #[test]
    fn the_most_specific_name_sets_the_price() {
        for (model, input) in [
            ("small", Some(1.0)),
            ("small-2026-01-01", Some(1.0)),
            ("small-fast", Some(3.0)),
            ("other/small-fast", Some(3.0)),
            ("home/small", Some(0.0)),
            ("large", None),
            ("", None),
        ] {
            assert_eq!(
                prices().price_of(model).map(|price| price.input),
                input,
                "{model}"
            );
        }
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let price = Price {
            input: 1.0,
            output: 10.0,
            cache_read: Some(0.1),
            cache_write: None,
        };
        let prices = Prices([("m".to_owned(), price)].into());
        let tokens = Tokens {
            input: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 1_000_000,
            output: 100_000,
        };
        assert_eq!(prices.cost("m", &tokens), Some(3.1));
        assert_eq!(prices.cost("n", &tokens), None);
    }
}
