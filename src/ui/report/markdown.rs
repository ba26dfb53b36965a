//! Renders a report as Markdown, for pull requests, chats and job summaries.

use super::facts::{checks_text, end_text, receipt_rows, result_text};
use super::findings::Severity;
use super::{LoopReport, MARKDOWN_START, cut};
use crate::engine::display::code_span;
use crate::engine::format::{dollars, duration};
use crate::engine::plain_text::visible;
use crate::engine::receipt::RecordedResult;
use crate::lifecycle::history::{IterationActivity, PastIteration};
use crate::ui::{one_line, truncate_to_width};
use std::fmt::Write as _;

/// Maximum number of iterations in the table. The newest are shown.
const ROWS_MAX: usize = 100;
/// Maximum number of bytes of an agent's last words.
const WORDS_MAX: usize = 2000;

/// Returns the report about these loops. `title` names it if there are several.
pub(crate) fn markdown(loops: &[LoopReport], title: &str) -> String {
    let mut out = MARKDOWN_START.to_owned();
    let is_single = loops.len() == 1;
    if !is_single {
        let _ = writeln!(out, "# {}\n", escape(title));
        if loops.is_empty() {
            out.push_str("No loop ran.\n");
        } else {
            out.push_str("| Loop | Verdict | Review | Effort |\n|---|---|---|---|\n");
        }
        for report in loops {
            let _ = writeln!(
                out,
                "| {} | {} {} | {} | {} |",
                cell(report.name()),
                report.tone().sign(),
                escape(&truncate_to_width(&report.verdict(), 200)),
                report.finding_counts(),
                super::facts::effort(report)
            );
        }
        out.push('\n');
    }
    for report in loops {
        loop_text(&mut out, report, if is_single { "#" } else { "##" });
    }
    out
}

fn loop_text(out: &mut String, report: &LoopReport, level: &str) {
    let _ = writeln!(out, "{level} {}\n", escape(report.name()));
    let verdict = truncate_to_width(&report.verdict(), 500);
    let _ = writeln!(out, "**{} {}**\n", report.tone().sign(), escape(&verdict));
    for number in report.numbers() {
        let note = if number.note.is_empty() {
            String::new()
        } else {
            format!(" {}", escape(&number.note))
        };
        let _ = writeln!(out, "- {}: {}{note}", number.name, escape(&number.value));
    }
    for (name, value) in report.circumstances() {
        let value = truncate_to_width(&value, 300);
        let _ = writeln!(out, "- {}: {}", capitalized(name), code_span(&value));
    }
    let _ = writeln!(out, "\n{level}# Review first\n");
    if report.findings.is_empty() {
        out.push_str("Nothing stands out.\n");
    }
    for finding in &report.findings {
        let sign = match finding.severity {
            Severity::Alarm => "🔴",
            Severity::Warning => "🟡",
            Severity::Notice => "⚪",
        };
        let title = truncate_to_width(&finding.title, 300);
        let _ = writeln!(out, "- {sign} {}", escape(&title));
        for detail in &finding.details {
            let _ = writeln!(out, "  - {}", code_span(detail));
        }
    }
    iterations(out, report, level);
    receipt(out, report, level);
    let commands = report.commands();
    if !commands.is_empty() {
        let _ = writeln!(out, "\n{level}# Next\n");
        for (name, command) in commands {
            let _ = writeln!(out, "- {}: {}", capitalized(name), code_span(&command));
        }
    }
    out.push('\n');
}

fn iterations(out: &mut String, report: &LoopReport, level: &str) {
    let all = report.iterations();
    let Some(newest) = all.last() else {
        return;
    };
    let _ = writeln!(out, "\n{level}# Iterations\n");
    let hidden = all.len().saturating_sub(ROWS_MAX);
    if hidden > 0 {
        let _ = writeln!(
            out,
            "The newest {ROWS_MAX}; {hidden} earlier ones are left out.\n"
        );
    }
    out.push_str("| # | Agent | End | Time | Cost | Checks | First failing line |\n");
    out.push_str("|--:|---|---|--:|--:|---|---|\n");
    for one in &all[hidden..] {
        row(out, report, one);
    }
    let words = IterationActivity::read(&report.history.dir, newest.number).last_words();
    if !words.is_empty() {
        let (words, left) = cut(&words, WORDS_MAX);
        let more = if left > 0 { "…" } else { "" };
        let fence = fence(words);
        let _ = writeln!(
            out,
            "\nThe agent's last words:\n\n{fence}text\n{}{more}\n{fence}",
            visible(words)
        );
    }
}

fn row(out: &mut String, report: &LoopReport, one: &PastIteration) {
    let record = one.record.as_ref();
    let time = record.map(|record| duration(record.ms));
    let cost = record.and_then(|record| record.cost_usd).map(dollars);
    let line = one
        .first_failing_line()
        .map(|line| truncate_to_width(line, 100));
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} | {} | {} |",
        one.number,
        cell(&one.agent),
        escape(&end_text(one, report.history.liveness)),
        time.unwrap_or_default(),
        cost.unwrap_or_default(),
        checks_text(one),
        line.map(|line| cell(&line)).unwrap_or_default()
    );
}

fn receipt(out: &mut String, report: &LoopReport, level: &str) {
    let Some(receipt) = &report.receipt else {
        return;
    };
    let _ = writeln!(out, "\n{level}# Receipt\n");
    if !receipt.checks.is_empty() {
        out.push_str("| Check | Result | By the original tests |\n|---|---|---|\n");
    }
    let text = |result: &Option<RecordedResult>| {
        let text = result.as_ref().map(result_text);
        text.unwrap_or_else(|| "not run".into())
    };
    for check in &receipt.checks {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cell(&truncate_to_width(&one_line(&check.command), 100)),
            text(&check.result),
            text(&check.original)
        );
    }
    out.push('\n');
    for (name, value) in receipt_rows(receipt) {
        let value = truncate_to_width(&value, 300);
        let _ = writeln!(out, "- {}: {}", capitalized(name), code_span(&value));
    }
}

fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Returns a fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Formats a text as a code span in a table, where a bar would end the cell. Empty for no text.
fn cell(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    code_span(text).replace('|', "\\|")
}

/// Escapes a text so that Markdown shows it as it is, without links, mentions or markup.
fn escape(text: &str) -> String {
    let text = one_line(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = visible(&text)
        .chars()
        .collect::<Vec<_>>()
        .into_iter()
        .peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let is_markup = "\\`*_[]<>|~&@#$".contains(c);
        // These make a link of an address.
        let is_link = (c == ':' && next == Some('/')) || (c == '.' && last == 'w');
        if is_markup || is_link {
            out.push('\\');
        }
        out.push(c);
        last = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup_or_a_link() {
        assert_eq!(
            escape("a <b> [x](https://y) @me #1 *z* www.x"),
            "a \\<b\\> \\[x\\](https\\://y) \\@me \\#1 \\*z\\* www\\.x"
        );
        assert_eq!(cell("a|b`c"), "``a\\|b`c``");
        assert_eq!(fence("```` x"), "`````");
        assert_eq!(fence("x"), "```");
    }
}
