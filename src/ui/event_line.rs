//! Formats an event as lines for the console.

use super::{
    TextStyle, claim_text, label_text, left_behind_text, look_text, one_line, outcome_text,
    rest_text, scm_text, worktree_text,
};
use crate::engine::event::{CheckReport, Notice, Request, RequestSource};
use crate::engine::failure::FailureKind;
use crate::engine::format::{dollars, duration, iteration_count, plural, with_limit};
use crate::engine::graded::name_files;
use crate::engine::iteration::describe_end;
use crate::engine::iteration::{Iteration, IterationEnd};
use crate::engine::plan::{Approve, OnFail};
use crate::engine::prompt::describe_red_check;
use crate::engine::usage::Tokens;
use crate::engine::{Event, ExitCode, Limit, LimitChange, Marker, Outcome, Phase, State, Status};

/// Returns the lines for an event that has just been applied to `state`.
#[expect(clippy::too_many_lines, reason = "one arm for each event")]
pub(crate) fn lines(event: &Event, state: &State) -> Vec<(String, TextStyle)> {
    let one = |text: String, style: TextStyle| vec![(text, style)];
    match event {
        Event::Started {
            iteration, agent, ..
        } => {
            let number = state.iteration_label(*iteration);
            let agent = agent
                .as_ref()
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            one(
                format!("starting iteration {number}{agent}"),
                TextStyle::Bold,
            )
        }
        Event::Ended { report, .. } => {
            let mut all = left_behind_text::lines(report);
            if report.denied > 1 {
                all.push((
                    format!("the agent was denied permission {} times", report.denied),
                    TextStyle::Yellow,
                ));
            }
            all.extend(allow_hint(state).map(|hint| (hint, TextStyle::Yellow)));
            all.extend(state.recent.back().map(|iteration| ended(iteration, state)));
            all.extend(claim_text::in_sentence(&report.signals));
            all
        }
        Event::Checked {
            iteration,
            check,
            report,
            written,
            ..
        } => {
            let mut lines = checked(*iteration, *check, report, state);
            lines.extend(graded_again("the checks", written, state));
            lines
        }
        Event::Labeled { .. } => label_text::labeled(state),
        Event::Surveyed {
            touched, failure, ..
        } => look_text::surveyed(touched, failure.as_deref(), state),
        Event::Rechecked { check, report, .. } => look_text::rechecked(*check, report, state),
        Event::SetUp { report, .. } => look_text::set_up(report, state),
        Event::Accepted { globs, .. } => one(
            format!("you accepted changes of {}", globs.join(", ")),
            TextStyle::Dim,
        ),
        Event::Committed { task, report, .. } => {
            let lines = scm_text::line(state, *task, report).into_iter();
            let again = graded_again("a git hook", &report.rewritten, state);
            lines.chain(again).collect()
        }
        Event::Noticed { notice, .. } => noticed(*notice, state)
            .map(|text| (text, TextStyle::Yellow))
            .into_iter()
            .collect(),
        Event::Spent {
            cost_usd, tokens, ..
        } => one(spent(*cost_usd, *tokens, state), TextStyle::Yellow),
        Event::Asked { request, by, .. } => asked(*request, *by, state)
            .map(|text| (text, TextStyle::Yellow))
            .into_iter()
            .collect(),
        Event::Moved { place } => one(format!("continues on {}", place.host), TextStyle::Dim),
        Event::Rewound { to, .. } => one(rewound(to), TextStyle::Dim),
        Event::Hurried { .. } => one("retrying now".into(), TextStyle::Dim),
        Event::Answered { .. } => one(
            "your message will be in the next prompt".into(),
            TextStyle::Dim,
        ),
        Event::Drained {
            waited, stopped, ..
        } => {
            let line = |text: &str, names: &[String], style| {
                (!names.is_empty()).then(|| (format!("{text}: {}", names.join(", ")), style))
            };
            let lines = [
                line("child loops ended", waited, TextStyle::Dim),
                line("stopped child loops", stopped, TextStyle::Yellow),
            ];
            lines.into_iter().flatten().collect()
        }
        Event::Changed { limit, .. } => one(changed(limit), TextStyle::Dim),
        Event::TurnFailed { message, .. } => one(
            format!("the session's turn failed: {message}"),
            TextStyle::Red,
        ),
        Event::Finished { .. } => state
            .outcome()
            .map(|outcome| finished(outcome, state))
            .unwrap_or_default(),
        Event::Opened { .. } => opened(state),
        // A fault ends the loop, so the line for `Finished` shows it.
        Event::Notified { .. }
        | Event::Probed { .. }
        | Event::Checkpointed { .. }
        | Event::Spawned { .. }
        | Event::Faulted { .. }
        | Event::Woke
        | Event::Unknown => vec![],
    }
}

/// Returns how to allow what the newest iteration was denied; `None` if nothing was denied, or if
/// the iteration before was denied the same.
fn allow_hint(state: &State) -> Option<String> {
    let mut recent = state.recent.iter().rev();
    let denial = recent.next()?.denial.as_deref()?;
    let is_new = recent
        .next()
        .is_none_or(|before| before.denial.as_deref() != Some(denial));
    let hint = state.agent().allow_hint(denial).filter(|_| is_new)?;
    Some(format!("to allow it: {hint}"))
}

/// Returns the lines for a new loop, about unrestricted agents, the sandbox, billing and the
/// worktree.
fn opened(state: &State) -> Vec<(String, TextStyle)> {
    let plan = &state.plan;
    let unrestricted = plan
        .agents()
        .filter(|agent| agent.approve == Some(Approve::All));
    let unrestricted =
        unrestricted.map(|agent| format!("{} may do anything without asking", agent.name));
    let billing = plan.agents().filter_map(|agent| {
        let text = billing_text(agent.payer.as_deref()?, &agent.held_back);
        Some((format!("{} {text}", agent.name), TextStyle::Dim))
    });
    let sandbox = plan.sandbox.filter(|_| plan.session.is_none());
    let sandbox = sandbox.map(|kind| {
        (
            format!("the agent runs {}", kind.describe()),
            TextStyle::Dim,
        )
    });
    let worktree = plan.worktree.as_ref().map(|worktree| {
        (
            format!("worktree {}", worktree_text::location(worktree, state)),
            TextStyle::Dim,
        )
    });
    unrestricted
        .map(|text| (text, TextStyle::Yellow))
        .chain(sandbox)
        .chain(billing)
        .chain(worktree)
        .collect()
}

/// Formats an agent's billing: `uses its own login (~/.x); X_KEY is not passed to it`.
pub(crate) fn billing_text(payer: &str, held_back: &[String]) -> String {
    let withheld = match held_back {
        [] => String::new(),
        keys => format!(
            "; {} is not passed to it (--allow-api-key passes it)",
            keys.join(", ")
        ),
    };
    format!("uses {payer}{withheld}")
}

/// Returns a check's command in backticks. Empty if the plan has no such check.
pub(super) fn check_command(state: &State, check: usize) -> String {
    state
        .plan
        .proof
        .checks
        .get(check)
        .map(|check| format!("`{}`", check.command))
        .unwrap_or_default()
}

fn rewound(to: &str) -> String {
    format!("the files were put back to checkpoint {}", one_line(to))
}

/// Returns where a red check's output goes in the next prompt. `None` if the plan has no such check.
fn destination(state: &State, check: usize) -> Option<&'static str> {
    Some(match state.plan.proof.checks.get(check)?.on_fail {
        OnFail::Append => "; its output goes into the next prompt",
        OnFail::Prepend => "; its output comes first in the next prompt",
        OnFail::Replace => "; its output replaces the task in the next prompt",
    })
}

/// Returns the line for the check that starts after this event. `None` if none does.
pub(super) fn next_check(event: &Event, state: &State) -> Option<String> {
    let next = match event {
        Event::Checked { check, .. } if !state.is_graded_again_from_start() => check + 1,
        Event::Checked { .. }
        | Event::Committed { .. }
        | Event::Opened { .. }
        | Event::Ended { .. } => 0,
        _ => return None,
    };
    let due = state.next_check() == Some(next) && state.phase == Phase::Checking;
    due.then(|| format!("checking {}", check_command(state, next)))
}

/// Returns the line that says why all checks run again; `None` if they do not.
fn graded_again(who: &str, files: &[String], state: &State) -> Option<(String, TextStyle)> {
    (!files.is_empty() && state.is_graded_again_from_start()).then(|| {
        let names = name_files(files);
        let text = format!("{who} changed {names}: the checks run again on the changed files");
        (text, TextStyle::Dim)
    })
}

/// Formats a timeout in seconds, the unit in which it is usually configured: `60s`.
pub(super) fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        duration(ms)
    }
}

/// Returns the line for a check and, after the last one, why green checks do not end the loop.
fn checked(
    iteration: u32,
    check: usize,
    report: &CheckReport,
    state: &State,
) -> Vec<(String, TextStyle)> {
    let text = format!(
        "{}check {}: {}{}",
        if iteration == 0 { "preflight " } else { "" },
        check_command(state, check),
        verdict(report) + &look_text::sealed_shortfall(check, report, state),
        destination(state, check)
            .filter(|_| !report.is_green() && state.will_continue())
            .unwrap_or_default()
    );
    let mut lines = vec![(text, look_text::result_style(report.is_green()))];
    let is_last = check + 1 == state.checks.len();
    lines.extend(look_text::disputed(state).filter(|_| is_last && state.is_sealed()));
    lines.extend(claim_text::refused(state).filter(|_| is_last && iteration > 0));
    if is_last && iteration > 0 && state.is_green_without_claim() {
        let why = if state.is_green_without_change() {
            "the checks turned green, but no file has changed since the start: the agent must claim \
             that the task is done"
        } else {
            "every check is green, but the agent has not claimed that the task is done"
        };
        lines.push((why.into(), TextStyle::Yellow));
    }
    lines
}

/// Formats a check's result: `green (210ms)`, `red (exit 1, 2.3s)`.
pub(super) fn verdict(report: &CheckReport) -> String {
    match report {
        report if report.is_green() => format!("green ({})", duration(report.ms)),
        CheckReport {
            timed_out: true,
            ms,
            ..
        } => {
            format!(
                "red (timeout after {}; --check-timeout sets the limit)",
                duration(*ms)
            )
        }
        report => format!(
            "red ({}, {})",
            describe_red_check(report),
            duration(report.ms)
        ),
    }
}

fn ended(iteration: &Iteration, state: &State) -> (String, TextStyle) {
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
    match iteration.end {
        _ if iteration.refunded => {
            let (line, is_long) = rest_text::refunded(iteration, state);
            let style = if is_long {
                TextStyle::Red
            } else {
                TextStyle::Yellow
            };
            (line, style)
        }
        IterationEnd::Exited if state.has_failed(iteration) => {
            let rest = state.rest_until_ms.saturating_sub(state.clock_ms);
            let attempt = with_limit(state.consecutive_failures, state.plan.limits.failures);
            let retry = format!(", retrying in {} (attempt {attempt})", duration(rest));
            let retry = if state.will_continue() {
                retry.as_str()
            } else {
                ""
            };
            let kind = iteration
                .reason
                .map(|reason| reason.kind)
                .filter(|kind| *kind != FailureKind::Crashed);
            let reason = kind
                .map(|kind| format!(": {}", kind.describe()))
                .unwrap_or_default();
            (
                format!("iteration {number} failed ({exit}{reason}){retry}"),
                TextStyle::Red,
            )
        }
        IterationEnd::Exited => (
            format!("iteration {number} completed ({exit}, duration: {time}{cost})"),
            TextStyle::Dim,
        ),
        IterationEnd::Inactive if state.will_continue() => {
            let after = seconds(state.plan.limits.inactivity_ms.unwrap_or(0));
            (
                format!("inactivity timeout ({after}), restarting"),
                TextStyle::Yellow,
            )
        }
        _ => (
            format!(
                "iteration {number} {} ({exit}, duration: {time}{cost})",
                describe_end(iteration)
            ),
            TextStyle::Yellow,
        ),
    }
}

/// Returns which budget the running agent has used up. `cost_usd` and `tokens` are its own.
fn spent(cost_usd: Option<f64>, tokens: Option<Tokens>, state: &State) -> String {
    let over = state
        .exhausted_budget(cost_usd, tokens)
        .map(|(limit, used)| {
            let (reached, noun) = (limit.describe_ending(false), limit.row().noun);
            let max = limit.row().max(&state.plan.limits);
            let max = max.map(|max| format!(" of {max}")).unwrap_or_default();
            format!("{reached} ({})", format!("{used}{max} {noun}").trim_end())
        });
    format!("{}, stopping the agent", over.unwrap_or_default())
}

fn changed(change: &LimitChange) -> String {
    let name = change.limit.row().key.unwrap_or(change.limit.as_str());
    change.max.map_or_else(
        || format!("{name}: no limit"),
        |max| format!("{name} is now {max}"),
    )
}

fn noticed(notice: Notice, state: &State) -> Option<String> {
    let running = matches!(state.phase, Phase::Running { started: true, .. });
    Some(match notice {
        Notice::Pattern => "done pattern matched, stopping the agent".into(),
        Notice::Silence => return None,
        Notice::Unready => {
            "the agent's screen did not become ready for the prompt, stopping the agent".into()
        }
        Notice::Lingering => "the agent has finished but does not exit, stopping the agent".into(),
        Notice::Marker(marker) => {
            let name = match marker {
                Marker::Done => "DONE marker",
                Marker::Blocked => "BLOCKED marker",
                Marker::Wait => "WAIT marker",
                Marker::File => "done file",
                Marker::Bus => "bus message asking to wait",
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

/// Returns what a request makes the loop do. `None` if it does it at once.
fn asked(request: Request, by: RequestSource, state: &State) -> Option<String> {
    let (running, again) = match state.phase {
        Phase::Checking if state.iteration == 0 => ("the preflight checks", "ends them"),
        Phase::Running { .. }
        | Phase::Killing { .. }
        | Phase::Checking
        | Phase::Looking
        | Phase::Committing => ("this iteration", "kills it"),
        _ => return None,
    };
    let again = if by == RequestSource::Sigint {
        format!("; Ctrl-C again {again} now")
    } else {
        String::new()
    };
    match (request, state.request) {
        (Request::Stop, Request::Stop) => Some(format!("stopping after {running}{again}")),
        (Request::Pause, Request::Pause) => Some(format!("pausing after {running}")),
        (_, Request::StopNow | Request::PauseNow) => Some(match state.phase {
            Phase::Committing => "stopping after this commit".into(),
            _ => "stopping the agent now".into(),
        }),
        _ => None,
    }
}

fn finished(outcome: &Outcome, state: &State) -> Vec<(String, TextStyle)> {
    let count = iteration_count(state.iteration);
    if outcome.status() == Status::Done {
        let matched = (matches!(outcome, Outcome::Done { .. }) && state.claims.signals.matched)
            .then(|| {
                (
                    "done pattern matched, stopping loop".into(),
                    TextStyle::Green,
                )
            });
        let complete = (format!("loop complete after {count}"), TextStyle::Green);
        let overruled = state.overruled_claim();
        let overruled = overruled.map(|text| (one_line(&text), TextStyle::Yellow));
        return matched
            .into_iter()
            .chain([complete])
            .chain(overruled)
            .collect();
    }
    let mut lines = Vec::new();
    if let Outcome::Limit {
        limit: Limit::Failures,
        ..
    } = outcome
    {
        let failures = if state.scm.failures > state.consecutive_failures {
            format!("{} consecutive git failures", state.scm.failures)
        } else {
            plural(u64::from(state.consecutive_failures), "consecutive failure")
        };
        lines.push(format!("{failures}, stopping loop"));
    }
    let why = state
        .outcome_summary()
        .unwrap_or_else(|| outcome.summary())
        .detail;
    let why = match outcome {
        Outcome::Stopped { .. } => format!("stopped {why}"),
        _ => one_line(&why),
    };
    lines.push(format!("loop ended after {count}: {why}"));
    match (outcome_text::missing(state), outcome) {
        (Some(why), _) => lines.push(format!("the work is not proven: {why}")),
        (
            None,
            Outcome::Limit {
                limit: Limit::Iterations,
                ..
            },
        ) => lines.push("the work is not proven".into()),
        _ => {}
    }
    let style = if outcome.exit_code() == ExitCode::Failure {
        TextStyle::Red
    } else {
        TextStyle::Yellow
    };
    lines.into_iter().map(|text| (text, style)).collect()
}
