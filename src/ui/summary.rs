//! The last words of a run: outcome and why, what it took, what changed, what to do next.

use super::cost::cost;
use super::{Paint, event_line, one_line, outcome_text, paint, scm_text, worktree_text};
use crate::engine::format::{duration, thousands};
use crate::engine::outcome::iterations;
use crate::engine::{Outcome, State, Status};
use crate::store::Header;
use std::fmt::Write as _;

/// The summary of a loop that its runner has left.
pub fn text(
    header: &Header,
    state: &State,
    changed: &str,
    children: &[String],
    next: bool,
    colour: bool,
) -> String {
    // What broke is said on standard error, in full.
    let broke = match state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(format!(" ({})", class.word())),
        _ => None,
    };
    let mut text = format!("{}\n", headline(state, broke, colour));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(
                text,
                "  {} {value}",
                paint(&format!("{name:<8}"), Paint::Dim, colour)
            );
        }
    };
    row("took", &took(state));
    for (check, report) in state.plan.proof.checks.iter().zip(&state.checks) {
        let (verdict, hue) = match report {
            Some(report) if report.is_green() => (event_line::verdict(report), Paint::Green),
            Some(report) => (event_line::verdict(report), Paint::Red),
            None => ("not run".into(), Paint::Yellow),
        };
        row(
            "check",
            &format!(
                "{} {}",
                one_line(&check.command),
                paint(&verdict, hue, colour)
            ),
        );
    }
    for (task, report) in state.keeping.reports.iter().enumerate() {
        let (words, hue) = scm_text::line_of_green(state, task, report);
        row("scm", &paint(&words, hue, colour));
    }
    for (at, line) in outcome_text::last_words(state).iter().enumerate() {
        row(if at == 0 { "said" } else { "" }, line);
    }
    row(
        "denied",
        &one_line(&outcome_text::denied(state).unwrap_or_default()),
    );
    row(
        "missing",
        &one_line(&outcome_text::missing(state).unwrap_or_default()),
    );
    for child in children {
        row("child", &paint(&one_line(child), Paint::Red, colour));
    }
    row("changed", &one_line(changed));
    if let Some(own) = &state.plan.worktree {
        row("worktree", &worktree_text::place(own));
        let unsaved = worktree_text::unsaved(state, false).unwrap_or_default();
        row("unsaved", &paint(&one_line(&unsaved), Paint::Red, colour));
        for (name, command) in worktree_text::commands(own, &header.name) {
            row(name, &command);
        }
    }
    if next {
        row("next", &next_step(header, state, changed));
    }
    text
}

/// The result in one line, and why, unless something else is to stand there.
fn headline(state: &State, instead: Option<String>, colour: bool) -> String {
    let status = state.status(false);
    let (sign, hue) = match status {
        Status::Done => ("✔", Paint::Green),
        Status::Failed | Status::Crashed => ("✘", Paint::Red),
        _ => ("■", Paint::Yellow),
    };
    let why = match state.outcome().zip(state.verdict()) {
        Some((Outcome::Stopped { .. }, by)) => format!(" {}", one_line(&by.detail)),
        Some((_, why)) => format!(": {}", one_line(&why.detail)),
        None => String::new(),
    };
    paint(
        &format!("{sign} {}{}", status.word(), instead.unwrap_or(why)),
        hue,
        colour,
    )
}

/// The result alone, for `--quiet`.
pub fn result(state: &State, children: &[String]) -> String {
    let mut text = format!("{} ({})\n", headline(state, None, false), took(state));
    for line in outcome_text::last_words(state) {
        let _ = writeln!(text, "  | {line}");
    }
    for child in children {
        let _ = writeln!(text, "  child {}", one_line(child));
    }
    if let Some(own) = &state.plan.worktree {
        let _ = writeln!(text, "  worktree {}", worktree_text::place(own));
    }
    if let Some(unsaved) = worktree_text::unsaved(state, false) {
        let _ = writeln!(text, "  {}", one_line(&unsaved));
    }
    if let Some(denied) =
        outcome_text::denied(state).filter(|_| state.status(false) != Status::Done)
    {
        let _ = writeln!(
            text,
            "  the agent was not allowed something {}",
            one_line(&denied)
        );
    }
    text
}

fn took(state: &State) -> String {
    let cost = cost(state).unwrap_or_else(|| "cost unknown".into());
    let used = state.tokens.total();
    let tokens = if used > 0 {
        format!(", {} tokens", thousands(used))
    } else {
        String::new()
    };
    format!(
        "{}, {}, {cost}{tokens}",
        iterations(state.iteration),
        duration(state.active_ms)
    )
}

fn next_step(header: &Header, state: &State, changed: &str) -> String {
    let name = &header.name;
    match (outcome_text::advice(header, state, false), state.iteration) {
        (Some(step), 0) => step,
        (Some(step), _) => format!("{step} · ralph logs {name}"),
        (None, 0) => String::new(),
        (None, _) if changed.is_empty() || state.plan.worktree.is_some() => {
            format!("ralph logs {name}")
        }
        (None, _) => format!("git status · ralph logs {name}"),
    }
}
