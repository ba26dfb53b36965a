//! What tokens are, and what they cost where an agent counts them and names no dollars.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Tokens that a model read and wrote. The kinds do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Read, and not from a cache.
    pub input: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
    /// Written, thoughts included.
    pub output: u64,
}

impl Tokens {
    /// All of them.
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
    /// What is in these and not in those, kind by kind.
    pub fn beyond(self, those: Self) -> Self {
        Self {
            input: self.input.saturating_sub(those.input),
            cache_read: self.cache_read.saturating_sub(those.cache_read),
            cache_write: self.cache_write.saturating_sub(those.cache_write),
            output: self.output.saturating_sub(those.output),
        }
    }
}

/// What an agent's session had taken by the end of its last iteration. An agent that goes on with it counts from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// What the agent calls it.
    pub id: String,
    /// Dollars.
    pub cost_usd: f64,
    /// Tokens.
    pub tokens: Tokens,
}

/// Dollars for a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache; as `input` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Written to a cache; as `input` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Prices by model. A name that ends in `*` stands for all that begin so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// What these tokens of this model cost, in dollars; none if nobody knows.
    pub fn cost(&self, model: &str, tokens: &Tokens) -> Option<f64> {
        let price = self.of(model)?;
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

    /// A model's price: by its whole name, else by the longest beginning of it. What stands before a slash is who
    /// serves it, and counts where there is a price for just that.
    pub fn of(&self, model: &str) -> Option<&Price> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        [model, bare]
            .into_iter()
            .find_map(|name| self.0.get(name).or_else(|| self.by_beginning(name)))
    }

    fn by_beginning(&self, model: &str) -> Option<&Price> {
        let fits = |name: &&String| {
            name.strip_suffix('*')
                .is_some_and(|beginning| model.starts_with(beginning))
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
    fn the_nearest_name_has_the_price() {
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
                prices().of(model).map(|price| price.input),
                input,
                "{model}"
            );
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
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
