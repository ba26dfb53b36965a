//! Removes from the names of tests what differs from run to run: addresses, temporary paths, IDs and
//! times.
//!
//! Runners make names of parameters, and some parameters are made anew in every run. Such tests are
//! still counted: those whose names become equal are compared by their number.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Every part of a name that may be random. The name of each group says what takes its place.
static RANDOM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        (?P<id>      [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b )
      | (?P<address> 0x[0-9a-fA-F]{5,}\b )
      | (?P<path>    (?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user)/[^\s'",;)\]]+
                   | \btmp[a-z0-9_]{8}\b | \.tmp[A-Za-z0-9]{6}\b | \bpytest-of-[^/\s]+/pytest-\d+ )
      | (?P<time>    \d{4}-\d{2}-\d{2}
                       (?:[T\x20_]\d{2}[:.\-]\d{2}(?:[:.\-]\d{2}(?:[.,]\d+)?)?)?
                       (?:Z|[+-]\d{2}:?\d{2})?
                   | \b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b )
      | (?P<number>  \b\d+\.\d{10,}(?:e-?\d+)? )
      | (?P<port>    \b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):\d{4,5}\b )
      | (?P<hex>     (?:\b|_)[0-9a-f]{12,}\b )
        "#,
    )
    .expect("a constant pattern")
});

/// Returns a name without its random parts.
pub(super) fn stable_name(name: &str) -> Cow<'_, str> {
    if !may_be_random(name) {
        return Cow::Borrowed(name);
    }
    RANDOM.replace_all(name, |found: &Captures<'_>| {
        let text = &found[0];
        let kinds = ["id", "address", "path", "time", "number", "port", "hex"];
        match kinds.iter().find(|kind| found.name(kind).is_some()) {
            // A word of these letters alone is no ID.
            Some(&"hex") if !text.bytes().any(|byte| byte.is_ascii_digit()) => text.to_owned(),
            Some(kind) => format!("<{kind}>"),
            None => text.to_owned(),
        }
    })
}

/// Returns whether the pattern may match. There can be many names, and most are plain.
fn may_be_random(name: &str) -> bool {
    let marks = [
        "0x",
        "tmp",
        "/var/",
        "/dev/shm/",
        "/run/",
        "pytest-of-",
        "t:",
        "1:",
        "0:",
    ];
    let words = name.split(|c: char| !c.is_ascii_hexdigit());
    let has_long_word = || words.map(str::len).any(|len| len >= 8);
    // A date begins with a year.
    let is_year = |part: &str| {
        let digits = part.bytes().rev().take_while(u8::is_ascii_digit);
        digits.count() >= 4
    };
    let has_date = || name.split('-').any(is_year) && name.contains('-');
    marks.iter().any(|mark| name.contains(mark)) || has_long_word() || has_date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_differ_from_run_to_run_are_removed() {
        for (name, stable) in [
            (
                "t.py::test_x[<object object at 0x7f3b1c2d4e50>]",
                "t.py::test_x[<object object at <address>>]",
            ),
            (
                "t.py::test_x[3f2504e0-4f89-41d3-9a0c-0305e82c3301]",
                "t.py::test_x[<id>]",
            ),
            (
                "t.py::test_x[/tmp/pytest-of-ada/pytest-3/a0]",
                "t.py::test_x[<path>]",
            ),
            ("t.py::test_x[tmpab3_d9xz-1]", "t.py::test_x[<path>-1]"),
            ("reads .tmpAb3dE9", "reads <path>"),
            ("at 2026-11-18T16:40:12.123456+00:00", "at <time>"),
            ("at 2026-11-18", "at <time>"),
            ("TestAt/1763483999123", "TestAt/<time>"),
            ("test_x[0.8444218515250481]", "test_x[<number>]"),
            ("listens on 127.0.0.1:43567", "listens on <port>"),
            ("test_x[9f86d081884c7d65]", "test_x[<hex>]"),
            ("test_x_9f86d081884c7d65", "test_x<hex>"),
            ("x_3f2504e0-4f89-41d3-9a0c-0305e82c3301", "x_<id>"),
        ] {
            assert_eq!(stable_name(name), stable);
        }
    }

    #[test]
    fn everything_else_stays() {
        for name in [
            "sums",
            "t.py::test_x[1-2-3]",
            "t.py::test_x[0xff]",
            "TestSum/case_12",
            "test_v1.2.3",
            "costs 12345678 cents",
            "deadbeefcafe",
            "reads /etc/hosts",
            "rounds 3.14159",
        ] {
            assert_eq!(stable_name(name), name);
        }
    }
}
