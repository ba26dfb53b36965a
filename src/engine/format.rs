//! Formats numbers, durations and amounts for people.

/// Formats a count: `950`, `12.3k`, `4.5M`.
pub(crate) fn thousands(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// Formats a duration given in milliseconds: `850ms`, `12.3s`, `3m 42s`, `1h 5m`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..=59 => match ms % 1000 / 100 {
            0 => format!("{seconds}s"),
            tenth => format!("{seconds}.{tenth}s"),
        },
        60..=3599 => match seconds % 60 {
            0 => format!("{}m", seconds / 60),
            rest => format!("{}m {rest}s", seconds / 60),
        },
        _ => match seconds % 3600 / 60 {
            0 => format!("{}h", seconds / 3600),
            minutes => format!("{}h {minutes}m", seconds / 3600),
        },
    }
}

/// Formats a count with a noun whose plural ends in `s`: `1 file`, `2 files`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Formats a number of iterations: `1 iteration`, `2 iterations`.
pub(crate) fn iteration_count(count: u32) -> String {
    plural(u64::from(count), "iteration")
}

/// Formats a number of processes: `1 process`, `2 processes`.
pub(crate) fn process_count(count: usize) -> String {
    if count == 1 {
        "1 process".into()
    } else {
        format!("{count} processes")
    }
}

/// Formats an amount of dollars: `$0.0234` below a dollar, `$12.30` from a dollar up.
pub(crate) fn dollars(usd: f64) -> String {
    if usd.abs() < 1.0 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

/// Formats a number and its limit: `7/100`, or `7` if `limit` is `None`.
pub(crate) fn with_limit(number: u32, limit: Option<u32>) -> String {
    limit.map_or_else(|| number.to_string(), |limit| format!("{number}/{limit}"))
}

/// Quotes `text` for a POSIX shell, if it needs quotes.
pub(crate) fn shell_quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,=:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Formats a size given in bytes: `12 bytes`, `1.5 KiB`, `64 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let (unit, name) = match count {
        0..1024 => return plural(count, "byte"),
        1024..1_048_576 => (1024.0, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    let value = format!("{:.1}", count as f64 / unit);
    format!("{} {name}", value.strip_suffix(".0").unwrap_or(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_is_one_argument() {
        for (text, quoted) in [
            ("ralph/a-1", "ralph/a-1"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_quote(text), quoted);
        }
    }

    #[test]
    fn durations_show_at_most_two_units() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1000, "1s"),
            (1099, "1s"),
            (1100, "1.1s"),
            (59_999, "59.9s"),
            (60_000, "1m"),
            (222_000, "3m 42s"),
            (3_599_999, "59m 59s"),
            (3_600_000, "1h"),
            (3_900_000, "1h 5m"),
            (90_000_000, "25h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn amounts_show_their_unit() {
        assert_eq!(plural(0, "file"), "0 files");
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(2, "file"), "2 files");
        assert_eq!(dollars(0.0234), "$0.0234");
        assert_eq!(dollars(-0.5), "$-0.5000");
        assert_eq!(dollars(1.0), "$1.00");
        assert_eq!(dollars(12.3), "$12.30");
        assert_eq!(with_limit(7, Some(100)), "7/100");
        assert_eq!(with_limit(7, None), "7");
        for (count, text) in [
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1_048_576, "1 MiB"),
            (67_108_864, "64 MiB"),
            (1_073_741_824, "1 GiB"),
            (1_610_612_736, "1.5 GiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
