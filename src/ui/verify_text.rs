//! Formats the result of `ralph verify`, and the question whether the commands of a receipt may run.

use super::{StyledText, TextStyle, one_line};
use crate::engine::format::plural;
use crate::engine::receipt::{Receipt, RecordedResult};
use crate::engine::test_counts::TestCounts;
use crate::lifecycle::verify::{VerifiedCheck, VerifyReport};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Number of digits of an ID that people see.
const ID_DIGITS: usize = 12;
/// Maximum number of lines and files that a row names.
const NAMED_MAX: usize = 3;

/// Describes what a receipt would run. Nothing is left out.
pub(crate) fn commands(receipt: &Receipt, file: &str, top: &Path) -> String {
    let dir = top.join(&receipt.directory);
    let (file, dir) = (one_line(file), one_line(&dir.display().to_string()));
    let mut text = format!("{file} runs these commands in a view of {dir}:\n");
    let setup = receipt.setup.iter().map(|setup| &setup.command);
    for command in setup.chain(receipt.checks.iter().map(|check| &check.command)) {
        for line in command.split('\n') {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Returns the line before the first check.
pub(crate) fn heading(receipt: &Receipt) -> String {
    let tree = receipt.graded.as_ref().map(|graded| graded.tree.as_str());
    let tree: String = tree.unwrap_or_default().chars().take(ID_DIGITS).collect();
    let originals = if receipt.touched.is_some() {
        ", by the original tests"
    } else {
        ""
    };
    let name = one_line(&receipt.name);
    let checks = plural(receipt.checks.len() as u64, "check");
    format!("verifying {name}: {checks} on the files {tree}{originals}\n")
}

/// Returns the row of a check.
pub(crate) fn check(check: &VerifiedCheck, color: bool) -> StyledText {
    let mut text = StyledText::new(color);
    let now = describe(&check.now);
    let (verdict, style) = if check.is_same() {
        (format!("same: {now}"), TextStyle::Green)
    } else {
        let before = check.record.decisive().map(describe).unwrap_or_default();
        (format!("differs: was {before}, is {now}"), TextStyle::Red)
    };
    text.push("  ")
        .push_styled(&format!("{:<8}", "check"), TextStyle::Dim);
    text.push(" ")
        .push(&one_line(&check.record.command))
        .push(" ");
    text.push_styled(&verdict, style);
    if let Some(line) = check.line.as_ref().filter(|_| !check.is_same()) {
        text.push(&format!(": {}", one_line(line)));
    }
    text.push("\n");
    text
}

/// Returns the rows after the last check, and the verdict.
pub(crate) fn result(receipt: &Receipt, report: &VerifyReport, color: bool) -> StyledText {
    let mut text = StyledText::new(color);
    let mut row = |name: &str, value: &str, style: TextStyle| {
        text.push("  ")
            .push_styled(&format!("{name:<8}"), TextStyle::Dim);
        text.push(" ")
            .push_styled(&one_line(value), style)
            .push("\n");
    };
    if !report.altered_guards.is_empty() {
        let names = report.altered_guards.iter().take(NAMED_MAX).cloned();
        let names: Vec<String> = names.collect();
        let total = report.altered_guards.len();
        let more = if total > NAMED_MAX { ", …" } else { "" };
        let files = plural(total as u64, "file");
        let value = format!(
            "{files} at the loop's start were not as the receipt says: {}{more}",
            names.join(", ")
        );
        row("guards", &value, TextStyle::Red);
    }
    if let Some(review) = report
        .review
        .as_ref()
        .and_then(|review| review.describe(NAMED_MAX))
    {
        row("review", &review, TextStyle::Yellow);
    }
    for note in &report.notes {
        row("note", note, TextStyle::Yellow);
    }
    let total = report.checks.len() as u64;
    let different = report
        .checks
        .iter()
        .filter(|check| !check.is_same())
        .count();
    let outcome = receipt.outcome.as_ref().map_or("", |outcome| &outcome.kind);
    let (verdict, style) = if report.is_verified() {
        let verdict = match total {
            1 => "the check has the same result".to_owned(),
            total => format!("all {total} checks have the same results"),
        };
        (
            format!("✔ verified ({outcome}): {verdict}"),
            TextStyle::Green,
        )
    } else if different > 0 {
        let verdict = format!("✘ differs: {different} of {} ", plural(total, "check"));
        let has = if different == 1 {
            "has another result"
        } else {
            "have other results"
        };
        (verdict + has, TextStyle::Red)
    } else {
        let verdict = "✘ differs: the original tests or settings are others".to_owned();
        (verdict, TextStyle::Red)
    };
    text.push_styled(&verdict, style).push("\n");
    text
}

/// Returns the result as a JSON object.
pub(crate) fn object(receipt: &Receipt, report: &VerifyReport) -> Value {
    let checks = report.checks.iter().map(|check| {
        json!({
            "name": check.record.name,
            "command": check.record.command,
            "recorded": check.record.decisive(),
            "now": check.now,
            "same": check.is_same(),
        })
    });
    json!({
        "verdict": if report.is_verified() { "verified" } else { "differs" },
        "name": receipt.name,
        "tree": receipt.graded.as_ref().map(|graded| &graded.tree),
        "checks": checks.collect::<Vec<_>>(),
        "altered_guards": report.altered_guards,
        "review": report.review,
        "notes": report.notes,
    })
}

/// Describes a result: `green, 12 passed, 1 skipped`.
fn describe(result: &RecordedResult) -> String {
    let mut text = match (result.green, result.exit.code, result.exit.signal) {
        (true, ..) => "green".to_owned(),
        (false, ..) if result.timed_out => "red (timeout)".to_owned(),
        (false, Some(code), _) => format!("red (exit {code})"),
        (false, None, signal) => format!("red (signal {})", signal.unwrap_or(0)),
    };
    if let Some(TestCounts {
        passed,
        failed,
        skipped,
        ..
    }) = result.tests
    {
        for (count, what) in [(passed, "passed"), (failed, "failed"), (skipped, "skipped")] {
            if count > 0 || what == "passed" {
                let _ = write!(text, ", {count} {what}");
            }
        }
    }
    text
}
