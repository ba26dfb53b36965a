//! Formats the summary at the end of a run: outcome, effort, changes and the next step.

use super::rows::RowLayout;
use super::{
    StyledText, TextStyle, event_line, hang, label_text, one_line, outcome_text, scm_text,
    worktree_text,
};
use crate::engine::format::{duration, iteration_count, thousands};
use crate::engine::{Liveness, Outcome, State, Status};
use crate::store::JournalHeader;
use std::fmt::Write as _;

/// Rows whose values are commands.
const COMMANDS: [&str; 5] = ["inspect", "commit", "merge", "remove", "next"];

/// The column in which the values of the rows begin.
const VALUE_COLUMN: usize = 11;

/// Returns the summary of a loop that no longer runs. `changed` describes the changed files, and
/// `children` names failed child loops. With `next`, the summary ends with the suggested next step.
/// `width` is the width of the terminal; `None` if it is not for a terminal.
pub(crate) fn text(
    header: &JournalHeader,
    state: &State,
    changed: &str,
    children: &[String],
    next: bool,
    color: bool,
    width: Option<usize>,
) -> StyledText {
    // The command prints the fatal error itself to standard error.
    let fatal_class = match state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(format!(" ({})", class.as_str())),
        _ => None,
    };
    let mut text = StyledText::new(color);
    let (headline, style) = headline(state, fatal_class);
    let headline = hang(&headline, width, 0, 2);
    text.push_styled(&headline, style).push("\n");
    let layout = RowLayout {
        width,
        first: VALUE_COLUMN,
        indent: VALUE_COLUMN,
    };
    let mut row = |name: &str, value: &str, verdict: Option<(&str, TextStyle)>| {
        if value.is_empty() && verdict.is_none() {
            return;
        }
        text.push("  ")
            .push_styled(&format!("{name:<8}"), TextStyle::Dim);
        let (value, verdict) = match verdict {
            None if COMMANDS.contains(&name) => (layout.commands(value), None),
            None => (layout.text(value), None),
            Some((verdict, style)) if value.is_empty() => {
                (String::new(), Some((layout.text(verdict), style)))
            }
            Some((verdict, style)) => {
                let (command, verdict) = layout.result(value, " ", verdict);
                (command, Some((verdict, style)))
            }
        };
        text.push(if value.starts_with('\n') { "" } else { " " })
            .push(&value);
        if let Some((verdict, style)) = verdict {
            text.push_styled(&verdict, style);
        }
        text.push("\n");
    };
    row("took", &took(state), None);
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    for (index, (check, report)) in checks.enumerate() {
        let (verdict, style) = match report {
            Some(report) if report.is_green() => (event_line::verdict(report), TextStyle::Green),
            Some(report) => (event_line::verdict(report), TextStyle::Red),
            None => ("not run".into(), TextStyle::Yellow),
        };
        let verdict = verdict + &label_text::suffix(state, index);
        row("check", &one_line(&check.command), Some((&verdict, style)));
    }
    for (task, report) in state.scm.reports.iter().enumerate() {
        let (text, style) = scm_text::task_line(state, task, report);
        row("scm", "", Some((&text, style)));
    }
    for (at, line) in outcome_text::last_error(state).iter().enumerate() {
        row(if at == 0 { "output" } else { "" }, line, None);
    }
    row(
        "denied",
        &one_line(&outcome_text::denied(state).unwrap_or_default()),
        None,
    );
    row(
        "missing",
        &one_line(&outcome_text::missing(state).unwrap_or_default()),
        None,
    );
    if let Some(better) = outcome_text::better(&header.name, state) {
        row("better", "", Some((&one_line(&better), TextStyle::Yellow)));
    }
    for child in children {
        row("child", "", Some((&one_line(child), TextStyle::Red)));
    }
    if let Some(review) = outcome_text::review(state) {
        row("review", "", Some((&one_line(&review), TextStyle::Yellow)));
    }
    row("changed", &one_line(changed), None);
    if let Some(worktree) = &state.plan.worktree {
        row(
            "worktree",
            &one_line(&worktree_text::location(worktree, state)),
            None,
        );
    }
    if let Some(unsaved) = worktree_text::unsaved(state, false) {
        row("unsaved", "", Some((&one_line(&unsaved), TextStyle::Red)));
    }
    if let Some(worktree) = &state.plan.worktree {
        for (name, command) in worktree_text::commands(worktree, state, &header.name, false) {
            row(name, &one_line(&command), None);
        }
    }
    if next {
        row("next", &next_step(header, state, changed), None);
    }
    text
}

/// Formats the result and its reason in one line, and returns it with its style. If `reason` is set,
/// it replaces the outcome's own reason.
pub(super) fn headline(state: &State, reason: Option<String>) -> (String, TextStyle) {
    let status = state.status(Liveness::Idle);
    let (sign, style) = match status {
        Status::Done => ("✔", TextStyle::Green),
        Status::Failed | Status::Crashed => ("✘", TextStyle::Red),
        _ => ("■", TextStyle::Yellow),
    };
    let why = match state.outcome().zip(state.outcome_summary()) {
        Some((Outcome::Stopped { .. }, by)) => format!(" {}", one_line(&by.detail)),
        Some((_, why)) => format!(": {}", one_line(&why.detail)),
        None => String::new(),
    };
    let name = match state.outcome() {
        Some(Outcome::Disputed { .. }) => "disputed",
        _ => status.as_str(),
    };
    let text = format!("{sign} {name}{}", reason.unwrap_or(why));
    (text, style)
}

/// Returns the short result that `--quiet` prints. `children` names failed child loops.
pub(crate) fn result(name: &str, state: &State, children: &[String]) -> String {
    let mut text = format!("{} ({})\n", headline(state, None).0, took(state));
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    let red = checks.filter_map(|(check, report)| {
        let report = report.as_ref().filter(|report| !report.is_green())?;
        Some((one_line(&check.command), event_line::verdict(report)))
    });
    for (command, verdict) in red {
        let _ = writeln!(text, "  check {command} {verdict}");
    }
    for line in outcome_text::last_error(state) {
        let _ = writeln!(text, "  | {line}");
    }
    if let Some(better) = outcome_text::better(name, state) {
        let _ = writeln!(text, "  {}", one_line(&better));
    }
    if let Some(review) = outcome_text::review(state) {
        let _ = writeln!(text, "  review {}", one_line(&review));
    }
    for child in children {
        let _ = writeln!(text, "  child {}", one_line(child));
    }
    if let Some(worktree) = &state.plan.worktree {
        let location = one_line(&worktree_text::location(worktree, state));
        let _ = writeln!(text, "  worktree {location}");
    }
    if let Some(unsaved) = worktree_text::unsaved(state, false) {
        let _ = writeln!(text, "  {}", one_line(&unsaved));
    }
    if let Some(denied) =
        outcome_text::denied(state).filter(|_| state.status(Liveness::Idle) != Status::Done)
    {
        let _ = writeln!(
            text,
            "  the agent was denied permission {}",
            one_line(&denied)
        );
    }
    text
}

pub(super) fn took(state: &State) -> String {
    let cost = state.cost_text().unwrap_or_else(|| "cost unknown".into());
    let used = state.tokens.total();
    let tokens = if used > 0 {
        format!(", {} tokens", thousands(used))
    } else {
        String::new()
    };
    format!(
        "{}, {}, {cost}{tokens}",
        iteration_count(state.iteration),
        duration(state.active_ms)
    )
}

fn next_step(header: &JournalHeader, state: &State, changed: &str) -> String {
    let name = &header.name;
    match (
        outcome_text::advice(header, state, Liveness::Idle),
        state.iteration,
    ) {
        (Some(step), 0) => step,
        (Some(step), _) => format!("{step} · ralph logs {name}"),
        (None, 0) => String::new(),
        (None, _) if changed.is_empty() || state.plan.worktree.is_some() => {
            format!("ralph logs {name}")
        }
        (None, _) => format!("git status · ralph logs {name}"),
    }
}
