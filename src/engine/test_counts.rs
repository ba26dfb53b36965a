//! Reads how many tests passed, failed and were skipped from the output of a test runner.
//!
//! A check that is green because it ran fewer tests than before proves less than before. Only
//! summaries are read; output without one has no counts.

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The number of tests by result, summed over all summaries in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, or could not be run.
    pub failed: u64,
    /// Tests that were skipped, ignored or expected to fail.
    pub skipped: u64,
}

/// `3 passed`, `1 failing`, `2 skipped`, `1 error`: one part of a summary.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?P<count>\d{1,9}) (?:tests? )?(?:(?P<passed>passed|passing|xpassed)",
        r"|(?P<failed>failed|failing|failures?|errors?)",
        r"|(?P<skipped>skipped|ignored|pending|todo|xfailed))\b"
    ))
    .expect("a constant pattern")
});

/// What may surround the parts of a summary: names, totals and durations.
static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^(?:[\s=,;:|.()\[\]-]|\d+(?:\.\d+)?\s?(?:m?s|seconds?|minutes?)?\b|in\b|test result\b|ok\b|",
        r"failed\b|summary\b|tests?\b|run\b|total\b|measured\b|filtered out\b|finished\b|slow\b|",
        r"flaky\b|leaky\b|deselected\b|warnings?\b|subtests?\b|assertions?\b|examples?\b|and\b)*$"
    ))
    .expect("a constant pattern")
});

/// `ℹ pass 3` or `# pass 3`, as Node's test runner prints it.
static NODE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[ℹ#] (?P<what>pass|fail|cancelled|skipped|todo) (?P<count>\d{1,9})$")
        .expect("a constant pattern")
});

/// `Ran 5 tests in 0.001s`, as Python's unittest prints it.
static UNITTEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Ran (?P<count>\d{1,9}) tests? in [\d.]+s$").expect("a constant pattern")
});

/// `OK (skipped=2)` or `FAILED (failures=1, errors=2)`, the line after it.
static UNITTEST_RESULT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:OK|FAILED)(?: \((?P<parts>[a-z =,\d]+)\))?$").expect("valid")
});

/// `Files=2, Tests=5,  0 wallclock secs`, as Perl's `prove` prints it.
static PROVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^Files=\d+, Tests=(?P<count>\d{1,9}),").expect("valid"));

/// `Failed 1/3 subtests`, as it prints before.
static PROVE_FAILED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^Failed (?P<count>\d{1,9})/\d+ subtests$").expect("valid"));

/// `--- PASS: TestSum (0.00s)`, as `go test -v` prints it.
static GO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^--- (?P<what>PASS|FAIL|SKIP): \S+ \(").expect("a constant pattern")
});

/// `not ok 2 - sums # SKIP`, as in the Test Anything Protocol.
static TAP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?P<not>not )?ok \d+\b(?P<rest>.*)$").expect("a constant pattern")
});

/// `ok: 3` or `bad: 1 of 4`, as hand-written scripts print it.
static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(?P<what>ok|passed|pass|bad|failed|fail)\s*[:=]\s*(?P<count>\d{1,9})(?: of (?P<total>\d{1,9}))?$",
    )
    .expect("a constant pattern")
});

/// Lines that count files or suites, not tests.
const NOT_TESTS: [&str; 4] = ["Test Files", "Test Suites", "Snapshots", "Suites"];

impl TestCounts {
    /// Adds counts to a sum, which is `None` as long as there are none.
    pub(super) fn add(sum: &mut Option<Self>, counts: Self) {
        let sum = sum.get_or_insert_default();
        sum.passed = sum.passed.saturating_add(counts.passed);
        sum.failed = sum.failed.saturating_add(counts.failed);
        sum.skipped = sum.skipped.saturating_add(counts.skipped);
    }

    /// Returns the number of tests that ran.
    fn ran(self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    /// Describes the failures in the output of a check that exited with 0; `None` without any.
    pub(super) fn failures(self) -> Option<String> {
        (self.failed > 0).then(|| format!("its output says that {} failed", self.failed))
    }

    /// Describes in what way a check that exited with 0 ran less than the same check did at the
    /// start; `None` if it ran as much. `now` is `None` if its output has no number of tests.
    pub(super) fn shortfall(now: Option<Self>, start: Self) -> Option<String> {
        let ran = start.ran();
        let Some(now) = now else {
            // Some scripts print a number only if something failed.
            return (start.passed > 0)
                .then(|| format!("its output has no number of tests, {ran} ran at the start"));
        };
        if now.ran() < ran {
            return Some(format!("{} tests ran, {ran} at the start", now.ran()));
        }
        (now.skipped > start.skipped).then(|| {
            format!(
                "{} tests were skipped, {} at the start",
                now.skipped, start.skipped
            )
        })
    }
}

/// Collects counts from the lines of a check's output, which must be cleaned.
#[derive(Default)]
pub(crate) struct CountReader {
    summaries: CountSum,
    /// Sums of cargo test. Nextest repeats them in the output of tests that failed.
    cargo: CountSum,
    is_nextest: bool,
    go: CountSum,
    tap: CountSum,
    /// The number of tests that unittest ran, until the line with their results.
    ran: Option<u64>,
    /// The number of tests that `prove` ran, until the line with their result.
    proved: Option<u64>,
    /// The number of tests that `prove` saw fail.
    unproved: u64,
}

impl CountReader {
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim();
        let has_result = line.bytes().any(|byte| byte.is_ascii_digit())
            || ["OK", "FAILED", "Result: PASS", "Result: FAIL"].contains(&line);
        if !has_result || line.len() > 400 {
            return;
        }
        if let Some(found) = UNITTEST.captures(line) {
            self.ran = Some(number(&found["count"]));
        } else if let Some(found) = UNITTEST_RESULT.captures(line)
            && let Some(all) = self.ran.take()
        {
            let parts = found.name("parts").map_or("", |parts| parts.as_str());
            self.summaries.add(unittest(all, parts));
        } else if let Some(found) = PROVE.captures(line) {
            self.proved = Some(number(&found["count"]));
        } else if let Some(found) = PROVE_FAILED.captures(line) {
            self.unproved += number(&found["count"]);
        } else if let Some(all) = self
            .proved
            .take_if(|_| line == "Result: PASS" || line == "Result: FAIL")
        {
            let failed = std::mem::take(&mut self.unproved);
            self.summaries.add(TestCounts {
                passed: all.saturating_sub(failed),
                failed,
                skipped: 0,
            });
        } else if let Some(found) = NODE.captures(line) {
            self.summaries
                .add(by_result(&found["what"], number(&found["count"])));
        } else if let Some(found) = GO.captures(line) {
            self.go.add(by_result(&found["what"], 1));
        } else if let Some(found) = SCRIPT.captures(line) {
            if let Some(counts) = script(&found) {
                self.summaries.add(counts);
            }
        } else if let Some(found) = TAP.captures(line) {
            self.tap.add(tap_line(&found));
        } else if let Some(counts) = summary(line) {
            self.is_nextest |= line.starts_with("Summary [");
            if line.starts_with("test result: ") {
                self.cargo.add(counts);
            } else {
                self.summaries.add(counts);
            }
        }
    }

    /// Returns the counts in all lines so far; `None` if they have no summary.
    pub(crate) fn finish(mut self) -> Option<TestCounts> {
        if let Some(counts) = self.cargo.0.filter(|_| !self.is_nextest) {
            self.summaries.add(counts);
        }
        self.summaries.0.or(self.go.0).or(self.tap.0)
    }
}

/// A sum of counts; `None` as long as there is no summary.
#[derive(Default)]
struct CountSum(Option<TestCounts>);

impl CountSum {
    fn add(&mut self, counts: TestCounts) {
        TestCounts::add(&mut self.0, counts);
    }
}

/// Reads a line such as `3 passed, 1 failed in 0.12s`; `None` if it contains anything else.
fn summary(line: &str) -> Option<TestCounts> {
    if NOT_TESTS.iter().any(|name| line.starts_with(name)) {
        return None;
    }
    let mut counts = TestCounts::default();
    let mut says_results = false;
    for part in PART.captures_iter(line) {
        let count = number(&part["count"]);
        if part.name("passed").is_some() {
            counts.passed += count;
            says_results = true;
        } else if part.name("failed").is_some() {
            counts.failed += count;
            says_results = true;
        } else {
            counts.skipped += count;
        }
    }
    // Mocha prints this count on a line of its own.
    says_results |= line.ends_with(" pending");
    let is_summary = says_results && FILLER.is_match(&PART.replace_all(line, ""));
    is_summary.then_some(counts)
}

fn unittest(all: u64, parts: &str) -> TestCounts {
    let part = |name: &str| {
        let value = parts.split(", ").find_map(|part| part.strip_prefix(name));
        value.map_or(0, number)
    };
    let failed = part("failures=") + part("errors=") + part("unexpected successes=");
    let skipped = part("skipped=") + part("expected failures=");
    TestCounts {
        passed: all.saturating_sub(failed + skipped),
        failed,
        skipped,
    }
}

/// Returns the counts in a script's summary; `None` for `bad: 0`, which does not say how many tests
/// ran.
fn script(found: &regex::Captures<'_>) -> Option<TestCounts> {
    let count = number(&found["count"]);
    let total = found.name("total").map(|total| number(total.as_str()));
    let rest = total.map_or(0, |total| total.saturating_sub(count));
    let counts = match found["what"].to_ascii_lowercase().as_str() {
        "bad" | "failed" | "fail" => TestCounts {
            failed: count,
            passed: rest,
            ..TestCounts::default()
        },
        _ => TestCounts {
            passed: count,
            failed: rest,
            ..TestCounts::default()
        },
    };
    (counts != TestCounts::default()).then_some(counts)
}

fn tap_line(found: &regex::Captures<'_>) -> TestCounts {
    let directive = found["rest"].to_ascii_uppercase();
    if directive.contains("# SKIP") || directive.contains("# TODO") {
        by_result("SKIP", 1)
    } else {
        by_result(
            if found.name("not").is_some() {
                "FAIL"
            } else {
                "PASS"
            },
            1,
        )
    }
}

fn by_result(result: &str, count: u64) -> TestCounts {
    let mut counts = TestCounts::default();
    match result.to_ascii_lowercase().as_str() {
        "pass" => counts.passed = count,
        "fail" | "cancelled" => counts.failed = count,
        _ => counts.skipped = count,
    }
    counts
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}
