//! What is said inside the session of a client, to its person and to its agent.

use super::status::next_step;
use super::{one_line, outcome_text};
use crate::engine::event::CheckReport;
use crate::engine::outcome::iterations;
use crate::engine::signals::fold;
use crate::engine::{Limit, Outcome, Phase, State};
use crate::store::Header;
use std::path::Path;

/// What a person's commands begin with in a client that keeps slashes to itself.
const SIGIL: [(&str, &str); 1] = [("codex", "$")];

/// How its commands are used in this client.
pub fn help(client: &str) -> String {
    spelled(client, include_str!("../../presets/session-help.txt"))
}

/// A text with the commands in it as this client has them.
fn spelled(client: &str, text: &str) -> String {
    let sigil = SIGIL
        .iter()
        .find(|(name, _)| *name == client)
        .map_or("/", |(_, sigil)| sigil);
    let commands = ["ralph-loop ", "cancel-ralph", "ralph-help"];
    commands.iter().fold(text.to_owned(), |text, command| {
        text.replace(&format!("/{command}"), &format!("{sigil}{command}"))
    })
}

/// What a person is told when a loop begins; `defaulted` where nobody said how many iterations there may be.
pub fn activated(header: &Header, state: &State, defaulted: bool) -> String {
    let name = &header.name;
    let limit = match state.turn_limit() {
        Some(max) if defaulted => {
            format!("{max} (unless you say --max-iterations N; 0 is unlimited)")
        }
        Some(max) => max.to_string(),
        None => "unlimited".into(),
    };
    let promise = match state.promises().first() {
        Some(promise) => format!("{} (to be given only when it is TRUE)", fold(promise)),
        None if !state.checks.is_empty() => "none (green checks end the loop)".into(),
        None => "none (the loop runs to its limit)".into(),
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
            .map(|check| format!("Check: {}", one_line(&check.command))),
    );
    lines.extend([
        "Whenever the agent stops, the same prompt is given to it again; its earlier work is in the files."
            .into(),
        format!("To watch:  ralph status {name}, or head -10 .claude/ralph-loop.local.md"),
        format!("To cancel: /cancel-ralph, or ralph stop {name}"),
    ]);
    spelled(client(state), &lines.join("\n"))
}

/// What its agent is told besides.
pub fn rules(state: &State) -> String {
    let mut rules = vec![
        "How this loop ends:".to_owned(),
        "- Work on the task. When you stop, the same prompt comes again, until the loop is over."
            .into(),
    ];
    if !state.checks.is_empty() {
        rules.push(
            "- At every stop the checks above are run for you, and all must be green. Your word does not replace them; \
             what is red comes back with the prompt."
                .into(),
        );
    }
    if let Some(promise) = state.promises().first() {
        rules.extend([
            format!(
                "- When, and only when, the statement is completely true, write <promise>{}</promise> alone on the last \
                 line of your message, with these very tags.",
                fold(promise)
            ),
            "- Never write it to get out of the loop: not when you are stuck, not when the task seems impossible, not \
             when it takes long. A promise that is not true is a lie to the person who asked for it."
                .into(),
        ]);
    }
    rules.push(
        "- If you cannot go on without a person, do not guess or fake: write <blocked>the reason</blocked> alone on a \
         line. That ends the loop honestly."
            .into(),
    );
    rules.join("\n")
}

/// The line beside a prompt that is given again.
pub fn turn(state: &State) -> String {
    let mut words = format!("🔄 ralph iteration {}", state.turn_words());
    let checks = state.plan.proof.checks.iter();
    // Those of the turn before: those of the new one have not run.
    let last = state
        .recent
        .back()
        .map(|last| &last.checks[..])
        .unwrap_or_default();
    let red = checks
        .zip(last)
        .filter(|(_, report)| report.as_ref().is_some_and(|report| !report.is_green()));
    let red: Vec<String> = red
        .map(|(check, _)| format!("`{}`", one_line(&check.command)))
        .collect();
    if !red.is_empty() {
        words.extend([" | red: ", &red.join(", ")]);
    }
    match state.promises().first() {
        Some(promise) => {
            words.extend([
                " | to finish: <promise>",
                &fold(promise),
                "</promise>, only when that is TRUE",
            ]);
        }
        None if !state.plan.proof.checks.is_empty() => words.push_str(" | green checks end it"),
        None if state.turn_limit().is_some() => {
            words.push_str(" | no promise: it runs to its limit")
        }
        None => words.push_str(" | no promise and no limit: only /cancel-ralph ends it"),
    }
    spelled(client(state), &words)
}

/// What an agent is told of a prompt whose client hands over no more than so many bytes of it: both its ends, and
/// where all of it is.
pub fn shortened(prompt: &str, bytes: usize, whole: &Path) -> String {
    let prompt = prompt.trim_end();
    let whole_character = |at: &usize| prompt.is_char_boundary(*at);
    let head = (0..=bytes / 2).rev().find(whole_character).unwrap_or(0);
    let after = prompt.len().saturating_sub(bytes / 2).max(head);
    let tail = (after..=prompt.len())
        .find(whole_character)
        .unwrap_or(prompt.len());
    format!(
        "This prompt is too long to be handed over here. Before you begin, read all of it in {}\n\n{}\n\n[…]\n\n{}",
        whole.display(),
        &prompt[..head],
        &prompt[tail..]
    )
}

/// What a person is told when the session's turn broke off.
pub fn broke_off(header: &Header, state: &State, why: &str) -> String {
    let step = next_step(header, state, false).unwrap_or_default();
    format!(
        "⚠️ ralph: the turn broke off at iteration {}: {}\n{step}",
        state.turn_number(),
        one_line(why)
    )
}

/// What a person is told when a session is let go.
pub fn over(header: &Header, state: &State) -> String {
    let after = iterations(state.turn_number());
    let go_on = || {
        next_step(header, state, false)
            .map(|step| format!("\nTo go on: {step}"))
            .unwrap_or_default()
    };
    match &state.phase {
        Phase::Ended(Outcome::Done { checked: true }) => {
            format!("✅ ralph: done after {after}: every check is green")
        }
        Phase::Ended(Outcome::Done { checked: false }) => match state.promises().first() {
            Some(promise) => format!(
                "✅ ralph: detected <promise>{}</promise> after {after}",
                fold(promise)
            ),
            None => format!("✅ ralph: done after {after}"),
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
                go_on()
            )
        }
        Phase::Ended(Outcome::Limit {
            limit: Limit::Blocks,
            ..
        }) => format!(
            "🛑 ralph: Claude Code would let this session go now: it keeps none that was held back {} times without \
             using a tool. CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts that, and ralph plugin install sets it.{}",
            state.plan.limits.blocks.unwrap_or_default(),
            go_on()
        ),
        Phase::Ended(Outcome::Blocked { why }) => {
            format!(
                "✋ ralph: blocked after {after}: {}{}",
                one_line(why),
                go_on()
            )
        }
        Phase::Ended(Outcome::Stopped { by }) => {
            format!(
                "🛑 ralph: loop cancelled at iteration {} ({by})",
                state.turn_number()
            )
        }
        Phase::Ended(Outcome::Fatal { detail, .. }) => {
            format!("⚠️ ralph: the loop is over: {}", one_line(detail))
        }
        Phase::Ended(outcome) => {
            format!(
                "🛑 ralph: the loop is over: {}{}",
                one_line(&outcome.verdict().detail),
                go_on()
            )
        }
        _ => format!(
            "⏸ ralph: paused at iteration {}{}",
            state.turn_number(),
            go_on()
        ),
    }
}

fn client(state: &State) -> &str {
    state
        .plan
        .session
        .as_ref()
        .map_or("", |session| &session.client)
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
