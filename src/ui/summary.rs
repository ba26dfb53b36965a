//! Formats the summary at the end of a run: outcome, effort, changes and the next step.

use super::cost::cost_text;
use super::{TextStyle, event_line, one_line, outcome_text, scm_text, styled, worktree_text};
use crate::engine::format::{duration, iteration_count, thousands};
use crate::engine::{Liveness, Outcome, State, Status};
use crate::store::JournalHeader;
use std::fmt::Write as _;

/// Returns the summary of a loop that no longer runs. `changed` describes the changed files, and
/// `children` names failed child loops. With `next`, the summary ends with the suggested next step.
pub(crate) fn text(
    header: &JournalHeader,
    state: &State,
    changed: &str,
    children: &[String],
    next: bool,
    color: bool,
) -> String {
    // The command prints the fatal error itself to standard error.
    let fatal_class = match state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(format!(" ({})", class.as_str())),
        _ => None,
    };
    let mut text = format!("{}\n", headline(state, fatal_class, color));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(
                text,
                "  {} {value}",
                styled(&format!("{name:<8}"), TextStyle::Dim, color)
            );
        }
    };
    row("took", &took(state));
    for (check, report) in state.plan.proof.checks.iter().zip(&state.checks) {
        let (verdict, style) = match report {
            Some(report) if report.is_green() => (event_line::verdict(report), TextStyle::Green),
            Some(report) => (event_line::verdict(report), TextStyle::Red),
            None => ("not run".into(), TextStyle::Yellow),
        };
        row(
            "check",
            &format!(
                "{} {}",
                one_line(&check.command),
                styled(&verdict, style, color)
            ),
        );
    }
    for (task, report) in state.scm.reports.iter().enumerate() {
        let (text, style) = scm_text::task_line(state, task, report);
        row("scm", &styled(&text, style, color));
    }
    for (at, line) in outcome_text::last_error(state).iter().enumerate() {
        row(if at == 0 { "output" } else { "" }, line);
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
        row("child", &styled(&one_line(child), TextStyle::Red, color));
    }
    row("changed", &one_line(changed));
    if let Some(worktree) = &state.plan.worktree {
        row(
            "worktree",
            &one_line(&worktree_text::location(worktree, state)),
        );
    }
    if let Some(unsaved) = worktree_text::unsaved(state, false) {
        row(
            "unsaved",
            &styled(&one_line(&unsaved), TextStyle::Red, color),
        );
    }
    if let Some(worktree) = &state.plan.worktree {
        for (name, command) in worktree_text::commands(worktree, state, &header.name) {
            row(name, &one_line(&command));
        }
    }
    if next {
        row("next", &next_step(header, state, changed));
    }
    text
}

/// Formats the result and its reason in one line. If `reason` is set, it replaces the outcome's own
/// reason.
fn headline(state: &State, reason: Option<String>, color: bool) -> String {
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
    styled(
        &format!("{sign} {}{}", status.as_str(), reason.unwrap_or(why)),
        style,
        color,
    )
}

/// Returns the short result that `--quiet` prints. `children` names failed child loops.
pub(crate) fn result(state: &State, children: &[String]) -> String {
    let mut text = format!("{} ({})\n", headline(state, None, false), took(state));
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

fn took(state: &State) -> String {
    let cost = cost_text(state).unwrap_or_else(|| "cost unknown".into());
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
