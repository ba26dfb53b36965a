//! Formats the second look: what was touched, and how the checks turned out by the original tests.

use super::event_line::{check_command, verdict};
use super::{TextStyle, one_line};
use crate::engine::State;
use crate::engine::event::CheckReport;
use crate::engine::look::LookVerdict;
use crate::engine::touched::TouchedFiles;

/// Maximum number of touched files that a line names.
const NAMED_MAX: usize = 3;

/// Returns the line for a survey; none if nothing was touched that can turn a check green.
pub(super) fn surveyed(
    touched: &TouchedFiles,
    failure: Option<&str>,
    state: &State,
) -> Vec<(String, TextStyle)> {
    let files = touched.describe();
    let mut text = match failure {
        Some(why) => format!("cannot check by the original tests: {why}"),
        None if state.is_sealed() && !files.is_empty() => "checking by the original tests".into(),
        None if matches!(
            state.look_verdict(),
            LookVerdict::SetUp | LookVerdict::Recheck(_)
        ) =>
        {
            "checking by the original tests".into()
        }
        None => return vec![],
    };
    if !files.is_empty() {
        let mut names: Vec<String> = touched.names().take(NAMED_MAX).map(one_line).collect();
        if touched.names().nth(NAMED_MAX).is_some() {
            names.push("…".into());
        }
        text = format!(
            "{text}; changed since the start: {files} ({})",
            names.join(", ")
        );
    }
    vec![(text, TextStyle::Yellow)]
}

/// Returns the line for the setup command in the view.
pub(super) fn set_up(report: &CheckReport, state: &State) -> Vec<(String, TextStyle)> {
    let style = if report.is_green() {
        TextStyle::Dim
    } else {
        TextStyle::Red
    };
    let text = format!("setup {}: {}", setup_command(state), verdict(report));
    vec![(text, style)]
}

fn setup_command(state: &State) -> String {
    let setup = state.plan.proof.setup.as_ref();
    let command = setup.map(|setup| format!("`{}`", setup.command));
    command.unwrap_or_default()
}

/// Returns the color of a check's line.
pub(super) fn result_style(is_green: bool) -> TextStyle {
    if is_green {
        TextStyle::Green
    } else {
        TextStyle::Red
    }
}

/// Returns the lines for a check in the view.
pub(super) fn rechecked(
    check: usize,
    report: &CheckReport,
    state: &State,
) -> Vec<(String, TextStyle)> {
    let shortfall = state.shortfall(check, report).filter(|_| report.is_green());
    let is_green = report.is_green() && shortfall.is_none();
    let result = match shortfall {
        Some(why) => format!("red ({why})"),
        None if is_green => verdict(report) + uncompared(check, report, state),
        None => verdict(report),
    };
    let command = check_command(state, check);
    let text = format!("check {command} by the original tests: {result}");
    let mut lines = vec![(text, result_style(is_green))];
    let is_last = check + 1 == state.checks.len();
    if is_last {
        lines.extend(disputed(state));
    }
    lines
}

/// Returns the line for a dispute that the next prompt contains; `None` if there is none.
pub(super) fn disputed(state: &State) -> Option<(String, TextStyle)> {
    let is_disputed = state.look_verdict() == LookVerdict::Disputed && state.will_continue();
    let lost = state.look.touched.as_ref();
    let lost = lost.and_then(TouchedFiles::describe_lost_tests);
    let why = lost.unwrap_or_else(|| {
        if state.is_sealed() {
            "the checks prove less than at the start".into()
        } else {
            "green only with the changed tests or settings".into()
        }
    });
    let text = format!("disputed: {}; the agent is told", one_line(&why));
    is_disputed.then_some((text, TextStyle::Yellow))
}

/// Says in what way a green check of a sealed loop proves less than at the start; empty if it proves
/// as much.
pub(super) fn sealed_shortfall(check: usize, report: &CheckReport, state: &State) -> String {
    let is_judged = state.is_sealed() && report.is_green();
    let shortfall = is_judged.then(|| state.shortfall(check, report)).flatten();
    shortfall.map_or_else(String::new, |why| format!(", but {why}"))
}

/// Says why a check's tests were not compared with those of the start; empty if they were.
fn uncompared(check: usize, report: &CheckReport, state: &State) -> &'static str {
    match (state.start_tests(check), report.tests) {
        (_, None) => "; its output has no number of tests",
        (None, _) => "; its tests were not counted at the start",
        _ => "",
    }
}

/// Describes the step of the look that is running.
pub(super) fn activity(state: &State) -> String {
    match state.look_verdict() {
        LookVerdict::Recheck(check) => {
            format!(
                "checking {} by the original tests",
                check_command(state, check)
            )
        }
        LookVerdict::SetUp => format!("preparing the checks with {}", setup_command(state)),
        _ => "comparing files with the loop's start".into(),
    }
}
