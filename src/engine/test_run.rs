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
    /// A report in the output.
    report: String,
    is_in_report: bool,
}

impl TestRunReader {
    /// Reads the next line, without its end.
    pub(crate) fn line(&mut self, line: &str) {
        let line = clean(line);
        if let Some(start) = junit::report_start(&line).filter(|_| !self.is_in_report) {
            self.is_in_report = true;
            self.add_to_report(start);
        } else if self.is_in_report {
            self.add_to_report(&line);
        } else {
            self.counts.line(&line);
            self.names.line(&line);
        }
        self.is_in_report &= !junit::is_report_end(&line);
    }

    fn add_to_report(&mut self, line: &str) {
        if self.report.len() + line.len() < REPORT_MAX {
            self.report.extend([line, "\n"]);
        }
    }

    /// Returns the results. `reports` are the reports that the check has written to files.
    pub(crate) fn finish(self, reports: &[String]) -> TestRun {
        let mut run = TestRun {
            counts: self.counts.finish(),
            names: self.names.finish(),
        };
        let reports = reports.iter().chain([&self.report]);
        let (mut counts, mut names) = (None, TestNames::default());
        for (found, named) in reports.filter_map(|report| junit::read(report)) {
            TestCounts::add(&mut counts, found);
            names.merge(named);
        }
        run.counts = run.counts.or(counts);
        if run.names.is_empty() {
            run.names = names;
        }
        run
    }
}
