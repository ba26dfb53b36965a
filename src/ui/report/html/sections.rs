//! The sections of a loop's report, except for its iterations.

use super::super::facts::{receipt_rows, result_text};
use super::super::findings::Severity;
use super::super::timeline::TimelineLine;
use super::super::{LoopReport, clock};
use super::markup::Html;
use super::plots;
use crate::engine::format::plural;
use crate::engine::receipt::RecordedResult;
use crate::ui::TextStyle;

/// The name, the verdict, the numbers and the circumstances.
pub(super) fn heading(html: &mut Html, report: &LoopReport, is_page: bool) {
    html.tag("<header class=\"top\">");
    if is_page {
        html.tag("<p class=\"brand\">ralph report</p>");
        html.tag("<h1>").text(report.name()).tag("</h1>");
    } else {
        html.tag("<h2 class=\"name\">")
            .text(report.name())
            .tag("</h2>");
    }
    let tone = report.tone();
    html.tag("<p")
        .attr("class", format!("verdict {}", tone.as_str()));
    html.tag("><b>").text(tone.sign()).tag("</b> ");
    html.text_max(&report.verdict(), 2000);
    html.tag("</p></header>\n<ul class=\"numbers\">");
    for number in report.numbers() {
        html.tag("<li>").span("label", number.name);
        html.tag("<b>").text(&number.value).tag("</b>");
        html.span("muted", &number.note).tag("</li>");
    }
    html.tag("</ul>\n<dl class=\"facts\">");
    for (name, value) in report.circumstances() {
        html.tag("<dt>").text(name).tag("</dt><dd>");
        html.text_max(&value, 2000);
        html.tag("</dd>");
    }
    html.tag("</dl>\n");
}

/// Maximum number of findings about several loops.
const ALL_FINDINGS_MAX: usize = 20;

/// The alarms and warnings about all loops.
pub(super) fn all_findings(html: &mut Html, loops: &[LoopReport]) {
    let all = loops.iter().enumerate().flat_map(|(at, report)| {
        let findings = report.findings.iter();
        findings.map(move |finding| (at, report, finding))
    });
    let mut all: Vec<_> = all
        .filter(|(_, _, finding)| finding.severity < Severity::Notice)
        .collect();
    all.sort_by_key(|(_, _, finding)| finding.severity);
    if all.is_empty() {
        return;
    }
    html.tag("<section><h2>Review first</h2>\n<ul class=\"findings\">\n");
    for (at, report, finding) in all.iter().take(ALL_FINDINGS_MAX) {
        html.tag("<li")
            .attr("class", finding.severity.as_str())
            .tag(">");
        html.span("mark", finding.severity.as_str());
        html.tag("<div><a")
            .attr("href", format!("#loop-{}", at + 1));
        html.tag(">").text(report.name()).tag("</a> <b>");
        html.text_max(&finding.title, 600);
        html.tag("</b></div></li>\n");
    }
    html.tag("</ul>");
    let left = all.len().saturating_sub(ALL_FINDINGS_MAX);
    if left > 0 {
        html.span("muted", &format!("{left} more are below."));
    }
    html.tag("</section>\n");
}

/// What to review first.
pub(super) fn findings(html: &mut Html, report: &LoopReport, at: usize) {
    html.tag("<section><h2>Review first</h2>\n");
    if report.findings.is_empty() {
        html.tag("<p class=\"muted\">Nothing stands out.</p></section>\n");
        return;
    }
    html.tag("<ul class=\"findings\">\n");
    for finding in &report.findings {
        html.tag("<li")
            .attr("class", finding.severity.as_str())
            .tag(">");
        html.span("mark", finding.severity.as_str());
        html.tag("<div><b>");
        html.text_max(&finding.title, 600);
        html.tag("</b>");
        if let Some(number) = finding.iteration {
            html.tag(" <a")
                .attr("href", format!("#loop-{}-{number}", at + 1));
            html.tag(">details</a>");
        }
        if !finding.details.is_empty() {
            html.tag("<ul>");
            for detail in &finding.details {
                html.tag("<li>").code(detail).tag("</li>");
            }
            html.tag("</ul>");
        }
        html.tag("</div></li>\n");
    }
    html.tag("</ul></section>\n");
}

/// The plots and the strips of checks.
pub(super) fn charts(html: &mut Html, report: &LoopReport) {
    if report.iterations().is_empty() {
        return;
    }
    html.tag("<section><h2>Progress</h2>\n<div class=\"wide\">");
    plots::strips(html, &report.history, report.state());
    html.tag("</div>\n");
    plots::plots(html, &report.history);
    html.tag("</section>\n");
}

/// The commands that undo, merge and continue the work.
pub(super) fn commands(html: &mut Html, report: &LoopReport) {
    let commands = report.commands();
    if commands.is_empty() {
        return;
    }
    html.tag("<section><h2>Next</h2>\n<dl class=\"commands\">");
    for (name, command) in commands {
        html.tag("<dt>")
            .text(name)
            .tag("</dt><dd>")
            .code(&command)
            .tag("</dd>");
    }
    html.tag("</dl></section>\n");
}

/// The evidence by which the loop ended.
pub(super) fn receipt(html: &mut Html, report: &LoopReport) {
    let Some(receipt) = &report.receipt else {
        return;
    };
    html.tag("<section class=\"receipt\"><h2>Receipt</h2>\n");
    if !receipt.checks.is_empty() {
        html.tag("<div class=\"wide\"><table><thead><tr><th>Check</th><th>Result</th>");
        html.tag("<th>By the original tests</th></tr></thead><tbody>\n");
        for check in &receipt.checks {
            html.tag("<tr><td>")
                .code(super::super::cut(&check.command, 300).0);
            for result in [&check.result, &check.original] {
                html.tag("</td><td>");
                recorded(html, result.as_ref());
            }
            html.tag("</td></tr>\n");
        }
        html.tag("</tbody></table></div>\n");
    }
    html.tag("<dl class=\"facts\">");
    for (name, value) in receipt_rows(receipt) {
        html.tag("<dt>").text(name).tag("</dt><dd>");
        html.text_max(&value, 2000);
        html.tag("</dd>");
    }
    html.tag("</dl></section>\n");
}

fn recorded(html: &mut Html, result: Option<&RecordedResult>) {
    match result {
        Some(result) if result.green => html.span("good", &result_text(result)),
        Some(result) => html.span("bad", &result_text(result)),
        None => html.span("muted", "not run"),
    };
}

/// The events. If there are more than `max` lines, those in the middle are left out.
pub(super) fn timeline(html: &mut Html, report: &LoopReport, max: usize) {
    let timeline = &report.timeline;
    let all: Vec<&TimelineLine> = timeline.first.iter().chain(&timeline.last).collect();
    if all.is_empty() {
        return;
    }
    let head = all.len().min(max / 4).min(timeline.first.len());
    let tail = (all.len() - head).min(max - max / 4);
    let dropped = timeline.dropped + all.len() - head - tail;
    html.tag("<section><details class=\"timeline\"><summary><h2>Timeline</h2> ");
    let count = plural((all.len() + timeline.dropped) as u64, "event");
    html.span("muted", &count).tag("</summary>\n<ol>");
    let mut last = String::new();
    for (at, line) in all.iter().enumerate() {
        if at == head && dropped > 0 {
            let text = format!("… {dropped} lines are left out; the journal has all of them");
            html.tag("<li class=\"gap\">").text(&text).tag("</li>");
        }
        if at >= head && at < all.len() - tail {
            continue;
        }
        let time = clock(line.at_ms);
        html.tag("<li><time>")
            .text(if time == last { "" } else { &time });
        html.tag("</time>")
            .span(style(line.style), &line.text)
            .tag("</li>\n");
        last = time;
    }
    html.tag("</ol></details></section>\n");
}

fn style(style: TextStyle) -> &'static str {
    match style {
        TextStyle::Green => "good",
        TextStyle::Red => "bad",
        TextStyle::Yellow => "open",
        TextStyle::Dim => "muted",
        TextStyle::Bold | TextStyle::Cyan => "strong",
    }
}
