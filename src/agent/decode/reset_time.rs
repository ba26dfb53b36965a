//! When is a limit over, by words such as "10:05pm (UTC)", "Nov 18, 8:05pm" or "1794783030"?

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use regex::Regex;
use std::sync::LazyLock;

/// Words tell whole minutes: what ends within one is waited for to its end.
const MINUTE_MS: i64 = 60_000;

static DAY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?",
    )
});
static ISO_DAY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?\s*(?P<half>[ap])\.?m\b|\b(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::(?P<second24>\d{2}))?\b",
    )
});
static ZONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\(([A-Za-z_]+(?:/[A-Za-z0-9_+-]+)*)\)|\b(UTC|GMT|Z)\b"));
static IN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(\d+(?:\.\d+)?)\s*(d|h|m|s|ms)[a-z]*\b"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// The time that words name, in milliseconds since 1970. A time of day is the next one; without a zone it is this
/// machine's.
pub fn time(words: &str, now_ms: i64) -> Option<i64> {
    named(words, now_ms).filter(|ms| is_in_calendar(*ms))
}

/// Whether any calendar has this time. A figure in another unit is in none, and a loop would rest for ever.
pub fn is_in_calendar(ms: i64) -> bool {
    Timestamp::from_millisecond(ms).is_ok()
}

fn named(words: &str, now_ms: i64) -> Option<i64> {
    let words = words.trim();
    if let Some(epoch) = words
        .parse::<i64>()
        .ok()
        .filter(|epoch| *epoch > 1_000_000_000)
    {
        return Some(if epoch > 100_000_000_000 {
            epoch
        } else {
            epoch * 1000
        });
    }
    if let Ok(exact) = words.parse::<Timestamp>() {
        return Some(exact.as_millisecond());
    }
    let zone =
        match ZONE.captures(words) {
            Some(found) => {
                TimeZone::get(found.get(1).or(found.get(2)).map_or(
                    "UTC",
                    |name| match name.as_str() {
                        "Z" | "GMT" => "UTC",
                        name => name,
                    },
                ))
                .unwrap_or_else(|_| TimeZone::system())
            }
            None => TimeZone::system(),
        };
    let now = Timestamp::from_millisecond(now_ms)
        .ok()?
        .to_zoned(zone.clone());
    let Some((clock, exact)) = clock(words) else {
        return match day(words, &now) {
            Some(day) => Some(whole(&day.to_zoned(zone).ok()?, true)),
            None => after(words).map(|ms| now_ms.saturating_add(ms)),
        };
    };
    let date = day(words, &now);
    let named = date
        .unwrap_or_else(|| now.date())
        .to_datetime(clock)
        .to_zoned(zone)
        .ok()?;
    // What was at this minute may still be to come within it.
    let past = named.timestamp().as_millisecond() + MINUTE_MS <= now_ms;
    let named = if date.is_none() && past {
        named.checked_add(1.day()).ok()?
    } else {
        named
    };
    Some(whole(&named, exact))
}

fn whole(named: &Zoned, exact: bool) -> i64 {
    let ms = named.timestamp().as_millisecond();
    if exact { ms } else { ms + MINUTE_MS }
}

fn number<T: std::str::FromStr>(found: &regex::Captures<'_>, name: &str) -> Option<T> {
    found.name(name)?.as_str().parse().ok()
}

/// A time of day, and whether it names seconds.
fn clock(words: &str) -> Option<(Time, bool)> {
    let found = CLOCK.captures(words)?;
    let (hour, minute, second) = if let Some(hour) = number::<i8>(&found, "hour24") {
        (hour, number(&found, "minute24"), number(&found, "second24"))
    } else {
        let hour = number::<i8>(&found, "hour").filter(|hour| (1..=12).contains(hour))?;
        let noon = if found["half"].eq_ignore_ascii_case("p") {
            12
        } else {
            0
        };
        (
            hour % 12 + noon,
            number(&found, "minute"),
            number(&found, "second"),
        )
    };
    let time = Time::new(hour, minute.unwrap_or(0), second.unwrap_or(0), 0).ok()?;
    Some((time, second.is_some()))
}

fn day(words: &str, now: &Zoned) -> Option<Date> {
    if let Some(found) = ISO_DAY.captures(words) {
        return Date::new(
            number(&found, "year")?,
            number(&found, "month")?,
            number(&found, "day")?,
        )
        .ok();
    }
    let found = DAY.captures(words)?;
    let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let month = months
        .iter()
        .position(|month| found["month"].eq_ignore_ascii_case(month))? as i8
        + 1;
    let named = |year| Date::new(year, month, number(&found, "day")?).ok();
    match number(&found, "year") {
        Some(year) => named(year),
        // In December, January is next year's.
        None => named(now.year())
            .filter(|day| *day >= now.date())
            .or_else(|| named(now.year() + 1)),
    }
}

/// "in 2 hours 5 minutes", "45s".
fn after(words: &str) -> Option<i64> {
    let mut all = IN.captures_iter(words).map(|found| {
        let unit = match found[2].to_lowercase().as_str() {
            "d" => 86_400_000.0,
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            _ => 1.0,
        };
        found[1].parse::<f64>().unwrap_or(0.0) * unit
    });
    let first = all.next()?;
    Some((first + all.sum::<f64>()).min(1e12) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-15 20:00:30 UTC.
    const NOW: i64 = 1_794_772_830_000;

    fn at(words: &str) -> Option<String> {
        time(words, NOW).map(|ms| Timestamp::from_millisecond(ms).unwrap().to_string())
    }

    #[test]
    fn words_that_name_a_time_are_understood() {
        for (words, expected) in [
            ("10:05pm (UTC)", "2026-11-15T22:06:00Z"),
            ("10pm (UTC)", "2026-11-15T22:01:00Z"),
            ("8:00pm (UTC)", "2026-11-15T20:01:00Z"),
            ("7:59pm (UTC)", "2026-11-16T20:00:00Z"),
            ("12:30am (UTC)", "2026-11-16T00:31:00Z"),
            ("Nov 18, 8:05pm (UTC)", "2026-11-18T20:06:00Z"),
            ("Jan 2, 8:05am (UTC)", "2027-01-02T08:06:00Z"),
            ("10:05pm (America/New_York)", "2026-11-16T03:06:00Z"),
            ("2026-12-01 at 00:00 UTC", "2026-12-01T00:01:00Z"),
            ("2026-12-01T00:00:05Z", "2026-12-01T00:00:05Z"),
            ("22:05:10 UTC", "2026-11-15T22:05:10Z"),
            ("Nov 18th, 2026 8:05 PM (UTC)", "2026-11-18T20:06:00Z"),
            ("1794783030", "2026-11-15T22:50:30Z"),
            ("1794783030500", "2026-11-15T22:50:30.5Z"),
            ("in 1 hour 5 minutes", "2026-11-15T21:05:30Z"),
            ("37s", "2026-11-15T20:01:07Z"),
            ("1.5s", "2026-11-15T20:00:31.5Z"),
        ] {
            assert_eq!(at(words).as_deref(), Some(expected), "{words}");
        }
        for words in [
            "",
            "soon",
            "25:99pm (UTC)",
            "99:99",
            "1794783030500123",
            "9223372036854775807",
        ] {
            assert_eq!(at(words), None, "{words}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_this_machines() {
        let here = Timestamp::from_millisecond(NOW)
            .unwrap()
            .to_zoned(TimeZone::system());
        let soon = here.checked_add(2.hours()).unwrap();
        let words = soon.strftime("%I:%M %p").to_string();
        let found = time(&words, NOW).unwrap() - soon.timestamp().as_millisecond();
        assert!(
            (0..=MINUTE_MS).contains(&found),
            "{words} is off by {found}"
        );
    }
}
