//! What the agent is told: a pure function of the plan, the state and the gathered materials.

use super::event::CheckReport;
use super::excerpt::Excerpt;
use super::format::{dollars, duration, of_limit};
use super::plan::{Context, Level, OnFail};
use super::scm::COMMIT;
use super::session;
use super::signals::{defang, fold};
use super::state::{How, Iteration, State};
use super::template::fill;
use regex::{Captures, Regex};

/// What the shell gathers for a prompt.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    /// The task's text, read anew.
    pub task: String,
    /// What changed since the loop began.
    pub diff: Excerpt,
    /// Why there is no diff, if there is none.
    pub diff_missing: String,
    /// The red checks' outputs, in the plan's order: place, output, and the file that holds all of it.
    pub red: Vec<(usize, Excerpt, String)>,
    /// What the task that failed last printed, and the file that holds all of it.
    pub task_output: Option<(Excerpt, String)>,
    /// The last messages on the project's bus.
    pub bus: Excerpt,
}

/// The names that a template may use.
pub const NAMES: [&str; 14] = [
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

/// Whether a person's words find their way into such a prompt.
pub fn tells_words(context: &Context) -> bool {
    let mark = |name: &str| {
        Some(if name == "notes" {
            "\0".into()
        } else {
            name.to_owned()
        })
    };
    context.level != Level::None && fill(&context.template, &mark).contains('\0')
}

/// Renders the prompt of the next iteration.
pub fn render(state: &State, materials: &Materials) -> String {
    let context = &state.plan.context;
    let template = if state.is_inside() {
        session::TEMPLATE
    } else {
        &context.template
    };
    if context.level == Level::None && !state.is_inside() {
        return materials.task.clone();
    }
    let full = context.level == Level::Full && !state.is_inside();
    let pattern = state
        .plan
        .proof
        .pattern
        .as_deref()
        .and_then(|pattern| Regex::new(pattern).ok());
    let pattern = pattern.as_ref();
    let red = |wanted: OnFail| unmatched(red_outputs(state, materials, wanted), pattern);
    let replaced = red(OnFail::Replace);
    let value = |name: &str| {
        Some(match name {
            "task" if replaced.is_empty() => materials.task.trim_end().to_owned(),
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
            "checks" => unmatched(green_checks(state), pattern),
            "diff" if full && !materials.diff.text.is_empty() => unmatched(
                with_cut(&materials.diff.fenced("diff"), &materials.diff.cut),
                pattern,
            ),
            "no_diff" if full => materials.diff_missing.clone(),
            "history" if full => unmatched(history(state), pattern),
            "notes" => unmatched(notes(state, materials), pattern),
            "bus" if materials.bus.text.is_empty() => String::new(),
            "bus" => unmatched(
                with_cut(&materials.bus.fenced(""), &materials.bus.cut),
                pattern,
            ),
            "diff" | "no_diff" | "history" => String::new(),
            _ => return None,
        })
    };
    let text = fill(template, &value);
    let mut text = text.trim_end().to_owned();
    text.push('\n');
    text
}

fn red_outputs(state: &State, materials: &Materials, wanted: OnFail) -> String {
    let checks = &state.plan.proof.checks;
    let mut parts = Vec::new();
    for (place, output, log) in &materials.red {
        let (Some(check), Some(Some(report))) = (checks.get(*place), state.checks.get(*place))
        else {
            continue;
        };
        if check.on_fail != wanted {
            continue;
        }
        let head = format!(
            "The check `{}` is red ({}).",
            defang(&check.command),
            how_red(report)
        );
        if output.text.trim().is_empty() {
            parts.push(format!("{head} It printed nothing."));
            continue;
        }
        let place = format!("Its whole output: {log}");
        parts.push(format!(
            "{head} {place}\n\n{}",
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

/// How a red check failed, in words.
pub fn how_red(report: &CheckReport) -> String {
    match report {
        CheckReport {
            timed_out: true,
            ms,
            ..
        } => format!("timeout after {}", duration(*ms)),
        CheckReport { exit, .. } => match (exit.code, exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "it could not be run".into(),
        },
    }
}

fn limits(state: &State) -> String {
    let limits = &state.plan.limits;
    let mut words = Vec::new();
    if let Some(max) = limits.time_ms {
        words.push(format!(
            "{} of {}",
            duration(state.active_ms),
            duration(max)
        ));
    }
    if let Some(max) = limits.cost_usd {
        words.push(format!("{} of {}", dollars(state.cost_usd), dollars(max)));
    }
    if words.is_empty() {
        String::new()
    } else {
        format!("Used so far: {}.", words.join(", "))
    }
}

/// What "done" asks for. No line of this may match the detector that reads the answer, so every tag
/// stands inside a sentence and the pattern is written in pieces.
fn done(state: &State, pattern: Option<&Regex>) -> String {
    let proof = &state.plan.proof;
    let mut lines = Vec::new();
    if !proof.checks.is_empty() {
        let names: Vec<String> = proof
            .checks
            .iter()
            .map(|check| format!("`{}`", defang(&check.command)))
            .collect();
        let line = format!(
            "- These checks are run for you after you exit, and all must be green: {}.",
            names.join(", ")
        );
        lines.push(unmatched(line, pattern));
    }
    let mut signals = Vec::new();
    if let Some(promise) = state.promises().first() {
        signals.push(format!(
            "write <promise>{}</promise> alone on the last line of your final message",
            fold(promise)
        ));
    }
    if let Some(text) = &proof.pattern {
        signals.push(format!(
            "print a line that matches the pattern {}",
            in_pieces(text, pattern)
        ));
    }
    if let Some(file) = &proof.file {
        signals.push(format!("create the file `{}`", file.display()));
    }
    if signals.is_empty() && proof.checks.is_empty() {
        lines.push("- Do one sensible step of the work, then exit.".into());
    } else if !signals.is_empty() {
        lines.push(format!(
            "- Only when the whole of the work is done, not just this iteration's part, {}.",
            signals.join(", or ")
        ));
    }
    let commits =
        state.plan.scm.tasks.iter().any(|task| task == COMMIT) && !proof.checks.is_empty();
    let when = match &state.plan.worktree {
        Some(_) => Some("After you exit, what you leave uncommitted is committed for you."),
        None => commits.then_some("When the checks are green, your changes are committed for you."),
    };
    lines.extend(when.map(|when| {
        let line = format!(
            "- {when} Put what your changes do, short and in the imperative, as <commit>…</commit> alone on a line of \
             your final message."
        );
        unmatched(line, pattern)
    }));
    lines.push(
        "- If you cannot go on without a person, do not guess or fake: write <blocked>the reason</blocked> alone on a \
         line and exit."
            .into(),
    );
    lines.join("\n")
}

/// The pattern in two pieces, or in as many more as it takes to be no match of itself.
fn in_pieces(text: &str, pattern: Option<&Regex>) -> String {
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
        .find(|words| pattern.is_none_or(|pattern| !pattern.is_match(words)))
        .unwrap_or_else(|| spelled(1))
}

/// Breaks what the done pattern would match in borrowed text, as [`defang`] breaks tags.
fn unmatched(text: String, pattern: Option<&Regex>) -> String {
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
    let names: Vec<String> = green
        .map(|(check, _)| format!("`{}`", defang(&check.command)))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("Green at the moment: {}.", names.join(", "))
    }
}

fn history(state: &State) -> String {
    let lines: Vec<String> = state
        .recent
        .iter()
        .map(|iteration| line_of_history(state, iteration))
        .collect();
    lines.join("\n")
}

fn line_of_history(state: &State, iteration: &Iteration) -> String {
    let number = of_limit(iteration.number, state.last_number());
    let mut line = format!(
        "- iteration {number}: {}, {}",
        how(iteration),
        duration(iteration.ms)
    );
    let checks = state.plan.proof.checks.iter().zip(&iteration.checks);
    for (check, report) in checks.filter_map(|(check, report)| Some((check, report.as_ref()?))) {
        let verdict = if report.is_green() { "green" } else { "red" };
        line.extend([", `", &defang(&check.command), "` ", verdict]);
    }
    if iteration.claimed {
        line.push_str(", claimed done");
    }
    line
}

/// How an iteration ended, in words.
pub fn how(iteration: &Iteration) -> String {
    match iteration.how {
        How::Exited => match (iteration.exit.code, iteration.exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "could not be started".into(),
        },
        How::TimedOut => "stopped: it took too long".into(),
        How::Inactive => "stopped: it was silent for too long".into(),
        How::Unready => "stopped: its screen did not get ready for the prompt".into(),
        How::Lingered => "finished, and was stopped as it did not exit".into(),
        How::Matched => "stopped at the done pattern".into(),
        How::Marked => "stopped after its marker".into(),
        How::OutOfTime => "stopped: the loop's time was used up".into(),
        How::Stopped => "stopped by a person".into(),
        How::Faulted => "stopped by an error".into(),
        How::Interrupted => "interrupted".into(),
    }
}

fn notes(state: &State, materials: &Materials) -> String {
    let question = state
        .question
        .iter()
        .map(|why| format!("An earlier iteration was blocked: {}", defang(why)));
    let answers = state
        .answers
        .iter()
        .map(|text| format!("A person says: {}", defang(text)));
    let mut notes: Vec<String> = question.chain(answers).collect();
    if state.claims.said.promise_in_sentence {
        notes.push(
            "The last promise stood inside a sentence, a quotation or code, where it may be a denial: it did not count. \
             Write it alone on the last line."
                .into(),
        );
    }
    if state.claimed() && !state.all_green() {
        notes.push(
            "The work was claimed to be done, but a check was red: the claim did not count.".into(),
        );
    }
    notes.extend(failed_task(state, materials));
    notes.join("\n")
}

/// Which task failed for the work, and what it said: that is the agent's to mend.
fn failed_task(state: &State, materials: &Materials) -> Option<String> {
    let owed = state.keeping.newest_failure()?;
    let words = defang(&fold(state.task_words(owed.task)));
    let how = how_red(&owed.report.as_check());
    let mut note = if owed.task == state.own_task() {
        format!(
            "After iteration {} the work was to be committed, but `git {words}` failed ({how}). Mend what it complains \
             of; it is run again for you after you exit.",
            owed.iteration
        )
    } else {
        format!(
            "The checks of iteration {} were green, but then `git {words}` failed ({how}), so the work does not count \
             as done. Mend what it complains of; it is run again for you once the checks are green.",
            owed.iteration
        )
    };
    if let Some((output, log)) = &materials.task_output {
        let output = with_cut(&output.fenced(""), &output.cut);
        note.extend([" Its whole output: ", log, "\n\n", &output]);
    }
    Some(note)
}
