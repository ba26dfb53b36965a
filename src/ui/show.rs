//! Formats a loop's past for `ralph show`: all iterations, or everything about one.

use super::act_printer::ActPrinter;
use super::age::{clock, date_time, short_path, span};
use super::cost::cost_of_limit;
use super::event_line::verdict;
use super::iteration_row::{self, lines, mark, result_text};
use super::status::{line, status_style};
use super::table::{TableCell, TableColumn, TextTable};
use super::{
    StyledText, TextStyle, adapt, diff_text, hang, label_text, one_line, outcome_text,
    truncate_to_width,
};
use crate::engine::Act;
use crate::engine::event::CheckReport;
use crate::engine::format::{dollars, duration, iteration_count, plural, thousands};
use crate::engine::plain_text::plain_lines;
use crate::lifecycle::history::{IterationActivity, LoopHistory, PastIteration};
use crate::os::regular_file;
use std::path::Path;

/// How much of a long text is shown on a terminal: the lines at its beginning and at its end.
const CUT: (usize, usize) = (24, 12);
/// The most bytes of a prompt or of a check's log that are read.
pub(super) const TEXT_MAX: u64 = 256 << 10;

/// How a view is printed.
#[derive(Clone, Copy)]
pub(crate) struct ViewStyle {
    /// The terminal's width; `None` for a file or a pipe, in which nothing is cut.
    pub(crate) width: Option<usize>,
    pub(crate) color: bool,
}

/// Returns the page about a whole loop.
pub(crate) fn all(history: &LoopHistory, style: ViewStyle) -> StyledText {
    history.read_changes(&history.iterations);
    let mut out = StyledText::new(style.color);
    heading(history, style, &mut out);
    let mut table = iteration_row::table();
    for one in &history.iterations {
        iteration_row::push(&mut table, history, one);
    }
    out.push("\n");
    if history.iterations.is_empty() {
        out.push("no iteration has started\n");
    } else {
        table.print_with(0, style.width, &mut out, |row, out| {
            // The first row is the heading.
            let one = row.checked_sub(1).and_then(|at| history.iterations.get(at));
            if let Some(one) = one {
                details(history, one, style, out);
            }
        });
    }
    let state = &history.view.state;
    let header = &history.view.header;
    let next = outcome_text::next_step(header, state, history.liveness);
    // The directory of an archived loop has another name, and a newer loop has its own.
    if let Some(next) = next.filter(|_| history.dir.name() == header.name) {
        out.push("\n").push_styled("next", TextStyle::Dim);
        out.push(&format!("  {}\n", hang(&next, style.width, 6, 6)));
    }
    out
}

/// Appends the lines about the loop itself.
fn heading(history: &LoopHistory, style: ViewStyle, out: &mut StyledText) {
    let (header, state) = (&history.view.header, &history.view.state);
    let status = line(state, history.liveness);
    out.push_styled(&header.name, TextStyle::Bold).push("  ");
    let status = hang(&status, style.width, header.name.len() + 2, 2).into_owned();
    out.push_styled(&status, status_style(state.status(history.liveness)));
    out.push("\n");
    if let Some(task) = state.plan.task.text.as_deref() {
        let first = task.lines().find(|line| !line.trim().is_empty());
        let first = one_line(first.unwrap_or_default());
        let columns = style.width.unwrap_or(usize::MAX).saturating_sub(2);
        out.push(&format!("  {}\n", truncate_to_width(&first, columns)));
    }
    let mut facts = vec![iteration_count(history.iterations.len() as u32)];
    facts.push(format!("{} active", duration(state.active_ms)));
    facts.extend(cost_of_limit(state));
    if state.tokens.total() > 0 {
        facts.push(format!("{} tokens", thousands(state.tokens.total())));
    }
    facts.push(state.agent().name.clone());
    facts.push(short_path(&state.plan.workspace));
    fact_line(&facts, style, out);
    let mut facts = vec![span(header.created_ms, history.last_event_ms)];
    if let Some(trees) = history.trees_of_all() {
        let changes = history.changes(trees);
        let (added, removed) = lines(&changes);
        let files = plural(changes.len() as u64, "file");
        facts.push(format!("{files} +{added} −{removed}"));
    }
    if state.total_failures > 0 {
        facts.push(plural(u64::from(state.total_failures), "failure"));
    }
    fact_line(&facts, style, out);
    for (index, (check, report)) in state
        .plan
        .proof
        .checks
        .iter()
        .zip(&state.checks)
        .enumerate()
    {
        let (mark, color) = mark(report.as_ref().map(CheckReport::is_green));
        out.push("  ").push_styled(&adapt(mark.to_owned()), color);
        let verdict = report.as_ref().map_or_else(|| "not run".into(), verdict);
        let label = label_text::suffix(state, index);
        let text = format!("{} — {verdict}{label}", check.command);
        out.push(&format!(" {}\n", hang(&one_line(&text), style.width, 4, 4)));
    }
}

fn fact_line(facts: &[String], style: ViewStyle, out: &mut StyledText) {
    let text = one_line(&facts.join(" · "));
    let text = format!("  {}", hang(&text, style.width, 2, 2));
    out.push_styled(&text, TextStyle::Dim).push("\n");
}

/// Appends the lines below an iteration's row: its tools, its commit and its last words.
fn details(history: &LoopHistory, one: &PastIteration, style: ViewStyle, out: &mut StyledText) {
    let activity = IterationActivity::read(&history.dir, one.number);
    let indent = " ".repeat(iteration_row::number_width(history) + 2);
    let columns = style
        .width
        .unwrap_or(usize::MAX)
        .saturating_sub(indent.len());
    let tools = iteration_row::tools(&activity);
    if !tools.is_empty() {
        let tools = truncate_to_width(&tools, columns);
        out.push(&indent)
            .push_styled(&tools, TextStyle::Dim)
            .push("\n");
    }
    let words = one_line(&activity.last_words());
    if !words.is_empty() {
        let words = truncate_to_width(&words, columns.saturating_sub(2));
        out.push(&format!("{indent}\"{words}\"\n"));
    }
}

/// Returns the page about one iteration.
pub(crate) fn one(history: &LoopHistory, past: &PastIteration, style: ViewStyle) -> StyledText {
    let mut out = StyledText::new(style.color);
    let header = &history.view.header;
    let title = format!("{}, iteration {}", header.name, past.number);
    out.push_styled(&title, TextStyle::Bold).push("  ");
    let (result, color) = result_text(history, past);
    let result = one_line(&result);
    let result = hang(&result, style.width, title.len() + 2, 2).into_owned();
    match color {
        Some(color) => out.push_styled(&result, color),
        None => out.push(&result),
    };
    out.push("\n");
    fact_line(&facts_of(past), style, &mut out);

    let prompt = history.dir.iteration_dir(past.number).join("prompt.md");
    section("prompt", &mut out);
    long_text(&read_text(&prompt), &prompt, style, &mut out);

    section("activity", &mut out);
    let mut printer = ActPrinter::for_view("  ", style.color);
    if let Some(width) = style.width {
        printer.set_width(width.saturating_sub(2).max(1));
    }
    let mut lines = Vec::new();
    let activity = IterationActivity::read(&history.dir, past.number);
    for (at_ms, act) in &activity.acts {
        printer.print_at(act, Some(*at_ms), &mut lines);
    }
    let words = activity.last_words();
    if !has_text(&activity, &words) {
        printer.print(&Act::Text(format!("{words}\n").into()), &mut lines);
    }
    printer.flush(&mut lines);
    out.push_cleaned(&String::from_utf8_lossy(&lines));
    if activity.dropped > 0 {
        let dropped = plural(activity.dropped, "act");
        out.push_line(&format!("  … {dropped} not kept"), TextStyle::Dim);
    }

    checks(history, past, style, &mut out);
    for (_, report) in &past.commits {
        if let Some(commit) = &report.commit {
            section("commit", &mut out);
            let subject = report.subject.as_deref().unwrap_or_default();
            out.push(&format!(
                "  {} {subject}\n",
                commit.get(..7).unwrap_or(commit)
            ));
        }
    }
    section("diff", &mut out);
    match history.trees_of(past.number) {
        Some((from, to)) if from == to => drop(out.push("  no file changed\n")),
        Some(trees) => diff(history, trees, style, &mut out),
        None => drop(out.push("  there is no checkpoint\n")),
    }
    out
}

/// Returns whether the agent's last words are part of its text. Some agents repeat them at the end.
fn has_text(activity: &IterationActivity, words: &str) -> bool {
    let texts = activity.acts.iter().filter_map(|(_, act)| match act {
        Act::Text(text) => Some(&**text),
        _ => None,
    });
    words.is_empty() || texts.collect::<String>().contains(words)
}

fn facts_of(past: &PastIteration) -> Vec<String> {
    let mut facts = vec![match past.ended_ms {
        Some(ended) => format!("{} – {}", date_time(past.started_ms), clock(ended)),
        None => date_time(past.started_ms),
    }];
    if let Some(record) = &past.record {
        facts.push(duration(record.ms));
        facts.extend(record.cost_usd.map(dollars));
        let tokens = record.tokens.map(|tokens| thousands(tokens.total()));
        facts.extend(tokens.map(|tokens| format!("{tokens} tokens")));
        facts.extend(record.steps.map(|steps| plural(u64::from(steps), "step")));
    }
    facts.push(match &past.model {
        Some(model) => format!("{} {model}", past.agent),
        None => past.agent.clone(),
    });
    facts
}

fn section(name: &str, out: &mut StyledText) {
    out.push("\n").push_styled(name, TextStyle::Bold).push("\n");
}

/// Appends the results of the checks, with the output of those that are red.
fn checks(history: &LoopHistory, past: &PastIteration, style: ViewStyle, out: &mut StyledText) {
    let plan = &history.view.state.plan;
    let looks = [
        (&past.checks, "", ""),
        (&past.second_look, "-original", " by the original tests"),
    ];
    for (reports, suffix, by) in looks {
        for (check, report) in plan.proof.checks.iter().zip(reports) {
            let Some(report) = report else { continue };
            section(&format!("check {}{by}", one_line(&check.command)), out);
            let (mark, color) = mark(Some(report.is_green()));
            out.push("  ").push_styled(&adapt(mark.to_owned()), color);
            out.push(&format!(" {}\n", one_line(&verdict(report))));
            let slug = format!("{}{suffix}", check.slug);
            let log = history.dir.check_log(past.number, &slug);
            if !report.is_green() {
                long_text(&read_text(&log), &log, style, out);
            }
        }
    }
    if let Some(touched) = past
        .touched
        .as_ref()
        .filter(|touched| !touched.is_sources_only())
    {
        let names: Vec<String> = touched.names().map(one_line).collect();
        let text = format!("  changed since the start: {}", names.join(", "));
        out.push_line(&text, TextStyle::Yellow);
    }
}

fn diff(history: &LoopHistory, trees: (&str, &str), style: ViewStyle, out: &mut StyledText) {
    let mut table = TextTable::new(&[("", TableColumn::Left), ("", TableColumn::Left)]);
    for change in history.changes(trees) {
        let lines = TableCell::new(&format!("+{}", change.insertions), Some(TextStyle::Green))
            .and(&format!(" −{}", change.deletions), Some(TextStyle::Red));
        table.push(vec![change.path.into(), lines]);
    }
    table.print(2, style.width, out);
    match history.patch(trees) {
        Ok(patch) => {
            out.push("\n");
            out.push_cleaned(&diff_text::patch(&patch, style.color).into_string());
        }
        Err(error) => drop(out.push(&format!("  {error}\n"))),
    }
}

/// Appends a text, indented. On a terminal, the middle of a long one is left out.
fn long_text(text: &str, path: &Path, style: ViewStyle, out: &mut StyledText) {
    let lines: Vec<&str> = text.lines().collect();
    let (first, last) = CUT;
    let cut = match style.width {
        Some(_) if lines.len() > first + last + 1 => first..lines.len() - last,
        _ => 0..0,
    };
    for (number, line) in lines.iter().enumerate() {
        if number == cut.start && !cut.is_empty() {
            let count = plural(cut.len() as u64, "more line");
            let note = format!("  … {count}: {}", short_path(path));
            out.push_line(&note, TextStyle::Dim);
        }
        if !cut.contains(&number) {
            let line = format!("  {line}");
            out.push(&format!("{}\n", hang(line.trim_end(), style.width, 0, 2)));
        }
    }
}

/// Reads a text file of a loop, without escape sequences; empty if it cannot be read.
pub(super) fn read_text(path: &Path) -> String {
    let (bytes, _) = regular_file::read(path, TEXT_MAX, false).unwrap_or_default();
    plain_lines(&String::from_utf8_lossy(&bytes)).into_owned()
}
