//! What is said of an event, in plain words: one line, or none.

use super::{Paint, outcome_text, rest_text, scm_text, worktree_text};
use crate::engine::event::{Change, CheckReport, Door, Notice, Wish};
use crate::engine::failure::Kind;
use crate::engine::format::{dollars, duration, of_limit, plural, processes};
use crate::engine::outcome::{Limit, iterations};
use crate::engine::plan::{Approve, OnFail};
use crate::engine::prompt::{how, how_red};
use crate::engine::state::{How, Iteration};
use crate::engine::{Event, Marker, Outcome, Phase, Plan, State};

/// The words for an event that has just been judged.
pub fn lines(event: &Event, state: &State) -> Vec<(String, Paint)> {
    let one = |words: String, paint: Paint| vec![(words, paint)];
    match event {
        Event::Started { iteration, agent } => {
            let number = state.place(*iteration);
            let who = agent
                .as_ref()
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            one(format!("starting iteration {number}{who}"), Paint::Bold)
        }
        Event::Ended { report, .. } => {
            let mut all = Vec::new();
            if report.leftovers > 0 {
                let many = processes(report.leftovers as usize);
                all.push((
                    format!("ended {many} that the agent had left behind"),
                    Paint::Yellow,
                ));
            }
            if report.denied > 1 {
                all.push((
                    format!(
                        "the agent was not allowed something {} times",
                        report.denied
                    ),
                    Paint::Yellow,
                ));
            }
            all.extend(state.recent.back().map(|iteration| ended(iteration, state)));
            all
        }
        Event::Checked {
            iteration,
            check,
            report,
        } => one(
            format!(
                "{}check {}: {}{}",
                if *iteration == 0 { "preflight " } else { "" },
                check_words(state, *check),
                verdict(report),
                action(state, *check)
                    .filter(|_| !report.is_green())
                    .unwrap_or_default()
            ),
            if report.is_green() {
                Paint::Green
            } else {
                Paint::Red
            },
        ),
        Event::Committed { task, report, .. } => {
            scm_text::line(state, *task, report).into_iter().collect()
        }
        Event::Noticed { notice, .. } => noticed(*notice, state)
            .map(|words| (words, Paint::Yellow))
            .into_iter()
            .collect(),
        Event::Asked { wish, by, .. } => asked(*wish, *by, state)
            .map(|words| (words, Paint::Yellow))
            .into_iter()
            .collect(),
        Event::Hurried { .. } => one("trying again now".into(), Paint::Dim),
        Event::Answered { .. } => one("your words go into the next prompt".into(), Paint::Dim),
        Event::Drained {
            waited, stopped, ..
        } => {
            let line = |words: &str, names: &[String], paint| {
                (!names.is_empty()).then(|| (format!("{words}: {}", names.join(", ")), paint))
            };
            let lines = [
                line("child loops are over", waited, Paint::Dim),
                line("stopped child loops", stopped, Paint::Yellow),
            ];
            lines.into_iter().flatten().collect()
        }
        Event::Changed { limit, .. } => one(changed(limit), Paint::Dim),
        Event::Stumbled { words, .. } => {
            one(format!("the session's turn broke off: {words}"), Paint::Red)
        }
        Event::Finished { .. } => state
            .outcome()
            .map(|outcome| finished(outcome, state))
            .unwrap_or_default(),
        Event::Opened { .. } => opened(&state.plan),
        // A fault is the loop's ending, and is said there.
        Event::Spawned { .. } | Event::Faulted { .. } | Event::Woke | Event::Unknown => {
            vec![]
        }
    }
}

/// What a person should know from the start.
fn opened(plan: &Plan) -> Vec<(String, Paint)> {
    let free = plan
        .agents()
        .filter(|agent| agent.approve == Some(Approve::All));
    let words = free.map(|agent| format!("{} may do everything without asking", agent.name));
    let pays = plan.agents().filter_map(|agent| {
        let words = pays(agent.payer.as_deref()?, &agent.held_back);
        Some((format!("{} {words}", agent.name), Paint::Dim))
    });
    let own = plan.worktree.as_ref().map(|own| {
        (
            format!("worktree {}", worktree_text::place(own)),
            Paint::Dim,
        )
    });
    words
        .map(|words| (words, Paint::Yellow))
        .chain(pays)
        .chain(own)
        .collect()
}

/// `works on its own login (~/.x); X_KEY is kept from it`
pub fn pays(payer: &str, held_back: &[String]) -> String {
    let held = match held_back {
        [] => String::new(),
        keys => format!(
            "; {} is kept from it (--allow-api-key lets it pay)",
            keys.join(", ")
        ),
    };
    format!("works on {payer}{held}")
}

/// A check's command, marked as one.
pub fn check_words(state: &State, check: usize) -> String {
    state
        .plan
        .proof
        .checks
        .get(check)
        .map(|check| format!("`{}`", check.command))
        .unwrap_or_default()
}

/// How a red check's output enters the next prompt.
fn action(state: &State, check: usize) -> Option<String> {
    Some(match state.plan.proof.checks.get(check)?.on_fail {
        OnFail::Append => " (append)".into(),
        OnFail::Prepend => " (prepend)".into(),
        OnFail::Replace => " (replace)".into(),
    })
}

/// The check that begins now that this event has been judged.
pub fn begins(event: &Event, state: &State) -> Option<String> {
    let next = match event {
        Event::Checked { check, .. } => check + 1,
        Event::Opened { .. } | Event::Ended { .. } => 0,
        _ => return None,
    };
    let due = state.checks.iter().position(Option::is_none) == Some(next)
        && state.phase == Phase::Checking;
    due.then(|| format!("checking {}", check_words(state, next)))
}

/// `60s`: a timeout as it was given, not as a time that went by.
pub fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        duration(ms)
    }
}

/// `green (210ms)`, `red (exit 1, 2.3s)`
pub fn verdict(report: &CheckReport) -> String {
    match report {
        report if report.is_green() => format!("green ({})", duration(report.ms)),
        CheckReport {
            timed_out: true,
            ms,
            ..
        } => {
            format!(
                "red (timeout after {}; --check-timeout allows more)",
                duration(*ms)
            )
        }
        report => format!("red ({}, {})", how_red(report), duration(report.ms)),
    }
}

fn ended(iteration: &Iteration, state: &State) -> (String, Paint) {
    let number = iteration.number;
    let exit = match (iteration.exit.code, iteration.exit.signal) {
        (Some(code), _) => format!("exit: {code}"),
        (None, Some(signal)) => format!("signal: {signal}"),
        (None, None) => "not started".into(),
    };
    let cost = iteration
        .cost_usd
        .map(|usd| format!(", cost: {}", dollars(usd)))
        .unwrap_or_default();
    let time = duration(iteration.ms);
    match iteration.how {
        _ if iteration.refunded => (rest_text::refunded(iteration, state), Paint::Yellow),
        How::Exited if has_failed(iteration, state) => {
            let rest = state.rest_until_ms.saturating_sub(state.clock_ms);
            let attempt = of_limit(state.consecutive_failures, state.plan.limits.failures);
            let retry = format!(", retrying in {} (attempt {attempt})", duration(rest));
            let retry = if goes_on(state) { retry.as_str() } else { "" };
            let known = iteration
                .reason
                .map(|reason| reason.kind)
                .filter(|kind| *kind != Kind::Crashed);
            let means = known.map(Kind::words);
            let means = means.map(|words| format!(": {words}")).unwrap_or_default();
            (
                format!("iteration {number} failed ({exit}{means}){retry}"),
                Paint::Red,
            )
        }
        How::Exited => (
            format!("iteration {number} completed ({exit}, duration: {time}{cost})"),
            Paint::Dim,
        ),
        How::Inactive if goes_on(state) => {
            let after = seconds(state.plan.limits.inactivity_ms.unwrap_or(0));
            (
                format!("inactivity timeout ({after}), restarting"),
                Paint::Yellow,
            )
        }
        _ => (
            format!(
                "iteration {number} {} ({exit}, duration: {time}{cost})",
                how(iteration)
            ),
            Paint::Yellow,
        ),
    }
}

/// Whether the agent is to blame: not if it asked, by its exit code, to be left alone.
pub fn has_failed(iteration: &Iteration, state: &State) -> bool {
    iteration.is_failure() && state.claims.exit_waiting.is_none()
}

/// Whether another iteration follows, unless the checks prove the work.
fn goes_on(state: &State) -> bool {
    let limits = &state.plan.limits;
    state.wish == Wish::Go
        && !matches!(
            state.phase,
            Phase::Ended(_) | Phase::Paused | Phase::Draining { .. }
        )
        && limits
            .failures
            .is_none_or(|max| state.consecutive_failures < max)
        && limits.iterations.is_none_or(|max| state.counted < max)
}

fn changed(limit: &Change) -> String {
    let (name, value) = match limit {
        Change::MaxIterations(max) => ("max-iterations", max.map(|max| max.to_string())),
        Change::MaxFailures(max) => ("max-failures", max.map(|max| max.to_string())),
        Change::MaxCost(max) => ("max-cost", max.map(dollars)),
        Change::MaxTokens(max) => ("max-tokens", max.map(|max| max.to_string())),
        Change::MaxTime(max) => ("max-time", max.map(duration)),
    };
    value.map_or_else(
        || format!("{name}: no limit"),
        |value| format!("{name} is now {value}"),
    )
}

fn noticed(notice: Notice, state: &State) -> Option<String> {
    let running = matches!(state.phase, Phase::Running { started: true, .. });
    Some(match notice {
        Notice::Pattern => "done pattern matched, stopping the agent".into(),
        Notice::Silence => return None,
        Notice::Unready => "the agent's screen did not get ready for the prompt".into(),
        Notice::Lingering => "the agent is done and does not exit, ending it".into(),
        Notice::Marker(marker) => {
            let name = match marker {
                Marker::Done => "DONE marker",
                Marker::Blocked => "BLOCKED marker",
                Marker::Wait => "WAIT marker",
                Marker::File => "the file asked for",
                Marker::Bus => "a message that asks for no restart",
            };
            let grace = duration(state.plan.grace.marker_ms);
            if running {
                format!("{name} seen; the agent has {grace} to exit")
            } else {
                format!("{name} seen")
            }
        }
    })
}

fn asked(wish: Wish, by: Door, state: &State) -> Option<String> {
    let busy = matches!(
        state.phase,
        Phase::Running { .. } | Phase::Killing { .. } | Phase::Checking | Phase::Committing
    );
    let again = if by == Door::Sigint {
        "; Ctrl-C again kills it now"
    } else {
        ""
    };
    match (wish, state.wish) {
        (Wish::Stop, Wish::Stop) if busy => Some(format!("stopping after this iteration{again}")),
        (_, Wish::StopNow | Wish::PauseNow) if busy => Some("stopping the agent now".into()),
        (Wish::Pause, Wish::Pause) if busy => Some("pausing after this iteration".into()),
        _ => None,
    }
}

fn finished(outcome: &Outcome, state: &State) -> Vec<(String, Paint)> {
    let count = iterations(state.iteration);
    let complete = format!("loop complete after {count}");
    match outcome {
        Outcome::Done { .. } if state.claims.said.matched => {
            vec![
                ("done pattern matched, stopping loop".into(), Paint::Green),
                (complete, Paint::Green),
            ]
        }
        Outcome::Done { .. } | Outcome::Limit { success: true, .. } => {
            vec![(complete, Paint::Green)]
        }
        Outcome::Limit {
            limit: Limit::Failures,
            ..
        } if state.keeping.failures > state.consecutive_failures => {
            let why =
                outcome_text::missing(state).map(|why| format!("the work is not proven: {why}"));
            let stops = format!(
                "{} failures of git in a row, stopping loop",
                state.keeping.failures
            );
            std::iter::once(stops)
                .chain(why)
                .map(|words| (words, Paint::Red))
                .collect()
        }
        Outcome::Limit {
            limit: Limit::Failures,
            ..
        } => {
            let count = plural(u64::from(state.consecutive_failures), "consecutive failure");
            vec![(format!("{count}, stopping loop"), Paint::Red)]
        }
        Outcome::Limit {
            limit: Limit::Iterations,
            ..
        } => {
            let why = outcome_text::missing(state)
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            vec![
                (complete, Paint::Red),
                (format!("the work is not proven{why}"), Paint::Red),
            ]
        }
        // What broke is said on standard error.
        Outcome::Fatal { .. } => vec![(format!("loop ended after {count}"), Paint::Red)],
        other => {
            let paint = if other.exit_code() == 1 {
                Paint::Red
            } else {
                Paint::Yellow
            };
            let why = state.verdict().unwrap_or_else(|| other.verdict()).detail;
            let mut all = vec![(format!("loop ended after {count}: {why}"), paint)];
            all.extend(
                outcome_text::missing(state)
                    .map(|why| (format!("the work is not proven: {why}"), paint)),
            );
            all
        }
    }
}
