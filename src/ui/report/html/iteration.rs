//! The iterations of a loop: one folded part for each, with what the agent did, the diff, the
//! checks, the cost and its last words.

use super::super::activity::{RowKind, rows};
use super::super::facts::{check_text, checks_text, commit_texts, end_text};
use super::super::findings::check_name;
use super::super::{LoopReport, Redact, clock, cut};
use super::markup::Html;
use super::{Budget, diff};
use crate::engine::event::CheckReport;
use crate::engine::format::{bytes, dollars, duration, plural, thousands};
use crate::git::checkpoint::FileDiffStat;
use crate::lifecycle::history::{IterationActivity, PastIteration};
use crate::store::log_tail::last_lines;
use std::path::Path;

/// The smallest number of bytes for a part that is shown at all.
const PART_MIN: usize = 300;
/// Maximum number of iterations that take one line each.
const LINES_MAX: usize = 2000;

/// Renders all iterations, newest last. Only the newest have details.
pub(super) fn all(
    html: &mut Html,
    report: &LoopReport,
    at: usize,
    budget: Budget,
    redact: Redact<'_>,
) {
    let iterations = report.iterations();
    if iterations.is_empty() {
        return;
    }
    html.tag("<section><h2>Iterations</h2>\n<div class=\"iterations\">\n");
    let brief = iterations.len().saturating_sub(budget.detailed);
    let hidden = brief.saturating_sub(LINES_MAX);
    if hidden > 0 {
        let text = format!("The first {hidden} iterations are not shown.");
        html.tag("<p class=\"muted\">").text(&text).tag("</p>");
    }
    for one in &iterations[hidden..brief] {
        html.tag("<div class=\"iteration brief\"")
            .attr("id", id(at, one));
        html.tag("><div class=\"summary\">");
        heading(html, report, one, None);
        html.tag("</div></div>\n");
    }
    for one in &iterations[brief..] {
        let trees = report.history.trees_of(one.number);
        let changes = trees.map(|trees| report.history.changes(trees));
        html.tag("<details class=\"iteration\"")
            .attr("id", id(at, one));
        html.tag("><summary class=\"summary\">");
        heading(html, report, one, changes.as_deref());
        html.tag("</summary>\n<div class=\"body\">\n");
        body(html, report, one, budget.bytes, &|text| redact(at, text));
        html.tag("</div></details>\n");
    }
    html.tag("</div></section>\n");
}

fn id(at: usize, one: &PastIteration) -> String {
    format!("loop-{}-{}", at + 1, one.number)
}

/// The line that is always visible.
fn heading(
    html: &mut Html,
    report: &LoopReport,
    one: &PastIteration,
    changes: Option<&[FileDiffStat]>,
) {
    html.tag("<b class=\"number\">")
        .text(&one.number.to_string())
        .tag("</b>");
    html.tag("<span class=\"dots\">");
    for result in one.checks.iter().flatten() {
        let class = if result.is_green() { "good" } else { "bad" };
        html.span(class, if result.is_green() { "●" } else { "○" });
    }
    html.tag("</span>");
    let record = one.record.as_ref();
    let time = record.map(|record| duration(record.ms)).unwrap_or_default();
    html.span("time", &time);
    let cost = record.and_then(|record| record.cost_usd).map(dollars);
    html.span("cost", &cost.unwrap_or_default());
    html.tag("<span class=\"size\">");
    if let Some(changes) = changes.filter(|changes| !changes.is_empty()) {
        let insertions: u64 = changes.iter().map(|file| file.insertions).sum();
        let deletions: u64 = changes.iter().map(|file| file.deletions).sum();
        html.span("plus", &format!("+{insertions}")).tag(" ");
        html.span("minus", &format!("−{deletions}"));
    }
    html.tag("</span><span class=\"gist\">");
    let mut gist = vec![];
    let ended = end_text(one, report.history.liveness);
    if ended != "exit 0" {
        gist.push(ended);
    }
    match one.first_failing_line() {
        Some(line) => gist.push(line.to_owned()),
        None => gist.push(checks_text(one)),
    }
    gist.retain(|text| !text.is_empty());
    html.text_max(&gist.join(" · "), 300);
    html.tag("</span>");
}

/// The parts that are folded.
fn body(
    html: &mut Html,
    report: &LoopReport,
    one: &PastIteration,
    max: usize,
    redact: &dyn Fn(&str) -> String,
) {
    let activity = IterationActivity::read(&report.history.dir, one.number);
    let share = |percent: usize| max / 100 * percent;
    facts(html, report, one);
    last_words(html, one, &activity, share(15));
    acts(html, report, one, &activity, share(25));
    checks(html, report, one, share(15));
    changes(html, report, one, share(45), redact);
}

fn facts(html: &mut Html, report: &LoopReport, one: &PastIteration) {
    let mut facts = vec![
        ("agent", one.agent.clone()),
        ("model", one.model.clone().unwrap_or_default()),
        ("started", clock(one.started_ms)),
        ("end", end_text(one, report.history.liveness)),
    ];
    if let Some(record) = &one.record {
        let tokens = record.tokens.map(|tokens| thousands(tokens.total()));
        facts.push(("tokens", tokens.unwrap_or_default()));
        let steps = record.steps.map(|steps| steps.to_string());
        facts.push(("tool calls", steps.unwrap_or_default()));
        let claimed = if record.claimed {
            "claimed to be done"
        } else {
            ""
        };
        facts.push(("claim", claimed.into()));
        facts.push(("denied", record.denial.clone().unwrap_or_default()));
        facts.push(("error", record.error.clone().unwrap_or_default()));
    }
    facts.extend(commit_texts(one).into_iter().map(|text| ("commit", text)));
    html.tag("<dl class=\"facts\">");
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        html.tag("<dt>").text(name).tag("</dt><dd>");
        html.text_max(value, 600);
        html.tag("</dd>");
    }
    html.tag("</dl>\n");
}

fn last_words(html: &mut Html, one: &PastIteration, activity: &IterationActivity, max: usize) {
    let mut words = activity.last_words();
    if words.is_empty() {
        let note = one.record.as_ref().and_then(|record| record.note.clone());
        words = note.unwrap_or_default();
    }
    if words.is_empty() || max < PART_MIN {
        return;
    }
    html.tag("<h3>Last words</h3><blockquote>");
    let left = html.words_max(&words, max);
    html.tag("</blockquote>\n");
    note_cut(html, left, None);
}

fn acts(
    html: &mut Html,
    report: &LoopReport,
    one: &PastIteration,
    activity: &IterationActivity,
    max: usize,
) {
    let rows = rows(activity);
    if rows.is_empty() || max < PART_MIN {
        return;
    }
    let tools = rows.iter().filter(|row| row.kind != RowKind::Text).count();
    html.tag("<details class=\"part\"><summary><h3>What it did</h3> ");
    html.span("muted", &plural(tools as u64, "step"))
        .tag("</summary><ol class=\"acts\">\n");
    let end = html.len() + max;
    let mut left = 0;
    for row in &rows {
        let room = end.saturating_sub(html.len() + 64);
        if room < 64 {
            left += row.text.len();
            continue;
        }
        html.tag(match row.kind {
            RowKind::Text => "<li class=\"said\">",
            RowKind::Tool => "<li class=\"tool\">",
            RowKind::Failure => "<li class=\"tool failure\">",
            RowKind::Note => "<li class=\"note\">",
        });
        left += match row.kind {
            RowKind::Text => html.words_max(&row.text, room),
            _ => html.text_max(&row.text, room),
        };
        html.tag("</li>\n");
    }
    html.tag("</ol>");
    let path = report.history.dir.activity(one.number);
    note_cut(html, left, Some(&path));
    if activity.dropped > 0 {
        let text = format!("{} more acts were not recorded", activity.dropped);
        html.tag("<p class=\"muted\">").text(&text).tag("</p>");
    }
    html.tag("</details>\n");
}

fn checks(html: &mut Html, report: &LoopReport, one: &PastIteration, max: usize) {
    let looks = [
        ("", &one.checks),
        ("by the original tests: ", &one.second_look),
    ];
    let results: Vec<_> = looks
        .into_iter()
        .flat_map(|(by, reports)| {
            let results = reports.iter().enumerate();
            results.filter_map(move |(at, result)| Some((by, at, result.as_ref()?)))
        })
        .collect();
    if results.is_empty() {
        return;
    }
    let red = results.iter().filter(|(.., result)| !result.is_green());
    let share = max / red.count().max(1);
    html.tag("<h3>Checks</h3><ul class=\"checks\">\n");
    for (by, at, result) in results {
        html.tag("<li>")
            .code(&check_name(report.state(), at))
            .tag(" ");
        let class = if result.is_green() { "good" } else { "bad" };
        html.span(class, &format!("{by}{}", check_text(result)));
        if !result.is_green() && share >= PART_MIN {
            output(html, report, one, at, result, by.is_empty(), share);
        }
        html.tag("</li>\n");
    }
    html.tag("</ul>\n");
}

/// The end of a red check's output. Only the log of the check itself is kept, not that of the second
/// look.
fn output(
    html: &mut Html,
    report: &LoopReport,
    one: &PastIteration,
    at: usize,
    result: &CheckReport,
    has_log: bool,
    max: usize,
) {
    let check = report.state().plan.proof.checks.get(at);
    let path = check.map(|check| report.history.dir.check_log(one.number, &check.slug));
    let log = path.as_ref().filter(|_| has_log);
    let (lines, is_cut) = log.map(|path| last_lines(path)).unwrap_or_default();
    let line = result.line.clone().filter(|line| !lines.contains(line));
    let text = [line.unwrap_or_default(), lines].join("\n");
    if text.trim().is_empty() {
        return;
    }
    html.tag("<pre class=\"output\">");
    let left = html.text_max(text.trim_matches('\n'), max);
    html.tag("</pre>");
    if left > 0 || is_cut {
        html.tag("<p class=\"muted\">all of it: ");
        html.code(
            &log.map(|path| path.display().to_string())
                .unwrap_or_default(),
        );
        html.tag("</p>");
    }
}

fn changes(
    html: &mut Html,
    report: &LoopReport,
    one: &PastIteration,
    max: usize,
    redact: &dyn Fn(&str) -> String,
) {
    let Some(trees) = report.history.trees_of(one.number) else {
        return;
    };
    if trees.0 == trees.1 {
        html.tag("<p class=\"muted\">No file changed.</p>\n");
        return;
    }
    // Escaping makes it longer, never shorter.
    let (patch, is_cut) = match report.history.patch_start(trees, max.max(PART_MIN)) {
        Ok(found) => found,
        Err(why) => {
            let why = format!("The changes are not known: {why}");
            html.tag("<p class=\"muted\">")
                .text(cut(&why, 300).0)
                .tag("</p>\n");
            return;
        }
    };
    html.tag("<h3>Changes</h3>\n");
    let left = diff::patch(html, &redact(&patch), max);
    if left > 0 || is_cut {
        let number = one.number;
        html.tag("<p class=\"muted\">The rest: ");
        let before = number.saturating_sub(1);
        html.code(&format!("ralph diff {} {before}..{number}", report.name()));
        html.tag("</p>\n");
    }
}

/// Says how much was left out, and where it is.
fn note_cut(html: &mut Html, left: usize, path: Option<&Path>) {
    if left == 0 {
        return;
    }
    let text = format!("… {} more", bytes(left as u64));
    html.tag("<p class=\"muted\">").text(&text);
    if let Some(path) = path {
        html.tag(": ").code(&path.display().to_string());
    }
    html.tag("</p>");
}
