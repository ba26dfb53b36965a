//! Explains why a loop is not done, and suggests the next step.

use super::one_line;
use super::scm_text;
use crate::engine::format::shell_quote;
use crate::engine::plan::Signal;
use crate::engine::prompt::includes_notes;
use crate::engine::{Limit, Liveness, Outcome, Phase, State, Status};
use crate::lifecycle::session::client_of;
use crate::store::JournalHeader;

/// Maximum number of added lines that the review names.
const REVIEWED_MAX: usize = 3;
/// Maximum number of files that the command to accept their changes names.
const ACCEPT_MAX: usize = 3;

/// Describes what a loop that reached a limit or stalled lacked to be done. Returns `None` if only
/// checks were red, or if the loop ended otherwise.
pub(super) fn missing(state: &State) -> Option<String> {
    match state.outcome()? {
        Outcome::Limit { success: false, .. } | Outcome::Stalled
            if !state.scm_tasks_succeeded() =>
        {
            return scm_text::pending_task(state)
                .map(|pending| format!("the checks are green, but {pending}"));
        }
        Outcome::Limit {
            limit: Limit::Failures,
            ..
        } => return None,
        Outcome::Limit { success: false, .. } | Outcome::Stalled => {}
        _ => return None,
    }
    let (green, proof) = (state.all_green(), &state.plan.proof);
    if state.is_claimed() && !state.is_checked() {
        return Some(
            "the agent claimed to be done, but there was no time to run the checks".into(),
        );
    }
    if state.is_claimed() && !green {
        return Some("the agent claimed to be done, but not every check was green".into());
    }
    let but = if green && !proof.checks.is_empty() {
        "the checks are green, but "
    } else {
        ""
    };
    if state.claims.signals.promise_in_sentence {
        return Some(format!(
            "{but}the promise was inside a sentence, where it does not count"
        ));
    }
    let signals: Vec<String> = state
        .expected_signals()
        .iter()
        .map(Signal::describe)
        .collect();
    // With an explicit signal or without checks, the claim is what the user asked for. On an
    // unchanged tree, --until-green asks for a claim as well.
    let is_unchanged = state.content.start.is_some() && state.content.now == state.content.start;
    let needs_claim = but.is_empty() || !proof.signals.is_empty() || proof.until_green;
    let hint = if needs_claim || is_unchanged {
        ""
    } else {
        "; with --until-green, green checks are enough"
    };
    (green && !signals.is_empty())
        .then(|| format!("{but}the agent did not {}{hint}", signals.join(" or ")))
}

/// Names the added lines that a person should read; `None` if there are none, or the loop has not
/// ended.
pub(super) fn review(state: &State) -> Option<String> {
    state.outcome()?;
    state.review.as_ref()?.describe(REVIEWED_MAX)
}

/// Says that an earlier iteration had better results than the one with which the loop ended, and how
/// to return to it. Returns `None` if none had, or if the loop has not ended.
pub(super) fn better(name: &str, state: &State) -> Option<String> {
    state.outcome()?;
    let best = state.better_iteration()?;
    let total = state.plan.proof.checks.len();
    let (green, passed) = state.results();
    let is_checked = state.is_checked();
    let were = if best.green == 1 { "was" } else { "were" };
    let then = if is_checked && green == best.green {
        format!("{} tests passed, now {passed}", best.passed)
    } else if is_checked {
        format!("{} of {total} checks {were} green, now {green}", best.green)
    } else {
        format!(
            "{} of {total} checks {were} green; the last iteration was not checked",
            best.green
        )
    };
    let when = match best.iteration {
        0 => "at the start".to_owned(),
        number => format!("after iteration {number}"),
    };
    Some(format!(
        "{when}, {then}: `ralph rewind {name} {}`",
        best.iteration
    ))
}

/// Returns the lines of the agent's last error message. Empty unless the loop has failed.
pub(super) fn last_error(state: &State) -> Vec<String> {
    let last = state
        .recent
        .back()
        .filter(|_| state.status(Liveness::Idle) == Status::Failed);
    let text = last
        .and_then(|last| last.error.as_deref())
        .unwrap_or_default();
    text.lines()
        .map(one_line)
        .filter(|line| !line.is_empty())
        .collect()
}

/// Describes what the agent was denied in recent iterations, and how to allow more. Returns `None`
/// if nothing was denied.
pub(super) fn denied(state: &State) -> Option<String> {
    let times = state
        .recent
        .iter()
        .fold(0, |sum: u32, last| sum.saturating_add(last.denied));
    let first = state
        .recent
        .iter()
        .find_map(|last| last.denial.as_deref())?;
    let more = match state.agent().approve {
        Some(_) => state
            .allow_hint(Some(first))
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default(),
        None => "; its own command line sets its permissions".into(),
    };
    let times = if times == 1 {
        "once".into()
    } else {
        format!("{times} times, first")
    };
    Some(format!("{times}: {first}{more}"))
}

/// Returns what to do next; `None` for a loop that is done.
pub(super) fn advice(header: &JournalHeader, state: &State, liveness: Liveness) -> Option<String> {
    (state.status(liveness) != Status::Done).then(|| next_step(header, state, liveness))?
}

/// Returns how to continue the loop, mostly as a command; `None` if it cannot continue.
pub(crate) fn next_step(
    header: &JournalHeader,
    state: &State,
    liveness: Liveness,
) -> Option<String> {
    let name = &header.name;
    let resume = resume_command(name, state, None);
    if let Some(session) = state
        .plan
        .session
        .as_ref()
        .filter(|_| state.is_in_session())
    {
        let reopen = client_of(state).map_or_else(
            || format!("reopen session {} in {}", session.id, session.client),
            |client| client.resume_command(&session.id),
        );
        match state.status(liveness) {
            Status::Starting | Status::Running => {
                return Some(format!(
                    "to end it, use cancel-ralph in its session, or run `ralph stop {name}`"
                ));
            }
            Status::Crashed => {
                return Some(format!(
                    "{reopen}, then send any message, to continue in the session; \
                     {resume} continues outside it, with a fresh context each iteration"
                ));
            }
            _ => {}
        }
    }
    Some(match (state.status(liveness), state.outcome()) {
        (Status::Running, _)
            if matches!(
                state.phase,
                Phase::Resting {
                    wall_ms: Some(_),
                    ..
                }
            ) =>
        {
            format!("{resume} --now retries immediately")
        }
        (Status::Starting | Status::Running, _) => format!("ralph logs {name} -f"),
        (_, Some(Outcome::Disputed { files, .. })) => {
            let accept = accept_command(name, files);
            let answer = resume_command(name, state, Some("\"…\""));
            format!("{accept} · {answer}")
        }
        (Status::Blocked, _) | (_, Some(Outcome::Stalled))
            if includes_notes(&state.plan.context) =>
        {
            resume_command(name, state, Some("\"…\""))
        }
        (Status::Done, Some(Outcome::Done { .. })) => return None,
        // Only the program that embeds ralph can run the agent again.
        _ if state.plan.agent.command.is_empty() => return None,
        _ => resume,
    })
}

/// Returns a glob that matches exactly this path. A directory's path ends with a slash, and the glob
/// matches everything in it.
fn escape_glob(path: &str) -> String {
    let mut glob = String::new();
    for c in path.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' | '\\' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    if glob.ends_with('/') {
        glob.push_str("**");
    }
    glob
}

/// Returns the command that accepts the changes of these files.
fn accept_command(name: &str, files: &[String]) -> String {
    let globs: Vec<String> = if files.is_empty() || files.len() > ACCEPT_MAX {
        vec!["**".to_owned()]
    } else {
        files.iter().map(|file| escape_glob(file)).collect()
    };
    let flags: Vec<String> = globs
        .iter()
        .map(|glob| format!(" --accept {}", shell_quote(glob)))
        .collect();
    format!("ralph resume {name}{}", flags.concat())
}

/// Returns the command that continues a loop that is not running, with an answer that is quoted for
/// the shell. If the loop has ended and has reached limits, the command raises them first.
pub(crate) fn resume_command(name: &str, state: &State, answer: Option<&str>) -> String {
    let mut command = format!("ralph resume {name}");
    if let Some(answer) = answer {
        command.extend([" --answer ", answer]);
    }
    match state.raised_limits().filter(|_| state.outcome().is_some()) {
        Some(raised) => format!("ralph set {name} {raised} && {command}"),
        None => command,
    }
}
