//! Removes from a check's output what test runners print only because ralph asks them for the names
//! of tests.

use super::plain_text::clean;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What ralph asked test runners for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedNames {
    pub(crate) pytest: Option<AskedPytest>,
    pub(crate) go: Option<AskedGo>,
}

/// What pytest was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedPytest {
    /// Whether the user asked for tests that passed although they were expected to fail.
    pub(crate) shows_xpass: bool,
}

/// How `go test` was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedGo {
    /// With a list of packages: it prints nothing but a line for a package that passes.
    Packages,
    /// For the current directory: it prints what the tests print.
    Directory,
    /// By another program.
    Unknown,
}

static SUMMARY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^=+ short test summary info =+$").expect("a constant pattern"));

static XPASSES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^=+ XPASSES =+$").expect("a constant pattern"));

/// Pytest's last line, with `=` on both sides or, with `-q`, without.
static SUMMARY_END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^=|^\d+ \w+(?:, \d+ [\w ]+)* in [\d.]+s").expect("a constant pattern")
});

/// `=== RUN   TestSum`
static GO_MARKER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^=== (?:RUN|PAUSE|CONT|NAME) +(?P<name>\S+)$").expect("a constant pattern")
});

/// `    --- PASS: TestSum/one (0.00s)`
static GO_RESULT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^ *--- (?P<result>PASS|FAIL|SKIP): (?P<name>\S+) \([\d.]+s\)$")
        .expect("a constant pattern")
});

/// `ok  <TAB>example.com/sums<TAB>0.002s`
static GO_PACKAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?P<result>ok  |FAIL)\t\S+(?:\t| \[)").expect("a constant pattern")
});

/// A package of a list that was not run, or not again.
static GO_LISTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:\?   \t|ok  \t\S+\t\(cached\))").expect("a constant pattern")
});

/// What a test has logged: `    sum_test.go:3: text`, with the test's name in Go 1.14.
static GO_LOG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^    (?:\S+: )?\S+\.go:\d+: ").expect("a constant pattern"));

/// What `go test` prints between the last test of a package and the line about the package.
static GO_END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:PASS|coverage: .*|testing: warning: no tests to run)$")
        .expect("a constant pattern")
});

/// Returns the output without the lines that were printed only because names were asked for; `None`
/// if there are no such lines.
///
/// Of a Go package that fails, lines that a failed test logs stay where `go test -v` prints them:
/// before the line with the test's result, not after it.
pub(crate) fn without_added_lines(output: &[u8], asked: AskedNames) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = output.split_inclusive(|byte| *byte == b'\n').collect();
    let texts: Vec<String> = lines.iter().map(|line| text(line)).collect();
    let mut is_added = vec![false; lines.len()];
    if let Some(pytest) = asked.pytest {
        mark_pytest(&texts, pytest, &mut is_added);
    }
    if let Some(go) = asked.go {
        mark_go(&texts, go, &mut is_added);
    }
    let kept = lines.iter().zip(&is_added).filter(|(_, added)| !**added);
    is_added
        .contains(&true)
        .then(|| kept.flat_map(|(line, _)| *line).copied().collect())
}

/// Returns the text of a line as a terminal would show it.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    clean(&String::from_utf8_lossy(line)).trim_end().to_owned()
}

/// Marks the rows of tests that passed in pytest's summary, and the summary's heading if it has no
/// other rows.
fn mark_pytest(lines: &[String], asked: AskedPytest, is_added: &mut [bool]) {
    enum Section {
        Other,
        /// The index of the heading, and whether there are rows of other tests.
        Summary(usize, bool),
        Xpasses,
    }
    let is_row = |line: &str| {
        let row = line.strip_prefix("PASSED ");
        let xpass = line.strip_prefix("XPASS ").filter(|_| !asked.shows_xpass);
        row.or(xpass).is_some_and(|name| name.contains("::"))
    };
    let mut section = Section::Other;
    for (index, line) in lines.iter().enumerate() {
        match section {
            Section::Summary(heading, has_rows) if SUMMARY_END.is_match(line) => {
                is_added[heading] = !has_rows;
                section = Section::Other;
            }
            Section::Summary(..) if is_row(line) => is_added[index] = true,
            Section::Summary(heading, _) => section = Section::Summary(heading, true),
            Section::Xpasses if line.starts_with("===") => section = Section::Other,
            Section::Xpasses => is_added[index] = true,
            Section::Other => {}
        }
        if SUMMARY.is_match(line) {
            section = Section::Summary(index, false);
        } else if XPASSES.is_match(line) && !asked.shows_xpass {
            is_added[index] = true;
            section = Section::Xpasses;
        }
    }
    if let Section::Summary(heading, has_rows) = section {
        is_added[heading] = !has_rows;
    }
}

/// Marks what only `go test -v` prints, package by package.
fn mark_go(lines: &[String], asked: AskedGo, is_added: &mut [bool]) {
    let ends = || lines.iter().filter(|line| GO_PACKAGE.is_match(line));
    let is_list = match asked {
        AskedGo::Packages => true,
        AskedGo::Directory => false,
        AskedGo::Unknown => ends().count() > 1 || lines.iter().any(|line| GO_LISTED.is_match(line)),
    };
    let mut start = None;
    for (index, line) in lines.iter().enumerate() {
        if start.is_none() && GO_MARKER.is_match(line) {
            start = Some(index);
        }
        let Some(end) = GO_PACKAGE.captures(line) else {
            continue;
        };
        let is_silent = is_list && &end["result"] == "ok  ";
        match start.take() {
            Some(start) if is_silent => is_added[start..index].fill(true),
            Some(start) => mark_go_tests(&lines[start..index], &mut is_added[start..index]),
            None => {}
        }
        let before = (0..index).rev().take_while(|before| {
            // A package without tests has no other lines.
            is_silent && GO_END.is_match(&lines[*before])
        });
        before.for_each(|before| is_added[before] = true);
    }
    if let Some(start) = start {
        mark_go_tests(&lines[start..], &mut is_added[start..]);
    }
}

/// Marks what only `go test -v` prints about the tests of a package, and what tests log that did not
/// fail.
fn mark_go_tests(lines: &[String], is_added: &mut [bool]) {
    let mut results = BTreeMap::new();
    for found in lines.iter().filter_map(|line| GO_RESULT.captures(line)) {
        let is_failed = &found["result"] == "FAIL";
        *results.entry(found["name"].to_owned()).or_insert(false) |= is_failed;
    }
    let (mut is_fine, mut is_logged) = (false, false);
    for (line, is_added) in lines.iter().zip(is_added) {
        if let Some(marker) = GO_MARKER.captures(line) {
            *is_added = true;
            is_fine = results.get(&marker["name"]) == Some(&false);
            is_logged = false;
        } else if let Some(result) = GO_RESULT.captures(line) {
            *is_added = &result["result"] != "FAIL";
            (is_fine, is_logged) = (false, false);
        } else if is_fine {
            is_logged = GO_LOG.is_match(line) || (is_logged && line.starts_with("        "));
            *is_added = is_logged;
        }
    }
}
