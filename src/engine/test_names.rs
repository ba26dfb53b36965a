//! Reads which tests passed and failed from the output of a test runner.
//!
//! A number of tests can stay the same while tests are exchanged, so names say more. Not every
//! runner prints them: names are compared only if every test that passed has one.

use super::fnv;
use super::stable_name::stable_name;
use super::test_counts::TestCounts;
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Maximum number of names that are kept, and the maximum length of one in bytes.
const NAMES_MAX: usize = 200_000;
const NAME_MAX: usize = 400;

/// Maximum number of missing tests that a report names.
const MISSING_MAX: usize = 5;

/// The tests that a check ran, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestNames {
    /// Tests that passed, and how many of that name did.
    passed: BTreeMap<String, u32>,
    /// Tests that failed. A name may be followed by ` - ` and the runner's message.
    failed: BTreeSet<String>,
    /// Whether there may be more tests than these.
    pub(crate) is_cut: bool,
}

/// Tests that ran at the start of a loop and do not pass now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissingTests {
    /// How many there are.
    pub total: u64,
    /// The names of the first of them. Empty if the record of the start cannot be read any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Where the names of the tests that ran at the start are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedTests {
    /// How many tests are recorded.
    pub total: u64,
    /// The digest of the record.
    pub digest: String,
}

impl TestNames {
    pub(super) fn pass(&mut self, name: &str) {
        if let Some(name) = self.admit(name) {
            let count = self.passed.entry(name).or_default();
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn fail(&mut self, name: &str) {
        let name = self.admit(name);
        self.failed.extend(name);
    }

    /// Returns the name as it is kept; `None` if there is no room for more.
    fn admit(&mut self, name: &str) -> Option<String> {
        let name = stable_name(name.trim());
        if self.total() >= NAMES_MAX {
            self.is_cut = true;
            return None;
        }
        (!name.is_empty()).then(|| bounded(&name))
    }

    fn total(&self) -> usize {
        self.passed.len() + self.failed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total() == 0
    }

    fn is_passed(&self, name: &str) -> bool {
        self.passed.contains_key(name)
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        self.failed.extend(other.failed);
        for (name, count) in other.passed {
            let sum = self.passed.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Returns whether every test that passed has a name.
    pub(crate) fn is_complete(&self, counts: Option<TestCounts>) -> bool {
        let named: u64 = self.passed.values().map(|count| u64::from(*count)).sum();
        !self.is_cut && counts.is_none_or(|counts| counts.passed <= named)
    }

    /// Compares this run with the one at the start. Returns the tests that did not pass now; `None`
    /// if all did, or if that is unknown.
    pub(crate) fn compare(
        &self,
        counts: Option<TestCounts>,
        start: &Self,
        start_counts: Option<TestCounts>,
    ) -> Option<MissingTests> {
        // Some runners name tests only if one of them fails.
        let is_named_if_green = start.failed.is_empty() && start.is_complete(start_counts);
        let is_comparable = if self.is_empty() {
            !self.is_cut && is_named_if_green
        } else {
            self.is_complete(counts)
        };
        is_comparable.then(|| self.missing(start)).flatten()
    }

    /// Returns the tests of the start that did not pass in this run; `None` if all did.
    pub(super) fn missing(&self, start: &Self) -> Option<MissingTests> {
        let passed_then = start.passed.iter().filter_map(|(name, count)| {
            let now = self.passed.get(name).unwrap_or(&0);
            (now < count).then_some(name.as_str())
        });
        let failed_then = start.failed.iter().filter_map(|line| {
            let mut names = possible_names(line);
            let is_there = names.any(|name| self.is_passed(name) || start.is_passed(name));
            (!is_there).then(|| shown_name(line))
        });
        let mut missing = MissingTests::default();
        for name in passed_then.chain(failed_then) {
            missing.total += 1;
            if missing.names.len() < MISSING_MAX {
                missing.names.push(name.to_owned());
            }
        }
        (missing.total > 0).then_some(missing)
    }

    /// Returns the names as lines of text, for the record of the start.
    pub(crate) fn to_text(&self) -> String {
        let passed = self.passed.iter();
        let passed = passed.map(|(name, count)| format!("{count} {name}\n"));
        let failed = self.failed.iter().map(|name| format!("! {name}\n"));
        passed.chain(failed).collect()
    }

    /// Reads what [`to_text`](Self::to_text) has written.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut names = Self::default();
        for (mark, name) in text.lines().filter_map(|line| line.split_once(' ')) {
            // Earlier versions recorded names with their random parts.
            let name = stable_name(name).into_owned();
            match mark.parse::<u32>() {
                Ok(count) => {
                    let sum = names.passed.entry(name).or_default();
                    *sum = sum.saturating_add(count);
                }
                Err(_) => drop(names.failed.insert(name)),
            }
        }
        names
    }

    /// Returns where the names are recorded, given the digest of the record.
    pub(crate) fn recorded(&self, digest: String) -> RecordedTests {
        let total = self.total() as u64;
        RecordedTests { total, digest }
    }
}

impl MissingTests {
    /// The result if the record of the start cannot be read any more.
    pub(crate) fn unreadable(start: &RecordedTests) -> Self {
        Self {
            total: start.total,
            names: Vec::new(),
        }
    }

    /// Describes the missing tests: `2 tests of the start did not pass: a, b`.
    pub(super) fn describe(&self, name: impl Fn(&str) -> String) -> String {
        let total = self.total;
        if self.names.is_empty() {
            return format!("the record of the {total} tests of the start was changed or deleted");
        }
        let noun = if total == 1 { "test" } else { "tests" };
        let names: Vec<String> = self.names.iter().map(|text| name(text)).collect();
        let more = if total > names.len() as u64 {
            ", …"
        } else {
            ""
        };
        let names = names.join(", ");
        format!("{total} {noun} of the start did not pass: {names}{more}")
    }
}

/// Shortens a name, so that it still differs from others with the same beginning.
fn bounded(name: &str) -> String {
    if name.len() <= NAME_MAX {
        return name.to_owned();
    }
    let mut end = NAME_MAX;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… {:016x}", &name[..end], fnv::hash(name.as_bytes()))
}

/// Returns what may be the name in a line that may end with a message: names can contain the
/// separator too.
fn possible_names(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.match_indices(" - ").map(|(at, _)| at);
    ends.chain([line.len()]).map(|end| &line[..end])
}

/// Returns the name in such a line, for people. Only pytest adds messages.
fn shown_name(line: &str) -> &str {
    let name = possible_names(line).next().unwrap_or(line);
    if name.contains("::") { name } else { line }
}

/// `test sums ... ok` by cargo, `test_sums (sum.Sums.test_sums) ... ok` by unittest.
static DOTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?P<test>test )?(?P<name>\S.*?)(?: - (?:should panic|compile(?: fail)?))? \.\.\. (?P<result>ok|FAIL|FAILED|ERROR)(?: <[\d.]+s>)?$",
    )
    .expect("a constant pattern")
});

/// `test_sums (sum.Sums.test_sums)`, as unittest names a test. If the test has a description, that
/// follows on a line of its own.
static UNITTEST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\S+ \([\w.<>]+\)(?: \[.*\]| \(.*\))*$").expect("valid"));

/// The line of a documentation test, which moves with the code.
static DOC_LINE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r" \(line \d+\)$").expect("a constant pattern"));

/// `PASS [   0.012s] (1/3) package sums`, as nextest prints it.
static NEXTEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:TRY \d+ )?(?P<result>PASS|LEAK|FAIL|TIMEOUT|ABORT|SIG[A-Z]+) +\[[ >\d.s]+\] (?:\( *\d+/\d+\) )?(?P<name>.+)$",
    )
    .expect("a constant pattern")
});

/// `PASSED tests/test_sum.py::test_sums`, as pytest prints it with `-rA`.
static PYTEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?P<result>PASSED|XPASS|FAILED|ERROR) (?P<name>\S[^:]*\.\w+::.*)$")
        .expect("valid")
});

/// `tests/test_sum.py::test_sums PASSED [ 50%]`, as pytest prints it with `-v`.
static PYTEST_VERBOSE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?P<name>\S[^:]*\.\w+::.*?) (?P<result>PASSED|XPASS|FAILED|ERROR) *(?:\[ *\d+%\])?$",
    )
    .expect("a constant pattern")
});

/// `--- PASS: TestSum (0.00s)`, as `go test -v` prints it.
static GO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^--- (?P<result>PASS|FAIL|SKIP): (?P<name>\S+) \([\d.]+s\)$").expect("valid")
});

/// `not ok 2 - sums # SKIP`, as in the Test Anything Protocol.
static TAP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?P<not>not )?ok \d+(?: -)? (?P<name>[^#]+)(?P<directive>#.*)?$").expect("valid")
});

/// `✔ sums (0.5ms)`, as runners for JavaScript print it.
static TREE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?P<result>[✔✓√✖✕×✗]) (?P<name>.+?)(?P<directive> # (?:SKIP|TODO).*)?",
        r"(?: \(?[\d.]+ ?m?s\)?)?$"
    ))
    .expect("a constant pattern")
});

/// `✓ 34 modules transformed.` or `✓ Generating static pages (5/5)`, as builds print it.
static BUILD_STEP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\d+ modules? transformed\b|\(\d+/\d+\)$").expect("a constant pattern")
});

/// A file of tests in the place of a test, because it could not be loaded.
static TEST_FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\S+\.[cm]?[jt]sx?$").expect("a constant pattern"));

/// Collects names from the lines of a check's output, which must be cleaned.
#[derive(Default)]
pub(crate) struct NameReader {
    names: TestNames,
    /// Names with their result after dots. Nextest repeats the output of tests that failed.
    dots: TestNames,
    /// Whether the line before was the name of a test of unittest.
    is_described: bool,
    is_nextest: bool,
    /// Names that pytest printed, some of them twice, and whether the test passed.
    pytest: BTreeSet<(String, bool)>,
    /// Names in a tree. Vitest prints such a tree only for files with failures.
    tree: TestNames,
    is_vitest: bool,
}

impl NameReader {
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim();
        let is_described = std::mem::take(&mut self.is_described);
        let Some(first) = line.chars().next().filter(|_| line.len() <= 4096) else {
            return;
        };
        match first {
            '-' => self.go(line),
            '✔' | '✓' | '√' | '✖' | '✕' | '×' | '✗' => self.tree(line),
            'T' if line.starts_with("Test Files ") => self.is_vitest = true,
            _ if (line.starts_with("ok ") || line.starts_with("not ok ")) => self.tap(line),
            _ if line.contains("::") && self.pytest(line) => {}
            'P' | 'L' | 'F' | 'T' | 'A' | 'S' if self.nextest(line) => {}
            _ if line.contains(" ... ") => self.dots(line, is_described),
            _ => self.is_described = line.ends_with(')') && UNITTEST.is_match(line),
        }
    }

    /// Returns the names in all lines so far. Without a summary, check marks and dots are those of
    /// a build.
    pub(crate) fn finish(mut self, has_summary: bool) -> TestNames {
        if !has_summary {
            self.tree = TestNames::default();
            self.dots = TestNames::default();
        }
        for (name, is_passed) in self.pytest {
            if is_passed {
                self.names.pass(&name);
            } else {
                self.names.fail(&name);
            }
        }
        if self.is_vitest {
            let has_file = |name: &str| name.contains(" > ");
            self.tree.passed.retain(|name, _| has_file(name));
            self.tree.failed.retain(|name| has_file(name));
        }
        if !self.is_nextest {
            self.names.merge(self.dots);
        }
        self.names.merge(self.tree);
        self.names
    }

    fn go(&mut self, line: &str) {
        if let Some(found) = GO.captures(line) {
            match &found["result"] {
                "PASS" => self.names.pass(&found["name"]),
                "FAIL" => self.names.fail(&found["name"]),
                _ => {}
            }
        }
    }

    fn tap(&mut self, line: &str) {
        let Some(found) = TAP.captures(line) else {
            return;
        };
        let directive = found.name("directive").map_or("", |text| text.as_str());
        let directive = directive.to_ascii_uppercase();
        if directive.contains("# SKIP") || directive.contains("# TODO") {
            return;
        }
        match found.name("not") {
            None => self.names.pass(&found["name"]),
            Some(_) if TEST_FILE.is_match(found["name"].trim()) => {}
            Some(_) => self.names.fail(&found["name"]),
        }
    }

    fn tree(&mut self, line: &str) {
        let Some(found) = TREE.captures(line) else {
            return;
        };
        let name = &found["name"];
        // Vitest counts the tests of a file in this place.
        let is_file =
            name.contains(" tests)") || name.contains(" test)") || name.contains(" tests |");
        let is_build_step = BUILD_STEP.is_match(name);
        if is_file || is_build_step || found.name("directive").is_some() || name.ends_with(':') {
            return;
        }
        match &found["result"] {
            "✔" | "✓" | "√" => self.tree.pass(name),
            _ if TEST_FILE.is_match(name) => {}
            _ => self.tree.fail(name),
        }
    }

    fn pytest(&mut self, line: &str) -> bool {
        let found = PYTEST.captures(line);
        let Some(found) = found.or_else(|| PYTEST_VERBOSE.captures(line)) else {
            return false;
        };
        let is_passed = matches!(&found["result"], "PASSED" | "XPASS");
        // One more than there is room for, so that the rest is missed.
        if self.pytest.len() <= NAMES_MAX {
            let name = found["name"].trim().to_owned();
            self.pytest.insert((name, is_passed));
        }
        true
    }

    fn nextest(&mut self, line: &str) -> bool {
        let Some(found) = NEXTEST.captures(line) else {
            return false;
        };
        self.is_nextest = true;
        match &found["result"] {
            "PASS" | "LEAK" => self.names.pass(&found["name"]),
            _ => self.names.fail(&found["name"]),
        }
        true
    }

    fn dots(&mut self, line: &str, is_described: bool) {
        let Some(found) = DOTS.captures(line) else {
            return;
        };
        // `Installing dependencies ... ok` is no test.
        let is_test = found.name("test").is_some() || UNITTEST.is_match(&found["name"]);
        if !is_test && !is_described {
            return;
        }
        // Python reports a module that it cannot import as a test of this class.
        if found["name"].contains("unittest.loader._FailedTest") {
            return;
        }
        let name = DOC_LINE.replace(&found["name"], "");
        match &found["result"] {
            "ok" => self.dots.pass(&name),
            _ => self.dots.fail(&name),
        }
    }
}
