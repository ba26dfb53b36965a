//! Says when something happened and how long ago, in a few characters, and shortens paths.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;

/// The variable that sets the current time of views in tests, in milliseconds since 1970. It changes
/// nothing but the ages that are shown.
const NOW_VARIABLE: &str = "RALPH_TEST_NOW";

/// Returns the current time for ages, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let set = std::env::var(NOW_VARIABLE).ok();
    let set = set.and_then(|value| value.parse().ok());
    set.unwrap_or_else(|| Timestamp::now().as_millisecond())
}

/// Formats the time since `ms` in one unit: `5m`, `3h`, `12d`; `now` if it is less than a minute.
pub(crate) fn age(ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(ms).max(0) / 1000;
    match seconds {
        0..60 => "now".into(),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats a Unix time in milliseconds as local time: `21:35`.
pub(crate) fn clock(ms: i64) -> String {
    local(ms, "%H:%M")
}

/// Formats a Unix time in milliseconds as local date and time: `2026-03-14 21:35:10`.
pub(crate) fn date_time(ms: i64) -> String {
    local(ms, "%Y-%m-%d %H:%M:%S")
}

/// Formats the time from one Unix time to another: `2026-03-14 21:35 – 22:10`.
pub(crate) fn span(from_ms: i64, to_ms: i64) -> String {
    let is_same_day = local(from_ms, "%F") == local(to_ms, "%F");
    let to = local(to_ms, if is_same_day { "%H:%M" } else { "%F %H:%M" });
    format!("{} – {to}", local(from_ms, "%F %H:%M"))
}

fn local(ms: i64, format: &str) -> String {
    Timestamp::from_millisecond(ms)
        .map(|at| at.to_zoned(TimeZone::system()).strftime(format).to_string())
        .unwrap_or_default()
}

/// Returns a path, with `~` for the user's home directory.
pub(crate) fn short_path(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| home.len() > 1);
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, text) in [
            (0, "now"),
            (59, "now"),
            (60, "1m"),
            (3599, "59m"),
            (3600, "1h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (-5, "now"),
        ] {
            assert_eq!(age(1000, 1000 + seconds * 1000), text);
        }
    }
}
