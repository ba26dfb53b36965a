//! How durations, sizes and backoffs are written: `90`, `90s`, `5m`, `2h`; `64MiB`; `1s..300s`.

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::str::FromStr;

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub struct Span(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(pub u64);

/// The shortest and the longest rest after failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub base: Span,
    /// At the most.
    pub cap: Span,
}

impl FromStr for Span {
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
        let ms = with_unit(text, &units).ok_or("a duration reads 90, 90s, 5m, 12h or 30d")?;
        Ok(Self(ms))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("B", 1.0),
            ("", 1.0),
        ];
        let bytes = with_unit(text, &units).ok_or("a size reads 65536, 512KiB, 64MiB or 2GiB")?;
        Ok(Self(bytes))
    }
}

impl FromStr for Backoff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (base, cap) = text.split_once("..").ok_or("a backoff reads 1s..300s")?;
        let backoff = Self {
            base: base.parse()?,
            cap: cap.parse()?,
        };
        if backoff.base.0 > backoff.cap.0 {
            Err("a backoff's first rest is at most its last".into())
        } else {
            Ok(backoff)
        }
    }
}

/// A number of things.
pub fn count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "it is a whole number, 0 or more".into())
}

/// A text, which may be a list whose items begin with `-`. A single such word is a flag in the wrong place.
pub fn words(text: &str) -> Result<String, String> {
    let is_flag = text.len() > 1 && text.starts_with('-') && !text.contains(char::is_whitespace);
    if is_flag {
        Err("the text is missing before that flag".into())
    } else {
        Ok(text.to_owned())
    }
}

/// An amount of dollars.
pub fn amount(text: &str) -> Result<f64, String> {
    let usd = text
        .parse()
        .ok()
        .filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
    usd.ok_or_else(|| "an amount in dollars reads 2.50".into())
}

/// The first unit that the text ends with; the empty one must come last.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number: f64 = number.trim_end().parse().ok()?;
    let value = number * factor;
    // Beyond this nobody means it, and adding to a clock must stay safe.
    (number >= 0.0 && value <= 1e15 && !text.starts_with('+')).then_some(value as u64)
}

/// Reads a value written as a bare number or as text.
macro_rules! read_as_text {
    ($($name:ident: $expecting:literal),*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
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
                deserializer.deserialize_any(Text)
            }
        }
    )* };
}

read_as_text!(Span: "a duration such as \"5m\"", Size: "a size such as \"64MiB\"", Backoff: "a backoff such as \"1s..300s\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("90", Some(90_000)),
            ("90s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
            ("5m", Some(300_000)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
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
            assert_eq!(text.parse::<Span>().ok().map(|span| span.0), ms, "{text:?}");
        }
    }

    #[test]
    fn sizes_and_backoffs_are_read() {
        assert_eq!("64MiB".parse(), Ok(Size(67_108_864)));
        assert_eq!("10".parse(), Ok(Size(10)));
        assert!("10kb".parse::<Size>().is_err());
        assert_eq!(
            "1s..300s".parse(),
            Ok(Backoff {
                base: Span(1000),
                cap: Span(300_000)
            })
        );
        assert!("5s..1s".parse::<Backoff>().is_err());
        assert!("5s".parse::<Backoff>().is_err());
    }
}
