//! Renders the results of checks in the XML format of `JUnit`, which CI systems read.

use super::LoopReport;
use super::facts::check_text;
use crate::engine::event::CheckReport;
use crate::engine::plain_text::visible;
use crate::store::log_tail::last_lines;
use crate::ui::one_line;
use std::fmt::Write as _;

/// Maximum number of bytes of a check's output.
const OUTPUT_MAX: usize = 16 << 10;

/// How the file begins. `ralph report` overwrites a file that begins like this.
pub(crate) const JUNIT_START: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ralph\">\n";

/// Returns the newest results of the loops' checks: a suite for each loop, and another one for the
/// results by the original tests.
pub(crate) fn junit(loops: &[LoopReport]) -> String {
    let mut out = JUNIT_START.to_owned();
    for report in loops {
        let state = report.state();
        suite(&mut out, report, report.name(), &state.checks, true);
        let look = &state.look.checks;
        if look.iter().any(Option::is_some) {
            let name = format!("{} by the original tests", report.name());
            suite(&mut out, report, &name, look, false);
        }
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(
    out: &mut String,
    report: &LoopReport,
    name: &str,
    results: &[Option<CheckReport>],
    has_logs: bool,
) {
    let checks = &report.state().plan.proof.checks;
    let ran = results.iter().flatten();
    let failures = ran.clone().filter(|result| !result.is_green()).count();
    let ms: u64 = ran.clone().map(|result| result.ms).sum();
    let name = escape(name);
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{}\" time=\"{}\">",
        checks.len(),
        checks.len().saturating_sub(ran.count()),
        seconds(ms)
    );
    for (at, check) in checks.iter().enumerate() {
        let result = results.get(at).and_then(Option::as_ref);
        let _ = write!(
            out,
            "    <testcase classname=\"{name}\" name=\"{}\" time=\"{}\">",
            escape(&one_line(&check.command)),
            seconds(result.map_or(0, |result| result.ms))
        );
        match result {
            None => out.push_str("<skipped message=\"the check did not run\"/>"),
            Some(result) if !result.is_green() => {
                let why = result.line.clone().unwrap_or_else(|| check_text(result));
                let log = report
                    .history
                    .dir
                    .check_log(report.state().iteration, &check.slug);
                let output = if has_logs {
                    last_lines(&log).0
                } else {
                    String::new()
                };
                let _ = write!(
                    out,
                    "<failure message=\"{}\" type=\"red\">{}</failure>",
                    escape(&one_line(&why)),
                    escape(&format!(
                        "{}\n{}",
                        check_text(result),
                        super::cut(&output, OUTPUT_MAX).0
                    ))
                );
            }
            Some(_) => {}
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("  </testsuite>\n");
}

fn seconds(ms: u64) -> String {
    format!("{:.3}", ms as f64 / 1000.0)
}

/// Escapes a text for an attribute or an element. Characters that XML cannot contain are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_no_characters_that_xml_cannot_contain() {
        assert_eq!(
            escape("]]> <a b='c'>\u{0}\u{1b}\u{ffff}&"),
            "]]&gt; &lt;a b=&apos;c&apos;&gt;\u{fffd}\u{fffd}\u{fffd}&amp;"
        );
    }
}
