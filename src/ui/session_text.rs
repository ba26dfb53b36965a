//! Formats the text shown inside a client's session, to its user and to its agent.

use super::outcome_text::next_step;
use super::{one_line, outcome_text};
use crate::engine::event::CheckReport;
use crate::engine::format::iteration_count;
use crate::engine::signals::fold_whitespace;
use crate::engine::{Limit, Liveness, Outcome, Phase, State};
use crate::lifecycle::session::client_of;
use crate::store::JournalHeader;
use std::path::Path;

/// Returns the help text for a client whose commands start with `sigil`.
pub(crate) fn help(sigil: char) -> String {
    with_sigil(sigil, include_str!("../../presets/session-help.txt"))
}

/// Replaces the sigil of commands such as `/ralph-help` with that of the session's client.
fn with_client_commands(state: &State, text: &str) -> String {
    with_sigil(client_of(state).map_or('/', |client| client.sigil), text)
}

fn with_sigil(sigil: char, text: &str) -> String {
    let commands = ["ralph-loop ", "cancel-ralph", "ralph-help"];
    commands.iter().fold(text.to_owned(), |text, command| {
        text.replace(&format!("/{command}"), &format!("{sigil}{command}"))
    })
}

/// Returns the message for a new loop. `is_default_limit` means that the user set no iteration
/// limit.
pub(crate) fn activated(header: &JournalHeader, state: &State, is_default_limit: bool) -> String {
    let name = &header.name;
    let limit = match state.turn_limit() {
        Some(max) if is_default_limit => {
            format!("{max} (default; set another with --max-iterations N, 0 is unlimited)")
        }
        Some(max) => max.to_string(),
        None => "unlimited".into(),
    };
    let promise = match state.expected_promise() {
        Some(promise) => format!(
            "{} (written only when it is TRUE)",
            fold_whitespace(&promise)
        ),
        None if !state.checks.is_empty() => "none (green checks end the loop)".into(),
        None if state.turn_limit().is_some() => "none (the loop runs to its limit)".into(),
        None => "none (only /cancel-ralph ends the loop)".into(),
    };
    let mut lines = vec![
        "🔄 ralph loop activated in this session".to_owned(),
        format!("Iteration: {}", state.turn_number()),
        format!("Max iterations: {limit}"),
        format!("Completion promise: {promise}"),
    ];
    lines.extend(
        state
            .plan
            .proof
            .checks
            .iter()
            .filter(|check| !check.is_held_out())
            .map(|check| format!("Check: {}", one_line(&check.command))),
    );
    lines.extend([
        "Whenever the agent stops, it gets the same prompt again and finds its earlier work in the files."
            .into(),
        format!("To watch:  ralph status {name}, or head -10 .claude/ralph-loop.local.md"),
        "To cancel: /cancel-ralph".into(),
    ]);
    let hint = client_of(state).and_then(|client| client.busy_hint.as_deref());
    lines.extend(hint.map(str::to_owned));
    with_client_commands(state, &lines.join("\n"))
}

/// Returns the lines about a loop file of the original plugin that this session has taken over.
pub(crate) fn adopted(state: &State) -> String {
    let limit = state.turn_limit().unwrap_or_default();
    let text = format!(
        "🔄 ralph: this session continues the loop in .claude/ralph-loop.local.md, up to iteration {limit}; \
         to cancel it: /cancel-ralph"
    );
    with_client_commands(state, &text)
}

/// Returns the warning about a loop file that was committed.
pub(crate) fn tracked_loop_file() -> String {
    "⚠️ ralph: .claude/ralph-loop.local.md is an active loop, but git tracks the file: it came with the repository, so \
     ralph ignores it. If the loop is yours, run `git rm --cached .claude/ralph-loop.local.md`."
        .into()
}

/// Returns the note about a sandbox that the settings ask for, in a session of this client.
pub(crate) fn no_sandbox(client: &str) -> String {
    format!(
        "The setting sandbox does not apply here: {client} itself runs the agent. It applies if you resume the loop outside."
    )
}

/// Returns the line about a limit in the settings that cannot act in a session without a
/// transcript.
pub(crate) fn unmeasured_limit(key: &str) -> String {
    format!("\nNote: {key} does not apply here, because this session has no transcript.")
}

/// Returns the rules that follow the task in the agent's prompt.
pub(crate) fn rules(state: &State) -> String {
    let mut rules = vec![
        "How this loop ends:".to_owned(),
        "- Work on the task. When you stop, you get the same prompt again until the loop ends."
            .into(),
    ];
    if !state.checks.is_empty() {
        rules.push(
            "- At every stop ralph runs the checks above, and all must be green. A promise does not replace them. \
             The output of red checks comes back with the prompt."
                .into(),
        );
    }
    if let Some(promise) = state.expected_promise() {
        rules.extend([
            format!(
                "- When, and only when, the statement is completely true, write <promise>{}</promise> alone on the last \
                 line of your message, with exactly these tags.",
                fold_whitespace(&promise)
            ),
            "- Never write it to get out of the loop: not when you are stuck, not when the task seems impossible, not \
             when it takes long. Never promise anything that is not true."
                .into(),
        ]);
    }
    rules.push(
        "- If you cannot continue without the user, do not guess: write <blocked>the reason</blocked> alone on a \
         line. That ends the loop as blocked."
            .into(),
    );
    rules.join("\n")
}

/// Returns the line that accompanies a repeated prompt.
pub(crate) fn turn(state: &State) -> String {
    let mut text = format!("🔄 ralph iteration {}", state.turn_label());
    let checks = state.plan.proof.checks.iter();
    // Use the checks of the previous turn, because those of the new turn have not run.
    let last = state
        .recent
        .back()
        .map(|last| &last.checks[..])
        .unwrap_or_default();
    let red = checks
        .zip(last)
        .filter(|(_, report)| report.as_ref().is_some_and(|report| !report.is_green()));
    let red: Vec<String> = red.map(|(check, _)| check.label()).collect();
    if !red.is_empty() {
        text.extend([" | red: ", &red.join(", ")]);
    }
    match state.expected_promise() {
        Some(promise) => {
            text.extend([
                " | to finish: <promise>",
                &fold_whitespace(&promise),
                "</promise>, only when it is TRUE",
            ]);
        }
        None if !state.plan.proof.checks.is_empty() => {
            text.push_str(" | green checks end the loop");
        }
        None if state.turn_limit().is_some() => {
            text.push_str(" | no promise is set: the loop runs until it reaches its limit");
        }
        None => {
            text.push_str(" | no promise and no limit are set: only /cancel-ralph ends the loop");
        }
    }
    with_client_commands(state, &text)
}

/// Shortens a prompt to about `bytes` bytes, for a client that truncates longer prompts. The result
/// consists of the prompt's start and end, and the path of `file`, which contains the whole prompt.
pub(crate) fn shortened(prompt: &str, bytes: usize, file: &Path) -> String {
    let prompt = prompt.trim_end();
    let is_boundary = |at: &usize| prompt.is_char_boundary(*at);
    let head = (0..=bytes / 2).rev().find(is_boundary).unwrap_or(0);
    let after = prompt.len().saturating_sub(bytes / 2).max(head);
    let tail = (after..=prompt.len())
        .find(is_boundary)
        .unwrap_or(prompt.len());
    format!(
        "This prompt is too long to show here. Before you start, read all of it in {}\n\n{}\n\n[…]\n\n{}",
        file.display(),
        &prompt[..head],
        &prompt[tail..]
    )
}

/// Returns the message for a failed turn. `why` is the turn's error message.
pub(crate) fn turn_failed(header: &JournalHeader, state: &State, why: &str) -> String {
    let step = next_step(header, state, Liveness::Idle).unwrap_or_default();
    format!(
        "⚠️ ralph: the turn failed in iteration {}: {}\n{step}",
        state.turn_number(),
        one_line(why)
    )
}

/// Returns the message for a loop that has ended or paused, so that the session may stop.
pub(crate) fn ended(header: &JournalHeader, state: &State) -> String {
    let after = iteration_count(state.turn_number());
    let how_to_continue = || {
        next_step(header, state, Liveness::Idle)
            .map(|step| format!("\nTo continue: {step}"))
            .unwrap_or_default()
    };
    let overruled = state.overruled_claim();
    let overruled = overruled
        .map(|text| format!("; {}", one_line(&text)))
        .unwrap_or_default();
    match &state.phase {
        Phase::Ended(Outcome::Done { checked: true }) if state.iteration == 0 => {
            "✅ ralph: every check is green already, so there is nothing to do; no loop was started"
                .into()
        }
        Phase::Ended(Outcome::Done { checked: true }) => {
            format!("✅ ralph: done after {after}: every check is green{overruled}")
        }
        Phase::Ended(Outcome::Done { checked: false }) => match state.expected_promise() {
            Some(promise) => format!(
                "✅ ralph: detected <promise>{}</promise> after {after}{overruled}",
                fold_whitespace(&promise)
            ),
            None => format!("✅ ralph: done after {after}{overruled}"),
        },
        Phase::Ended(Outcome::Limit {
            limit: Limit::Iterations,
            ..
        }) => {
            let max = state.turn_limit().unwrap_or_default();
            let missing = outcome_text::missing(state).or_else(|| red(state));
            let missing = missing.map(|why| format!("; {why}")).unwrap_or_default();
            format!(
                "🛑 ralph: max iterations ({max}) reached{missing}{}",
                how_to_continue()
            )
        }
        Phase::Ended(Outcome::Limit {
            limit: Limit::Blocks,
            ..
        }) => format!(
            "🛑 ralph: {}{}",
            block_cap_reached(state),
            how_to_continue()
        ),
        Phase::Ended(Outcome::Blocked { why }) => {
            format!(
                "✋ ralph: blocked after {after}: {}{}",
                one_line(why),
                how_to_continue()
            )
        }
        Phase::Ended(Outcome::Stopped { by }) => {
            format!(
                "🛑 ralph: loop canceled at iteration {} ({})",
                state.turn_number(),
                by.label()
            )
        }
        Phase::Ended(Outcome::Fatal { detail, .. }) => {
            format!("⚠️ ralph: the loop ended: {}", one_line(detail))
        }
        Phase::Ended(outcome) => {
            let summary = state.outcome_summary();
            format!(
                "🛑 ralph: the loop ended: {}{}",
                one_line(&summary.unwrap_or_else(|| outcome.summary()).detail),
                how_to_continue()
            )
        }
        _ => format!(
            "⏸ ralph: paused at iteration {}{}",
            state.turn_number(),
            how_to_continue()
        ),
    }
}

/// Explains that the client's cap on blocked stops has ended the loop, and how to lift the cap.
fn block_cap_reached(state: &State) -> String {
    let client = client_of(state);
    let title = client.map_or("the client", |client| &client.title);
    let lift = client
        .and_then(|client| client.block_cap_variable())
        .map(|variable| format!(" {variable}=0 lifts this limit; ralph plugin install sets it."));
    format!(
        "{title} ignores the stop hook after {} blocked stops without a tool call.{}",
        state.plan.limits.blocks.unwrap_or_default(),
        lift.unwrap_or_default()
    )
}

fn red(state: &State) -> Option<String> {
    let red = state
        .checks
        .iter()
        .flatten()
        .filter(|report| !CheckReport::is_green(report))
        .count();
    (red > 0).then(|| format!("{red} of {} checks red", state.checks.len()))
}
