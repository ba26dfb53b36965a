//! Formats the status of a loop for `ralph status`, as text and as JSON.

use super::age::date_time;
use super::cost::cost_of_limit;
use super::event_line::{check_command, seconds, verdict};
use super::rows::RESULT;
use super::{
    TextStyle, label_text, look_text, one_line, outcome_text, rest_text, truncate_to_width,
    worktree_text,
};
use crate::engine::event::Request;
use crate::engine::limits::LIMITS;
use crate::engine::task_text::{task_name, task_verdict};
use crate::engine::{Amount, Limit, Liveness, Outcome, Phase, State, Status};
use crate::store::{FleetPlacement, LoopView, rfc3339};
use serde_json::{Value, json};
use std::path::Path;

/// Returns a loop's status as a JSON object.
pub(crate) fn object(view: &LoopView, liveness: Liveness, directory: &str) -> Value {
    let LoopView { header, state, .. } = view;
    let outcome = state.outcome_summary();
    let seconds = |ms: Option<u64>| ms.map(|ms| ms as f64 / 1000.0);
    let last = state.recent.back();
    let mut object = json!({
        "name": header.name,
        "status": state.status(liveness).as_str(),
        "outcome": outcome,
        "stop_reason": state.outcome().map(crate::engine::Outcome::stop_reason),
        "current_iteration": state.iteration,
        "started": rfc3339(header.created_ms),
        "last_iteration_started": state.iteration_wall_ms.map(rfc3339),
        "resting_until": resting_until(state).map(rfc3339),
        "pending": pending(state),
        "consecutive_failures": state.consecutive_failures,
        "total_failures": state.total_failures,
        "cost_usd": state.reported_cost(),
        "tokens": reported_tokens(state),
        "agent": state.agent().name,
        "session": state.plan.session.as_ref().filter(|_| state.is_in_session()).map(|session| &session.id),
        "stumbled": state.turn_failure(),
        "active_s": state.active_ms as f64 / 1000.0,
        "done_pattern": state.plan.proof.pattern(),
        "inactivity_timeout": seconds(state.plan.limits.inactivity_ms),
        "prompt_file": state.plan.task.file,
        "sandbox": state.plan.sandbox.filter(|_| !state.is_in_session()),
        "workspace": state.plan.workspace,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
        "branch": state.worktree_revision(),
        "elsewhere": Some(&state.scm.elsewhere).filter(|elsewhere| !elsewhere.is_empty()),
        "directory": directory,
        "parent": header.parent,
        "checks": checks(state),
        "checkpoint": state.checkpoint.newest,
        "best_iteration": state.best_iteration().map(|best| best.iteration),
        "better_iteration": state
            .better_iteration()
            .filter(|_| outcome.is_some())
            .map(|best| best.iteration),
        "review": state.review.as_ref().filter(|_| outcome.is_some()),
        "scm": tasks(state),
        "iterations": iterations(state),
        "last_reason": last.and_then(|last| last.reason),
        "last_error": last.and_then(|last| last.error.as_deref()),
        "last_exit": last.map(|last| json!({"code": last.exit.code, "signal": last.exit.signal})),
    });
    if let Some(placement) = FleetPlacement::read(Path::new(directory)) {
        object["host"] = json!(state.host);
        object["owner"] = json!(placement.owner);
        object["epoch"] = json!(placement.epoch);
        object["queued"] = json!(placement.queued);
        object["refused"] = json!(placement.refused);
    }
    for row in &LIMITS {
        if let Some(key) = row.key {
            object[key.replace('-', "_")] = match row.max(&state.plan.limits) {
                Some(Amount::Millis(ms)) => json!(seconds(Some(ms))),
                max => json!(max),
            };
        }
    }
    object
}

/// Returns the tokens used; `None` if no agent reported any.
fn reported_tokens(state: &State) -> Option<u64> {
    let total = state.tokens.total();
    let is_reported = total > 0 || state.recent.iter().any(|last| last.tokens.is_some());
    is_reported.then_some(total)
}

/// Returns the most recent iterations, oldest first.
fn iterations(state: &State) -> Vec<Value> {
    let ended = state.recent.iter();
    ended
        .map(|one| {
            json!({
                "iteration": one.number,
                "reason": one.reason,
                "counted": !one.refunded,
                "duration_s": one.ms as f64 / 1000.0,
                "cost_usd": one.cost_usd,
            })
        })
        .collect()
}

fn checks(state: &State) -> Vec<Value> {
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    checks
        .enumerate()
        .map(|(index, (check, report))| {
            let green = report
                .as_ref()
                .map(crate::engine::event::CheckReport::is_green);
            let label = state.label.labels.get(index);
            json!({"command": check.command, "green": green, "label": label})
        })
        .collect()
}

fn tasks(state: &State) -> Vec<Value> {
    let reports = state.scm.reports.iter().enumerate();
    reports
        .map(|(task, report)| {
            json!({
                "task": state.scm_task_args(task),
                "green": report.is_success(),
                "skipped": report.skipped,
                "commit": report.commit,
            })
        })
        .collect()
}

/// Returns when the loop's rest ends, in Unix milliseconds, or `None` if the loop is not resting.
pub(super) fn resting_until(state: &State) -> Option<i64> {
    match state.phase {
        Phase::Resting {
            wall_ms: Some(wall_ms),
            ..
        } => Some(wall_ms),
        Phase::Resting { until_ms, .. } => {
            Some(state.wall_ms + until_ms.saturating_sub(state.clock_ms) as i64)
        }
        _ => None,
    }
}

/// A row of the status: a label and its value.
pub(super) type StatusRow = (&'static str, String);

/// Returns a loop's status as text, one row per line.
pub(crate) fn text(view: &LoopView, liveness: Liveness, directory: &str) -> String {
    let rows = rows(view, liveness, directory);
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name}: {}", one_line(value)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Returns all rows of a loop's status.
pub(super) fn rows(view: &LoopView, liveness: Liveness, directory: &str) -> Vec<StatusRow> {
    let LoopView { header, state, .. } = view;
    let running = state.status(liveness) == Status::Running;
    let mut rows = vec![
        ("Ralph Loop", header.name.clone()),
        ("Status", line(state, liveness)),
        ("Iteration", state.iteration_label(state.iteration)),
        ("Started", date_time(header.created_ms)),
    ];
    let placement = FleetPlacement::read(Path::new(directory));
    if let Some(placement) = &placement {
        rows.extend(state.host.clone().map(|host| ("Host", host)));
        rows.extend(placement.owner.clone().map(|owner| ("Worker", owner)));
        rows.extend(placement.waiting_for().map(|why| ("Queued", why)));
    }
    rows.extend(progress_rows(state, running));
    rows.extend(proof_rows(state));
    rows.extend(outcome_text::better(&header.name, state).map(|text| ("Better", text)));
    rows.extend(outcome_text::review(state).map(|text| ("Review", text)));
    rows.push(("Task", task(state)));
    rows.push(agent_row(state));
    let sandbox = state.plan.sandbox.filter(|_| !state.is_in_session());
    rows.extend(sandbox.map(|kind| ("Sandbox", kind.to_string())));
    rows.extend(header.parent.clone().map(|parent| ("Parent", parent)));
    rows.push(("Workspace", state.plan.workspace.display().to_string()));
    if let Some(worktree) = &state.plan.worktree {
        rows.push(("Worktree", worktree_text::location(worktree, state)));
    }
    if placement.is_some() {
        // Paths of another machine, and a directory that is about to be removed, are of no use here.
        rows.push(("Fetch", format!("ralph fetch {} --fleet", header.name)));
        return rows;
    }
    rows.extend(worktree_text::unsaved(state, running).map(|text| ("Unsaved", text)));
    if let Some(worktree) = &state.plan.worktree {
        let commands = worktree_text::commands(worktree, state, &header.name, running);
        rows.extend(commands.into_iter().map(|(name, command)| {
            let name = match name {
                "inspect" => "Inspect",
                "commit" => "Commit",
                "merge" => "Merge",
                _ => "Remove",
            };
            (name, command)
        }));
    }
    rows.push(("Logs", directory.to_owned()));
    rows.extend(outcome_text::advice(header, state, liveness).map(|text| ("Next", text)));
    rows
}

/// Returns the rows about the loop's progress and its usage.
fn progress_rows(state: &State, running: bool) -> Vec<StatusRow> {
    let (limits, mut rows) = (&state.plan.limits, Vec::new());
    let newest = if running {
        "Current iteration started"
    } else {
        "Last iteration started"
    };
    rows.extend(state.iteration_wall_ms.map(|at| (newest, date_time(at))));
    rows.extend(resting_until(state).map(|at| {
        let days = rest_text::days_left(at, state.wall_ms);
        let days = days.map(|days| format!(" — {days} from the last event"));
        ("Resting until", date_time(at) + &days.unwrap_or_default())
    }));
    rows.push((
        "Consecutive failures",
        state.consecutive_failures.to_string(),
    ));
    rows.push(("Total failures", state.total_failures.to_string()));
    rows.extend(
        limits
            .inactivity_ms
            .map(|ms| ("Inactivity timeout", seconds(ms))),
    );
    rows.extend(
        state
            .plan
            .proof
            .pattern()
            .map(|pattern| ("Done pattern", pattern.to_owned())),
    );
    rows.extend(
        activity(state)
            .filter(|_| running)
            .map(|text| ("Now", text)),
    );
    rows.extend(
        pending(state)
            .filter(|_| running)
            .map(|request| ("Pending", format!("{request} after this iteration"))),
    );
    rows.push(("Active time", state.usage_of(Limit::Time)));
    rows.push((
        "Cost",
        cost_of_limit(state).unwrap_or_else(|| "unknown".into()),
    ));
    if limits.tokens.is_some() || state.tokens.total() > 0 {
        rows.push(("Tokens", state.usage_of(Limit::Tokens)));
    }
    rows
}

/// Returns the rows about checks, SCM tasks and missing proof.
fn proof_rows(state: &State) -> Vec<StatusRow> {
    let mut rows = Vec::new();
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    for (index, (check, report)) in checks.enumerate() {
        let verdict = report
            .as_ref()
            .map_or_else(|| "not run in this iteration".into(), verdict);
        let label = label_text::suffix(state, index);
        let command = one_line(&check.command);
        rows.push(("Check", format!("{command}{RESULT}{verdict}{label}")));
    }
    for (task, report) in state.scm.reports.iter().enumerate() {
        rows.push((
            "SCM",
            format!("{} — {}", task_name(state, task), task_verdict(report)),
        ));
    }
    rows.extend(outcome_text::missing(state).map(|text| ("Missing", text)));
    rows.extend(
        state
            .turn_failure()
            .map(str::to_owned)
            .map(|message| ("Turn failed", message)),
    );
    rows
}

/// Returns the row for the session that the loop runs in or, without a session, for its agent.
fn agent_row(state: &State) -> StatusRow {
    let agent = state.agent();
    let command = agent.command.join(" ");
    match state
        .plan
        .session
        .as_ref()
        .filter(|_| state.is_in_session())
    {
        Some(session) => ("Session", format!("{} {}", session.client, session.id)),
        None if command.is_empty() => ("Agent", agent.name.clone()),
        None => ("Agent", command),
    }
}

/// Returns the style of a loop's status.
pub(super) fn status_style(status: Status) -> TextStyle {
    match status {
        Status::Done => TextStyle::Green,
        Status::Failed | Status::Crashed => TextStyle::Red,
        Status::Blocked | Status::Waiting | Status::Paused | Status::Stopped => TextStyle::Yellow,
        Status::Starting | Status::Running => TextStyle::Bold,
    }
}

/// Formats the status and its reason: `done (every check is green)`.
pub(crate) fn line(state: &State, liveness: Liveness) -> String {
    let status = state.status(liveness).as_str();
    match state.outcome().zip(state.outcome_summary()) {
        Some((Outcome::Stopped { .. }, by)) => format!("{status} {}", by.detail),
        Some((_, why)) => format!("{status} ({})", one_line(&why.detail)),
        None => status.to_owned(),
    }
}

/// Returns the status for `ralph ls`, marked if the loop rests because of an agent's usage limit.
pub(super) fn short_status(state: &State, liveness: Liveness) -> String {
    let is_resting = liveness == Liveness::Running
        && matches!(
            state.phase,
            Phase::Resting {
                wall_ms: Some(_),
                ..
            }
        );
    let status = state.status(liveness).as_str();
    if is_resting {
        format!("{status}, resting")
    } else {
        status.to_owned()
    }
}

/// Returns what the loop will do as soon as it can, because a person asked for it; `None` if it goes
/// on.
fn pending(state: &State) -> Option<&'static str> {
    match state.request {
        Request::Go => None,
        _ if state.outcome().is_some() || state.phase == Phase::Paused => None,
        Request::Pause | Request::PauseNow => Some("pause"),
        Request::Stop | Request::StopNow => Some("stop"),
    }
}

/// Describes the loop's current activity. Returns `None` if the loop is not running.
pub(super) fn activity(state: &State) -> Option<String> {
    Some(match &state.phase {
        Phase::Checking => {
            format!("checking {}", check_command(state, state.running_check()?))
        }
        Phase::Looking => look_text::activity(state),
        Phase::Committing => format!("git {}", task_name(state, state.next_scm_task()?)),
        Phase::Running { .. } => match state.request {
            Request::Go => "the agent is running".into(),
            Request::Pause | Request::PauseNow => {
                "the agent is running; the loop pauses afterwards".into()
            }
            Request::Stop | Request::StopNow => {
                "the agent is running; the loop stops afterwards".into()
            }
        },
        Phase::Killing { .. } => "stopping the agent".into(),
        Phase::Draining { stop: true, .. } => "stopping child loops".into(),
        Phase::Draining { .. } => "waiting for child loops".into(),
        Phase::Resting { .. } => {
            rest_text::resting_agents(state).unwrap_or_else(|| "resting".into())
        }
        Phase::NotStarted | Phase::Paused | Phase::Ended(_) => return None,
    })
}

/// Returns the task in one line: its title, its first line, or the path of its file.
pub(super) fn task(state: &State) -> String {
    let task = &state.plan.task;
    let first = || {
        task.text
            .as_ref()?
            .lines()
            .find(|line| !line.trim().is_empty())
    };
    match task.title.as_deref().or_else(first) {
        Some(text) => truncate_to_width(&one_line(text), 80),
        None => task
            .file
            .as_ref()
            .map(|file| file.display().to_string())
            .unwrap_or_default(),
    }
}
