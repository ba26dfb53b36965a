//! Reads test results in the XML format of `JUnit`, which many runners can write.

use super::plain_text::clean;
use super::test_counts::TestCounts;
use super::test_names::TestNames;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;

/// The start of a report in other output.
pub(crate) const START: &str = "<testsuite";

/// If a report starts in a line of other output, returns what ends it.
pub(crate) fn report_start(line: &str) -> Option<&'static str> {
    let rest = line.split_once(START)?.1;
    Some(if rest.starts_with('s') {
        "</testsuites>"
    } else {
        "</testsuite>"
    })
}

/// A test whose element is open.
struct OpenTest {
    class: String,
    name: String,
    outcome: TestOutcome,
}

#[derive(Clone, Copy, PartialEq)]
enum TestOutcome {
    Passed,
    Failed,
    Skipped,
    /// No test: a file that could not be loaded.
    NotLoaded,
}

/// Reads the results in a report, up to the first error in its syntax; `None` if it has none.
pub(crate) fn read(report: &str) -> Option<(TestCounts, TestNames)> {
    let mut reader = Reader::from_str(report);
    let config = reader.config_mut();
    config.check_end_names = false;
    let (mut counts, mut names) = (TestCounts::default(), TestNames::default());
    let mut open: Option<OpenTest> = None;
    let mut has_tests = false;
    loop {
        let (element, is_empty) = match reader.read_event() {
            Ok(Event::Start(element)) => (element, false),
            Ok(Event::Empty(element)) => (element, true),
            Ok(Event::End(end)) => {
                if end.local_name().as_ref() == "testcase" {
                    finish(open.take(), &mut counts, &mut names);
                }
                continue;
            }
            Ok(Event::Eof) => break,
            Ok(_) => continue,
            Err(_) => {
                names.is_cut = true;
                break;
            }
        };
        match element.local_name().as_ref() {
            "testcase" => {
                has_tests = true;
                finish(open.take(), &mut counts, &mut names);
                open = Some(OpenTest {
                    class: attribute(&element, "classname"),
                    name: attribute(&element, "name"),
                    outcome: TestOutcome::Passed,
                });
                if is_empty {
                    finish(open.take(), &mut counts, &mut names);
                }
            }
            "failure" | "error" => {
                if let Some(test) = &mut open {
                    let is_collection = test.class.is_empty()
                        && attribute(&element, "message").contains("collection");
                    test.outcome = if is_collection {
                        TestOutcome::NotLoaded
                    } else {
                        TestOutcome::Failed
                    };
                }
            }
            "skipped" => {
                let test = open.as_mut();
                let test = test.filter(|test| test.outcome == TestOutcome::Passed);
                if let Some(test) = test {
                    test.outcome = TestOutcome::Skipped;
                }
            }
            _ => {}
        }
    }
    names.is_cut |= open.is_some();
    has_tests.then_some((counts, names))
}

fn finish(test: Option<OpenTest>, counts: &mut TestCounts, names: &mut TestNames) {
    let Some(test) = test else {
        return;
    };
    let name = format!("{} {}", test.class, test.name);
    match test.outcome {
        TestOutcome::Passed => {
            counts.passed += 1;
            names.pass(&name);
        }
        TestOutcome::Failed => {
            counts.failed += 1;
            names.fail(&name);
        }
        TestOutcome::NotLoaded => counts.failed += 1,
        TestOutcome::Skipped => counts.skipped += 1,
    }
}

/// Returns the value of an attribute on one clean line; empty if the element has none.
fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    let value = element.try_get_attribute(name).ok().flatten();
    let text = value.map(|value| value.value.into_owned());
    let text = text.unwrap_or_default();
    let text = quick_xml::escape::unescape(&text).unwrap_or(Cow::Borrowed(&text));
    clean(&text.replace(['\n', '\r', '\t'], " ")).into_owned()
}
