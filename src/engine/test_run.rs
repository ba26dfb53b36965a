//! Reads the results of tests from everything that a check printed and wrote.

use super::junit;
use super::plain_text::clean;
use super::test_counts::{CountReader, TestCounts};
use super::test_names::{NameReader, TestNames};

/// Maximum size of the reports in a check's output, in bytes.
const REPORT_MAX: usize = 32 << 20;

/// The results of the tests that a check ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TestRun {
    /// How many tests passed, failed and were skipped; `None` if nothing says so.
    pub(crate) counts: Option<TestCounts>,
    /// Their names, as far as there are any.
    pub(crate) names: TestNames,
}

/// Collects results from the lines of a check's output.
#[derive(Default)]
pub(crate) struct TestRunReader {
    counts: CountReader,
    names: NameReader,
    /// A report in the output that has not ended, with the text that ends it.
    report: Option<(String, &'static str)>,
    /// The results in the reports that have ended.
    reported: Option<TestCounts>,
    reported_names: TestNames,
}

impl TestRunReader {
    /// Reads the next line, without its end.
    pub(crate) fn line(&mut self, line: &str) {
        let line = clean(line);
        let start = junit::report_start(&line).filter(|_| self.report.is_none());
        self.report = self.report.take().or(start.map(|end| (String::new(), end)));
        let Some((report, end)) = &mut self.report else {
            return self.plain_line(&line);
        };
        report.extend([&line, "\n"]);
        if line.contains(*end) || report.len() > REPORT_MAX {
            self.end_report();
        }
    }

    fn plain_line(&mut self, line: &str) {
        self.counts.line(line);
        self.names.line(line);
    }

    /// Reads the report. What only looked like the start of one is output like any other.
    fn end_report(&mut self) {
        let Some((report, end)) = self.report.take() else {
            return;
        };
        let start = report.find(junit::START).unwrap_or_default();
        let found = junit::read(&report[start..]);
        if found.is_none() || !report.contains(end) {
            report.lines().for_each(|line| self.plain_line(line));
        }
        self.add_report(found);
    }

    fn add_report(&mut self, found: Option<(TestCounts, TestNames)>) {
        if let Some((counts, names)) = found {
            TestCounts::add(&mut self.reported, counts);
            self.reported_names.merge(names);
        }
    }

    /// Returns the results. `reports` are the reports that the check has written to files.
    pub(crate) fn finish(mut self, reports: &[String]) -> TestRun {
        self.end_report();
        for report in reports {
            self.add_report(junit::read(report));
        }
        let counts = self.counts.finish();
        let mut names = self.names.finish(counts.is_some());
        if names.is_empty() {
            names = self.reported_names;
        }
        let counts = counts.or(self.reported);
        TestRun { counts, names }
    }
}
