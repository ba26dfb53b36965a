//! Shows a loop's status on a terminal: its rows in color, its last iterations and its agent's last words.

use super::iteration_row;
use super::rows::status_value;
use super::show::ViewStyle;
use super::status::{rows, status_style};
use super::{StyledText, TextStyle, hang, one_line};
use crate::lifecycle::history::{IterationActivity, LoopHistory};

/// How many iterations are shown.
const ITERATIONS: usize = 5;
/// How many lines of the agent's last words are shown.
const WORDS: usize = 6;

/// Returns a loop's status for a terminal.
pub(crate) fn status_view(history: &LoopHistory, directory: &str, style: ViewStyle) -> StyledText {
    let mut out = StyledText::new(style.color);
    let state = &history.view.state;
    let rows = rows(&history.view, history.liveness, directory).into_iter();
    let rows: Vec<_> = rows.filter(|(name, value)| is_shown(name, value)).collect();
    let labels = rows.iter().map(|(name, _)| label(name).len());
    let indent = labels.max().unwrap_or(0) + 2;
    for (name, value) in rows {
        let value = status_value(name, &one_line(&value), style.width, indent);
        let color = match name {
            "Status" => Some(status_style(state.status(history.liveness))),
            "Check" | "SCM" if value.contains("— green") => Some(TextStyle::Green),
            "Check" if value.contains("— red") => Some(TextStyle::Red),
            "Missing" | "Better" | "Review" | "Pending" | "Unsaved" => Some(TextStyle::Yellow),
            "Turn failed" => Some(TextStyle::Red),
            "Ralph Loop" | "Next" | "Now" => Some(TextStyle::Bold),
            _ => None,
        };
        let columns = if value.starts_with('\n') { 0 } else { indent };
        let label = format!("{:columns$}", label(name));
        out.push_styled(&label, TextStyle::Dim);
        match color {
            Some(color) => out.push_styled(&value, color),
            None => out.push(&value),
        };
        out.push("\n");
    }
    iterations(history, style, &mut out);
    last_words(history, style, &mut out);
    out
}

/// Returns whether a row tells a person something that the other rows and the table do not.
fn is_shown(name: &str, value: &str) -> bool {
    match name {
        "Consecutive failures" | "Total failures" => value != "0",
        "Last iteration started" | "Current iteration started" | "Inactivity timeout" => false,
        _ => true,
    }
}

/// Returns the label of a row, short enough for a narrow column.
fn label(name: &str) -> &str {
    match name {
        "Ralph Loop" => "Loop",
        "Consecutive failures" => "In a row",
        "Total failures" => "Failures",
        "Resting until" => "Resting",
        "Done pattern" => "Pattern",
        "Active time" => "Active",
        "Turn failed" => "Turn",
        name => name,
    }
}

fn iterations(history: &LoopHistory, style: ViewStyle, out: &mut StyledText) {
    let first = history.iterations.len().saturating_sub(ITERATIONS);
    if history.iterations.is_empty() {
        return;
    }
    history.read_changes(&history.iterations[first..]);
    let mut table = iteration_row::table();
    for one in &history.iterations[first..] {
        iteration_row::push(&mut table, history, one);
    }
    out.push("\n");
    table.print(0, style.width, out);
    if first > 0 {
        let name = &history.view.header.name;
        let note = format!("`ralph show {name}` shows all {}", history.iterations.len());
        out.push_line(&note, TextStyle::Dim);
    }
}

fn last_words(history: &LoopHistory, style: ViewStyle, out: &mut StyledText) {
    let newest = history.iterations.iter().rev();
    let mut words = newest.take(2).map(|one| {
        let words = IterationActivity::read(&history.dir, one.number).last_words();
        (one.number, words)
    });
    let Some((number, words)) = words.find(|(_, words)| !words.is_empty()) else {
        return;
    };
    out.push("\n");
    let title = format!("Last words of iteration {number}");
    out.push_line(&title, TextStyle::Dim);
    let lines: Vec<&str> = words
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for line in lines.iter().take(WORDS) {
        let line = format!("  {}", one_line(line));
        out.push(&format!("{}\n", hang(&line, style.width, 0, 0)));
    }
    if lines.len() > WORDS {
        out.push_line("  …", TextStyle::Dim);
    }
}
