//! Renders an iteration's prompt from the state and the inputs that the runner gathers.
//!
//! An agent may echo its prompt, so no line of a prompt may be read as a signal. Text that ralph
//! did not write is therefore [defanged](defang), and matches of the done pattern in it are broken
//! up.

use super::display::code_span;
use super::event::CheckReport;
use super::excerpt::Excerpt;
use super::failure::{AgentFailure, FailureKind};
use super::format::{duration, iteration_count, with_limit};
use super::iteration::{Iteration, describe_end};
use super::plan::{ContextLevel, OnFail, PromptContext};
use super::scm::CommitTask;
use super::session;
use super::signals::{defang, fold_whitespace};
use super::state::State;
use super::template::fill;
use regex::{Captures, Regex};
use std::collections::BTreeMap;

/// The inputs for a prompt, gathered by the runner.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptInputs {
    /// The text of the task.
    pub(crate) task: String,
    /// The changes since the loop began, as a diff.
    pub(crate) diff: Excerpt,
    /// Why there is no diff; empty if there is a diff.
    pub(crate) diff_missing: String,
    /// The red checks in the plan's order: index, output, and the path of the full output.
    pub(crate) red: Vec<(usize, Excerpt, String)>,
    /// The output of the failed SCM task, and the path of the full output; `None` if no task has
    /// failed.
    pub(crate) scm_output: Option<(Excerpt, String)>,
    /// The files that each of the last iterations changed, as code spans.
    pub(crate) files: BTreeMap<u32, Vec<String>>,
    /// The newest messages on the project's bus.
    pub(crate) bus: Excerpt,
}

/// The names that a prompt template may use.
pub const TEMPLATE_FIELDS: [&str; 14] = [
    "task",
    "prepended",
    "appended",
    "iteration",
    "max_iterations",
    "limits",
    "done",
    "checks",
    "diff",
    "no_diff",
    "history",
    "notes",
    "bus",
    "title",
];

/// Returns whether prompts with this context include the notes, which contain messages from people.
pub(crate) fn includes_notes(context: &PromptContext) -> bool {
    let mark = |name: &str| {
        Some(if name == "notes" {
            "\0".into()
        } else {
            name.to_owned()
        })
    };
    context.level != ContextLevel::None && fill(&context.template, &mark).contains('\0')
}

/// Renders the prompt for the next iteration.
pub(crate) fn render(state: &State, inputs: &PromptInputs) -> String {
    let context = &state.plan.context;
    let template = if state.is_in_session() {
        session::TEMPLATE
    } else {
        &context.template
    };
    if context.level == ContextLevel::None && !state.is_in_session() {
        return inputs.task.clone();
    }
    let full = context.level == ContextLevel::Full && !state.is_in_session();
    let pattern = state
        .plan
        .proof
        .pattern()
        .and_then(|pattern| Regex::new(pattern).ok());
    let pattern = pattern.as_ref();
    let red = |wanted: OnFail| defang_matches(red_outputs(state, inputs, wanted), pattern);
    let replaced = red(OnFail::Replace);
    let value = |name: &str| {
        Some(match name {
            "task" if replaced.is_empty() => inputs.task.trim_end().to_owned(),
            "task" => replaced.clone(),
            "title" => state.plan.task.title.clone().unwrap_or_default(),
            "prepended" => red(OnFail::Prepend),
            "appended" => red(OnFail::Append),
            "iteration" => (state.iteration + 1).to_string(),
            "max_iterations" => state
                .last_number()
                .map(|max| max.to_string())
                .unwrap_or_default(),
            "limits" => limits(state),
            "done" => done(state, pattern),
            "checks" => defang_matches(green_checks(state), pattern),
            "diff" if full && !inputs.diff.text.is_empty() => defang_matches(
                with_cut(&inputs.diff.fenced("diff"), &inputs.diff.cut),
                pattern,
            ),
            "no_diff" if full => inputs.diff_missing.clone(),
            "history" if full => defang_matches(history(state, inputs), pattern),
            "notes" => defang_matches(notes(state, inputs, pattern), pattern),
            "bus" if inputs.bus.text.is_empty() => String::new(),
            "bus" => defang_matches(with_cut(&inputs.bus.fenced(""), &inputs.bus.cut), pattern),
            "diff" | "no_diff" | "history" => String::new(),
            _ => return None,
        })
    };
    let text = fill(template, &value);
    let mut text = text.trim_end().to_owned();
    text.push('\n');
    text
}

fn red_outputs(state: &State, inputs: &PromptInputs, wanted: OnFail) -> String {
    let checks = &state.plan.proof.checks;
    let mut parts = Vec::new();
    for (index, output, log) in &inputs.red {
        let (Some(check), Some(Some(report))) = (checks.get(*index), state.checks.get(*index))
        else {
            continue;
        };
        let on_fail = match check.on_fail {
            // No agent has worked on the task yet, so the first prompt must contain it.
            OnFail::Replace if state.counted == 0 => OnFail::Append,
            on_fail => on_fail,
        };
        if on_fail != wanted {
            continue;
        }
        if check.is_held_out() {
            parts.push(
                "A held-out check failed. All other checks are green, but the task is not done: \
                 read it again, and look for cases that the other checks do not cover."
                    .into(),
            );
            continue;
        }
        let head = format!(
            "The check {} is red ({}).",
            defang(&check.label()),
            describe_red_check(report)
        );
        if output.text.trim().is_empty() {
            parts.push(if output.cut.is_empty() {
                format!("{head} It printed nothing.")
            } else {
                format!("{head} Full output: {log}")
            });
            continue;
        }
        parts.push(format!(
            "{head} Full output: {log}\n\n{}",
            with_cut(&output.fenced(""), &output.cut)
        ));
    }
    parts.join("\n\n")
}

fn with_cut(text: &str, cut: &str) -> String {
    if cut.is_empty() {
        text.to_owned()
    } else {
        format!("{text}\n{cut}")
    }
}

/// Returns the way a red check failed: `exit 1`, `timeout after 10m`.
pub(crate) fn describe_red_check(report: &CheckReport) -> String {
    match report {
        CheckReport {
            timed_out: true,
            ms,
            ..
        } => format!("timeout after {}", duration(*ms)),
        CheckReport {
            unmatched: Some(pattern),
            exit,
            ..
        } if exit.is_success() => format!("exit 0, but its output does not match /{pattern}/"),
        CheckReport { exit, .. } => match (exit.code, exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "could not be run".into(),
        },
    }
}

fn limits(state: &State) -> String {
    let used: Vec<String> = state.used_budgets().collect();
    if used.is_empty() {
        String::new()
    } else {
        format!("Used so far: {}.", used.join(", "))
    }
}

/// Returns the conditions for "done". No line can be read as a signal: every tag is inside a
/// sentence, and the done pattern, if any, is split into pieces.
fn done(state: &State, pattern: Option<&Regex>) -> String {
    let proof = &state.plan.proof;
    let mut lines = Vec::new();
    if !proof.checks.is_empty() {
        let (hidden, shown): (Vec<_>, Vec<_>) =
            proof.checks.iter().partition(|check| check.is_held_out());
        let names: Vec<String> = shown
            .iter()
            .map(|check| defang(&code_span(&check.command)))
            .collect();
        if !names.is_empty() {
            let line = format!(
                "- These checks are run for you after you exit, and all must be green: {}.",
                names.join(", ")
            );
            lines.push(defang_matches(line, pattern));
        }
        if !hidden.is_empty() {
            let line = "- Once they are green, held-out checks are run as well. They test the same \
                        task, and you are not told how.";
            lines.push(line.into());
        }
        let notes = state.label_notes().into_iter();
        lines.extend(notes.map(|note| defang_matches(note, pattern)));
    }
    let signals: Vec<String> = state
        .expected_signals()
        .iter()
        .map(|signal| signal.instruction(pattern))
        .collect();
    if signals.is_empty() && proof.checks.is_empty() {
        lines.push("- Do one sensible step of the task, then exit.".into());
    } else if !signals.is_empty() {
        lines.push(format!(
            "- Only when the whole task is done, not just this iteration's part, {}.",
            signals.join(", or ")
        ));
    }
    let needs_message =
        |task: &String| CommitTask::parse(task).is_some_and(|commit| commit.message.is_none());
    let commits = state.plan.scm.tasks.iter().any(needs_message) && !proof.checks.is_empty();
    let when = match &state.plan.worktree {
        Some(_) => Some("After you exit, what you leave uncommitted is committed for you."),
        None => commits.then_some("When the checks are green, your changes are committed for you."),
    };
    lines.extend(when.map(|when| {
        let line = format!(
            "- {when} Summarize your changes in one short imperative sentence, and \
             write it as <commit>…</commit> alone on a line of your final message."
        );
        defang_matches(line, pattern)
    }));
    if !state.is_in_session() {
        let line = "- The next iteration sees the files, but nothing else that you know. Write what it \
                    should know as <note>…</note> alone on lines of your final message.";
        lines.push(defang_matches(line.into(), pattern));
    }
    lines.push(
        "- If you cannot continue without a person, do not guess or fake results: write \
         <blocked>the reason</blocked> alone on a line and exit."
            .into(),
    );
    lines.join("\n")
}

/// Splits `text` into two pieces, or into more until the result no longer matches `pattern`, if
/// there is one.
pub(super) fn in_pieces(text: &str, pattern: Option<&Regex>) -> String {
    let chars: Vec<char> = text.chars().collect();
    let spelled = |size: usize| {
        let pieces: Vec<String> = chars
            .chunks(size)
            .map(|piece| format!("`{}`", String::from_iter(piece)))
            .collect();
        pieces.join(" followed directly by ")
    };
    let mut sizes = (1..=chars.len().div_ceil(2)).rev().map(spelled);
    sizes
        .find(|text| pattern.is_none_or(|pattern| !pattern.is_match(text)))
        .unwrap_or_else(|| spelled(1))
}

/// Breaks up the parts of `text` that match the done pattern, as [`defang`] does with tags.
fn defang_matches(text: String, pattern: Option<&Regex>) -> String {
    let Some(pattern) = pattern.filter(|pattern| text.lines().any(|line| pattern.is_match(line)))
    else {
        return text;
    };
    let broken = |found: &Captures<'_>| {
        let found = &found[0];
        let middle = found
            .char_indices()
            .nth(found.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        format!("{}‹›{}", &found[..middle], &found[middle..])
    };
    let lines = text
        .lines()
        .map(|line| match pattern.replace_all(line, broken) {
            still if pattern.is_match(&still) => "[…]".into(),
            line => line,
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn green_checks(state: &State) -> String {
    let green = state.plan.proof.checks.iter().zip(&state.checks);
    let green = green.filter(|(_, report)| report.as_ref().is_some_and(CheckReport::is_green));
    let names: Vec<String> = green.map(|(check, _)| defang(&check.label())).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("Currently green: {}.", names.join(", "))
    }
}

fn history(state: &State, inputs: &PromptInputs) -> String {
    let lines: Vec<String> = state
        .recent
        .iter()
        .map(|iteration| history_line(state, inputs, iteration))
        .collect();
    lines.join("\n")
}

fn history_line(state: &State, inputs: &PromptInputs, iteration: &Iteration) -> String {
    let number = with_limit(iteration.number, state.last_number());
    let mut line = format!(
        "- iteration {number}: {}, {}",
        describe_end(iteration),
        duration(iteration.ms)
    );
    if iteration.claimed {
        line.push_str(", claimed done");
    }
    let checks = state.plan.proof.checks.iter().zip(&iteration.checks);
    let checks = checks.filter_map(|(check, report)| Some((check, report.as_ref()?)));
    let (green, red): (Vec<_>, Vec<_>) = checks.partition(|(_, report)| report.is_green());
    if red.is_empty() && !green.is_empty() {
        line.push_str(", all checks green");
    }
    for (check, report) in red {
        line.extend([", ", &defang(&check.label()), " red"]);
        if let Some(failing) = report.line.as_ref().filter(|_| !check.is_held_out()) {
            line.extend([": ", &defang(&code_span(failing))]);
        }
    }
    let files = inputs.files.get(&iteration.number).map(Vec::as_slice);
    match files.unwrap_or_default() {
        [] => {}
        files => line.extend(["; changed ", &defang(&files.join(", "))]),
    }
    line
}

/// Returns what green checks mean for this iteration; `None` if a check is red or there are none.
fn green_note(state: &State, pattern: Option<&Regex>) -> Option<String> {
    if state.iteration == 0 || !state.is_green_without_claim() {
        return None;
    }
    let signals: Vec<String> = state
        .expected_signals()
        .iter()
        .map(|signal| signal.instruction(pattern))
        .collect();
    let claim = signals.join(", or ");
    Some(if state.is_green_without_change() {
        format!(
            "All checks are green, although no file has changed since the loop started, so they \
             prove nothing. If the whole task is done, {claim}. If not, continue."
        )
    } else {
        format!(
            "All checks are green, but the last iteration did not say that the whole task is done. \
             If it is, {claim}. If not, continue with what is missing."
        )
    })
}

fn notes(state: &State, inputs: &PromptInputs, pattern: Option<&Regex>) -> String {
    let question = state
        .question
        .iter()
        .map(|why| format!("An earlier iteration was blocked: {}", defang(why)));
    let answers = state
        .answers
        .iter()
        .map(|text| format!("A person says: {}", defang(text)));
    let mut notes: Vec<String> = question.chain(answers).collect();
    if state.claims.signals.promise_in_sentence {
        notes.push(
            "The last promise did not count, because it was inside a sentence, a quotation or \
             code. Write it alone on the last line."
                .into(),
        );
    }
    if let Some(note) = green_note(state, pattern) {
        notes.push(note);
    }
    if state.is_stall_warning_due() {
        notes.push(format!(
            "The last {} left the files and the failures of the checks as they were before. Try a \
             different approach. If you cannot continue without a person, say so as described below.",
            iteration_count(state.progress.stalls)
        ));
    }
    if state.is_claimed() && !state.all_green() {
        notes.push(
            "The last claim that the task is done did not count, because a check was red.".into(),
        );
    }
    notes.extend(state.dispute_note());
    notes.extend(denials(state));
    notes.extend(handover(state));
    notes.extend(failed_task(state, inputs));
    notes.extend(state.scm.elsewhere.notes().map(|note| defang(&note)));
    notes.join("\n")
}

/// Returns what the last iteration was denied and what it may do instead, so that the agent does not
/// try the same again; `None` if nothing was denied.
fn denials(state: &State) -> Option<String> {
    let last = state
        .recent
        .back()
        .filter(|last| !last.denials.is_empty())?;
    let denied: Vec<String> = last
        .denials
        .iter()
        .map(|denial| format!("- {}", defang(denial)))
        .collect();
    let allows = match state.agent().allows.as_str() {
        "" => String::new(),
        allows => format!(" You may {allows}."),
    };
    let is_denied = |reason: AgentFailure| reason.kind == FailureKind::Denied;
    let claim = if last.reason.is_some_and(is_denied) {
        " Everything you tried was denied, so a claim that the task is done did not count."
    } else {
        ""
    };
    Some(format!(
        "In the last iteration you were not allowed to do this:\n{}\nDo not try it again: your \
         permissions do not change while you run.{allows}{claim}",
        denied.join("\n")
    ))
}

/// Returns what the newest iteration with a note left to this one; `None` if there is none.
fn handover(state: &State) -> Option<String> {
    let last = state.recent.iter().rev().find(|last| last.note.is_some())?;
    let note = Excerpt::new(last.note.as_deref()?, 0, "later").fenced("");
    Some(format!(
        "Iteration {} left this note:\n\n{note}\n",
        last.number
    ))
}

/// Returns the name and the output of the failed SCM task, which help the agent to fix the cause;
/// `None` if no task has failed.
fn failed_task(state: &State, inputs: &PromptInputs) -> Option<String> {
    let failed = state.scm.pending_task()?;
    let args = defang(&fold_whitespace(state.scm_task_args(failed.task)));
    let result = failed.report.describe_failure();
    let mut note = if failed.task == state.worktree_task() {
        format!(
            "Committing the work of iteration {} with `git {args}` failed ({result}). Fix the \
             cause; the command is run again for you after you exit.",
            failed.iteration
        )
    } else {
        format!(
            "The checks of iteration {} were green, but then `git {args}` failed ({result}), so \
             the work does not count as done. Fix the cause; the command is run again for you \
             once the checks are green.",
            failed.iteration
        )
    };
    if let Some((output, log)) = &inputs.scm_output {
        let output = with_cut(&output.fenced(""), &output.cut);
        note.extend([" Full output: ", log, "\n\n", &output]);
    }
    Some(note)
}
