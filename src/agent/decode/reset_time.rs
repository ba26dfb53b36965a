//! Parses the time at which a limit resets, such as "10:05pm (UTC)", "Nov 18, 8:05pm" or
//! "1794783030".

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use regex::Regex;
use std::sync::LazyLock;

/// Length of a minute, in milliseconds. It is added to a time without seconds, which can mean any
/// moment of its minute: its end is used.
const MINUTE_MS: i64 = 60_000;
/// How long ago a time of day may be and still mean today: messages are read late, and limits reset
/// late. Anything earlier means tomorrow.
const LATE_MS: i64 = 6 * 60 * MINUTE_MS;
/// How many days ago a date without a year may be and still mean this year.
const LATE_DAYS: i64 = 30;
/// The latest reset time that is believed, in milliseconds from now. Limits reset every month at
/// the latest; a later time is a number in another unit.
const FAR_MS: i64 = 35 * 24 * 60 * MINUTE_MS;

static MONTH_DAY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?",
    )
});
static ISO_DATE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"));
static SLASH_DATE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})\b"));
static TIME_OF_DAY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?\s*(?P<half>[ap])\.?m\b|\b(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::(?P<second24>\d{2}))?\b",
    )
});
static ZONE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\(([A-Za-z_]+(?:/[A-Za-z0-9_+-]+)*)\)|\b(UTC|GMT|Z)\b"));
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)([0-9]+(?:\.[0-9]+)?)\s*(ms|d|h|m|s)"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Parses a time and returns it as Unix time in milliseconds. A time of day without a zone is local
/// time. The result may be in the past: a limit that should have reset a few minutes ago.
pub(crate) fn parse(text: &str, now_ms: i64) -> Option<i64> {
    parse_unchecked(text, now_ms).filter(|ms| is_plausible(*ms, now_ms))
}

/// Returns whether a limit may reset at this Unix time in milliseconds.
pub(super) fn is_plausible(ms: i64, now_ms: i64) -> bool {
    ms >= 0 && ms <= now_ms.saturating_add(FAR_MS)
}

fn parse_unchecked(text: &str, now_ms: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(epoch) = text
        .parse::<i64>()
        .ok()
        .filter(|epoch| *epoch > 1_000_000_000)
    {
        let is_milliseconds = epoch > 100_000_000_000;
        return Some(if is_milliseconds { epoch } else { epoch * 1000 });
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    let zone = time_zone(text);
    let now = Timestamp::from_millisecond(now_ms)
        .ok()?
        .to_zoned(zone.clone());
    let Some((time, has_seconds)) = time_of_day(text) else {
        return match date(text, &now) {
            Some(date) => Some(end_of_period(&date.to_zoned(zone).ok()?, true)),
            None => duration_ms(text).map(|ms| now_ms.saturating_add(ms)),
        };
    };
    let date = date(text, &now);
    let named = date
        .unwrap_or_else(|| now.date())
        .to_datetime(time)
        .to_zoned(zone)
        .ok()?;
    let is_past = named.timestamp().as_millisecond() + MINUTE_MS + LATE_MS <= now_ms;
    let named = if date.is_none() && is_past {
        named.checked_add(1.day()).ok()?
    } else {
        named
    };
    Some(end_of_period(&named, has_seconds))
}

fn time_zone(text: &str) -> TimeZone {
    let Some(found) = ZONE.captures(text) else {
        return TimeZone::system();
    };
    let name = found
        .get(1)
        .or(found.get(2))
        .map_or("UTC", |name| match name.as_str() {
            "Z" | "GMT" => "UTC",
            name => name,
        });
    TimeZone::get(name).unwrap_or_else(|_| TimeZone::system())
}

/// Returns a time in milliseconds since 1970: the time itself if it is exact, or else the end of
/// its minute.
fn end_of_period(time: &Zoned, is_exact: bool) -> i64 {
    let ms = time.timestamp().as_millisecond();
    if is_exact { ms } else { ms + MINUTE_MS }
}

fn number<T: std::str::FromStr>(found: &regex::Captures<'_>, name: &str) -> Option<T> {
    found.name(name)?.as_str().parse().ok()
}

/// Finds a time of day in a text; `None` if it contains none. Also returns whether the time has
/// seconds.
fn time_of_day(text: &str) -> Option<(Time, bool)> {
    let found = TIME_OF_DAY.captures(text)?;
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

fn date(text: &str, now: &Zoned) -> Option<Date> {
    if let Some(found) = ISO_DATE
        .captures(text)
        .or_else(|| SLASH_DATE.captures(text))
    {
        return Date::new(
            number(&found, "year")?,
            number(&found, "month")?,
            number(&found, "day")?,
        )
        .ok();
    }
    let found = MONTH_DAY.captures(text)?;
    let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let month = months
        .iter()
        .position(|month| found["month"].eq_ignore_ascii_case(month))? as i8
        + 1;
    let in_year = |year| Date::new(year, month, number(&found, "day")?).ok();
    if let Some(year) = number(&found, "year") {
        return in_year(year);
    }
    // In December, "Jan 2" means next year; in January, "Dec 31" means last year.
    let earliest = now.date().saturating_sub(LATE_DAYS.days());
    let years = [now.year() - 1, now.year(), now.year() + 1];
    years
        .into_iter()
        .filter_map(in_year)
        .find(|date| *date >= earliest)
}

/// Parses a duration such as "in 2 hours 5 minutes" or "45s", and returns it in milliseconds;
/// `None` if the text is not a duration.
fn duration_ms(text: &str) -> Option<i64> {
    let mut parts = DURATION.captures_iter(text).map(|found| {
        let unit = match found[2].to_lowercase().as_str() {
            "d" => 86_400_000.0,
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            _ => 1.0,
        };
        found[1].parse::<f64>().unwrap_or(0.0) * unit
    });
    let first = parts.next()?;
    Some((first + parts.sum::<f64>()).min(1e12) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-15 20:00:30 UTC, in milliseconds since 1970.
    const NOW: i64 = 1_794_772_830_000;

    fn parsed(text: &str) -> Option<String> {
        parse(text, NOW).map(|ms| Timestamp::from_millisecond(ms).unwrap().to_string())
    }

    #[test]
    fn all_known_time_formats_are_parsed() {
        for (text, expected) in [
            ("10:05pm (UTC)", "2026-11-15T22:06:00Z"),
            ("10pm (UTC)", "2026-11-15T22:01:00Z"),
            ("8:00pm (UTC)", "2026-11-15T20:01:00Z"),
            ("7:59pm (UTC)", "2026-11-15T20:00:00Z"),
            ("2:05pm (UTC)", "2026-11-15T14:06:00Z"),
            ("1:55pm (UTC)", "2026-11-16T13:56:00Z"),
            ("12:30am (UTC)", "2026-11-16T00:31:00Z"),
            ("Nov 18, 8:05pm (UTC)", "2026-11-18T20:06:00Z"),
            ("Nov 14, 8:05pm (UTC)", "2026-11-14T20:06:00Z"),
            ("Dec 2 at 8am (UTC)", "2026-12-02T08:01:00Z"),
            ("12/1/2026 (UTC)", "2026-12-01T00:00:00Z"),
            ("10:05pm (America/New_York)", "2026-11-16T03:06:00Z"),
            ("2026-12-01 at 00:00 UTC", "2026-12-01T00:01:00Z"),
            ("2026-12-01T00:00:05Z", "2026-12-01T00:00:05Z"),
            ("22:05:10 UTC", "2026-11-15T22:05:10Z"),
            ("Nov 18th, 2026 8:05 PM (UTC)", "2026-11-18T20:06:00Z"),
            ("1794783030", "2026-11-15T22:50:30Z"),
            ("1794783030500", "2026-11-15T22:50:30.5Z"),
            ("in 1 hour 5 minutes", "2026-11-15T21:05:30Z"),
            ("2 days 17 hours 14 minutes", "2026-11-18T13:14:30Z"),
            ("5h12m3s.", "2026-11-16T01:12:33Z"),
            ("37s", "2026-11-15T20:01:07Z"),
            ("1.5s", "2026-11-15T20:00:31.5Z"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "soon",
            "25:99pm (UTC)",
            "99:99",
            "1794783030500123",
            "9223372036854775807",
            "99999999999",
            "Jan 2, 8:05am (UTC)",
            "in 60 days",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_without_a_year_is_the_nearest_one() {
        let at = |now: &str, text: &str| {
            let now: Timestamp = now.parse().unwrap();
            let found = parse(text, now.as_millisecond()).unwrap();
            Timestamp::from_millisecond(found).unwrap().to_string()
        };
        assert_eq!(
            at("2026-12-20T00:00:00Z", "Jan 2, 8:05am (UTC)"),
            "2027-01-02T08:06:00Z"
        );
        assert_eq!(
            at("2027-01-01T00:10:00Z", "Dec 31, 11:59pm (UTC)"),
            "2027-01-01T00:00:00Z"
        );
    }

    #[test]
    fn a_time_without_a_zone_is_local() {
        let here = Timestamp::from_millisecond(NOW)
            .unwrap()
            .to_zoned(TimeZone::system());
        let soon = here.checked_add(2.hours()).unwrap();
        let text = soon.strftime("%I:%M %p").to_string();
        let found = parse(&text, NOW).unwrap() - soon.timestamp().as_millisecond();
        assert!((0..=MINUTE_MS).contains(&found), "{text} is off by {found}");
    }
}
