//! Finds the lines of a check's output that say what failed.

use super::display::{one_line, truncate_to_width};
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// Number of last lines that count if no line says what failed.
const LAST_LINES: usize = 20;

/// Maximum width of the line that stands for all, in terminal columns.
const LINE_WIDTH: usize = 140;

static FAILING: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        r"errors?|fail(?:s|ed|ing|ures?)?|panic(?:ked)?|fatal|exception|assert(?:ion)?|expected",
        r"undefined|unresolved|cannot|missing|denied|segfault",
    ];
    let pattern = format!(
        r"(?i)\b(?:{})\b|\w(?:error|exception)\b|^not ok\b|(?-i:^E\s)|[✗✘✖×❌]",
        words.join("|")
    );
    Regex::new(&pattern).expect("a constant pattern")
});

static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d+(?:[.:]\d+)*\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|minutes?|h)\b")
        .expect("a constant pattern")
});

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{7,}\b|\d+").expect("a constant pattern")
});

/// Returns the lines of a cleaned output that say what failed, or else its last lines.
pub(crate) fn failing_lines(output: &str) -> Vec<&str> {
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let failing: Vec<&str> = lines().filter(|line| FAILING.is_match(line)).collect();
    if !failing.is_empty() {
        return failing;
    }
    let last: Vec<&str> = lines().collect();
    last[last.len().saturating_sub(LAST_LINES)..].to_vec()
}

/// Returns the first line of a cleaned output that says what failed, or else its last line, cut to
/// [`LINE_WIDTH`]; `None` if there is no output.
pub(crate) fn failing_line(output: &str) -> Option<String> {
    let lines = failing_lines(output);
    let line = match lines.first() {
        Some(first) if FAILING.is_match(first) => first,
        _ => lines.last()?,
    };
    Some(truncate_to_width(&one_line(line), LINE_WIDTH))
}

/// Returns a fingerprint of a red check's cleaned output. It is the same for the same failures: only
/// lines that say what failed count, in any order, without numbers, addresses and durations.
pub(crate) fn fingerprint(output: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = failing_lines(output).into_iter().map(normalized).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn normalized(line: &str) -> Cow<'_, str> {
    // A word of hexadecimal letters, such as `effaced`, is no number.
    let number = |found: &Captures<'_>| match &found[0] {
        word if word.contains(|c: char| c.is_ascii_digit()) => "#".to_owned(),
        word => word.to_owned(),
    };
    match DURATION.replace_all(line, "#") {
        Cow::Borrowed(line) => NUMBER.replace_all(line, number),
        Cow::Owned(line) => NUMBER.replace_all(&line, number).into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_names_the_failure_or_is_the_last_one() {
        for (output, line) in [
            ("", None),
            ("\n \n", None),
            ("one\ntwo\n", Some("two")),
            (
                "test a ... ok\ntest b ... FAILED\n\nsummary: 1 failed\n",
                Some("test b ... FAILED"),
            ),
        ] {
            assert_eq!(failing_line(output).as_deref(), line, "{output:?}");
        }
        let long = failing_line(&"x".repeat(500)).unwrap();
        assert_eq!(long.chars().count(), LINE_WIDTH);
    }

    #[test]
    fn lines_that_name_a_failure_count_or_else_the_last_lines() {
        for (output, lines) in [
            ("", vec![]),
            ("ok 1\nnot ok 2 - adds\nok 3\n", vec!["not ok 2 - adds"]),
            (
                "   Compiling x\nerror[E0308]: mismatched types\n --> src/a.rs:3:5\n",
                vec!["error[E0308]: mismatched types"],
            ),
            ("E   assert 1 == 2\nplain\n", vec!["E   assert 1 == 2"]),
            (
                "TypeError: x is not a function\n",
                vec!["TypeError: x is not a function"],
            ),
            ("  ✗ renders\n  ✓ loads\n", vec!["✗ renders"]),
            ("one\n\ntwo\n", vec!["one", "two"]),
        ] {
            assert_eq!(failing_lines(output), lines, "{output:?}");
        }
        assert_eq!(failing_lines(&"line\n".repeat(50)).len(), LAST_LINES);
    }

    #[test]
    fn the_same_failures_have_the_same_fingerprint() {
        let same = [
            (
                "FAILED test_a in 0.53s\nFAILED test_b in 980ms",
                "FAILED test_b in 1.2s\nFAILED test_a in 3 seconds\npassed: 12",
            ),
            (
                "error at 0x7ffe12 (pid 4711), commit 1a2b3c4d",
                "error at 0x55aa00 (pid 9), commit ffee0011",
            ),
            ("error: line 3", "error: line 12"),
        ];
        for (a, b) in same {
            assert_eq!(fingerprint(a), fingerprint(b), "{a:?} {b:?}");
        }
        let different = [
            ("FAILED test_a", "FAILED test_a\nFAILED test_b"),
            ("error: effaced", "error: defaced"),
            ("", "error"),
        ];
        for (a, b) in different {
            assert_ne!(fingerprint(a), fingerprint(b), "{a:?} {b:?}");
        }
    }
}
