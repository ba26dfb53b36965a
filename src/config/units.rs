//! Parses durations (`90`, `90s`, `5m`, `1h30m`), sizes (`64MiB`), backoffs (`1s..300s`), counts and
//! amounts.

use crate::engine::{Amount, Limit};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::str::FromStr;

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub(crate) struct Millis(pub(crate) u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

/// How long to rest after failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackoffRange {
    /// How long to rest after the first failure. Each further failure doubles the time.
    pub(crate) base: Millis,
    /// How long to rest at most after a failure.
    pub(crate) cap: Millis,
}

impl FromStr for Millis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("ms", 1.0),
            ("s", 1000.0),
            ("m", 60_000.0),
            ("h", 3_600_000.0),
            ("d", 86_400_000.0),
            ("", 1000.0),
        ];
        let parts = split_after_units(text.trim());
        // Only several parts have units in common: `90` is seconds, `1h30` is unclear.
        let is_clear =
            |part: &&str| parts.len() == 1 || part.ends_with(|c: char| c.is_alphabetic());
        let parsed = parts.iter().map(|part| {
            Some(*part)
                .filter(is_clear)
                .and_then(|part| parse_with_unit(part, &units))
        });
        let ms: Option<u64> = parsed.sum();
        ms.filter(|ms| *ms <= DURATION_MAX && !parts.is_empty())
            .map(Self)
            .ok_or_else(|| "write a duration as 90, 90s, 5m, 1h30m or 30d".into())
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("B", 1.0),
            ("", 1.0),
        ];
        let bytes =
            parse_with_unit(text, &units).ok_or("write a size as 65536, 512KiB, 64MiB or 2GiB")?;
        Ok(Self(bytes))
    }
}

impl FromStr for BackoffRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.parse() == Ok(Millis(0)) {
            return Ok(Self::default());
        }
        let (base, cap) = text
            .split_once("..")
            .ok_or("write a backoff as 1s..300s, or 0 for none")?;
        let backoff = Self {
            base: base.parse()?,
            cap: cap.parse()?,
        };
        if backoff.base.0 > backoff.cap.0 {
            Err("the first duration of a backoff must not exceed the second".into())
        } else {
            Ok(backoff)
        }
    }
}

/// Parses a whole number that is 0 or more.
pub(crate) fn parse_count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number, 0 or more".into())
}

/// Accepts any text except a single word that begins with `-`. Such a word is a flag, which means
/// that the text is missing. A list whose items begin with `-` is accepted.
pub(crate) fn parse_text(text: &str) -> Result<String, String> {
    let is_flag = text.len() > 1 && text.starts_with('-') && !text.contains(char::is_whitespace);
    if is_flag {
        Err("a text is missing before this flag".into())
    } else {
        Ok(text.to_owned())
    }
}

/// Parses an amount of dollars.
pub(crate) fn parse_amount(text: &str) -> Result<f64, String> {
    let usd = text
        .parse()
        .ok()
        .filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
    usd.ok_or_else(|| "write an amount in dollars as 2.50".into())
}

/// Parses the value of a limit in its unit; `None` for zero, which means no limit.
pub(crate) fn parse_limit(limit: Limit, text: &str) -> Result<Option<Amount>, String> {
    let zero = limit.row().zero;
    let max = match zero {
        Amount::Count(_) => Amount::Count(parse_count(text)?),
        Amount::Dollars(_) => Amount::Dollars(parse_amount(text)?),
        Amount::Tokens(_) => Amount::Tokens(parse_count(text)?),
        Amount::Millis(_) => Amount::Millis(text.parse::<Millis>()?.0),
    };
    Ok(Some(max).filter(|max| *max > zero))
}

/// The longest duration in milliseconds. Adding a longer one to a clock could overflow.
const DURATION_MAX: u64 = 1_000_000_000_000_000;

/// Splits `1h30m` into `1h` and `30m`: each part but the first begins with a digit after a letter.
fn split_after_units(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut after_letter = false;
    for (at, c) in text.char_indices() {
        if c.is_ascii_digit() && after_letter {
            parts.push(&text[start..at]);
            start = at;
        }
        after_letter = c.is_alphabetic();
    }
    parts.push(&text[start..]);
    parts
}

/// Parses a number with a unit, and multiplies it by the factor of the first unit that matches. The
/// empty unit must come last. `None` if the text is invalid or out of range.
fn parse_with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number: f64 = number.trim_end().parse().ok()?;
    let value = number * factor;
    (number >= 0.0 && value <= DURATION_MAX as f64 && !text.starts_with('+'))
        .then_some(value as u64)
}

/// Deserializes a value from a string or a bare number.
macro_rules! deserialize_from_text {
    ($($name:ident: $expecting:literal),*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;
                impl Visitor<'_> for TextVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$name, E> {
                        self.visit_str(&number.to_string())
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$name, E> {
                        self.visit_str(&number.to_string())
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$name, E> {
                        self.visit_str(&number.to_string())
                    }
                }
                deserializer.deserialize_any(TextVisitor)
            }
        }
    )* };
}

deserialize_from_text!(
    Millis: "a duration such as \"5m\"",
    ByteSize: "a size such as \"64MiB\"",
    BackoffRange: "a backoff such as \"1s..300s\""
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, ms) in [
            ("90", Some(90_000)),
            ("90s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
            ("5m", Some(300_000)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
            ("1h30m", Some(5_400_000)),
            ("1d2h3m4s5ms", Some(93_784_005)),
            ("1h30", None),
            ("1h30x", None),
            ("h30m", None),
            ("1h-5m", None),
            ("0", Some(0)),
            (" 3 s ", Some(3000)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1w", None),
            ("abc", None),
            ("nan", None),
            ("inf", None),
            ("1e300", None),
            ("s", None),
        ] {
            assert_eq!(
                text.parse::<Millis>().ok().map(|millis| millis.0),
                ms,
                "{text:?}"
            );
        }
    }

    #[test]
    fn sizes_and_backoffs_are_parsed() {
        assert_eq!("64MiB".parse(), Ok(ByteSize(67_108_864)));
        assert_eq!("10".parse(), Ok(ByteSize(10)));
        assert!("10kb".parse::<ByteSize>().is_err());
        assert_eq!(
            "1s..300s".parse(),
            Ok(BackoffRange {
                base: Millis(1000),
                cap: Millis(300_000)
            })
        );
        assert!("5s..1s".parse::<BackoffRange>().is_err());
        assert!("5s".parse::<BackoffRange>().is_err());
        assert_eq!("0".parse(), Ok(BackoffRange::default()));
    }
}
