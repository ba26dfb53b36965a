//! Formats the status of loops for `ralph status` and `ralph ls`, as text and as JSON.

use super::cost::cost_of_limit;
use super::event_line::{check_command, seconds, verdict};
use super::rows::{RESULT, labeled_row};
use super::{
    display_width, label_text, look_text, loop_order, one_line, outcome_text, rest_text,
    truncate_to_width, worktree_text,
};
use crate::engine::display::char_width;
use crate::engine::event::Request;
use crate::engine::limits::LIMITS;
use crate::engine::task_text::{task_name, task_verdict};
use crate::engine::{Amount, Limit, Liveness, Outcome, Phase, State, Status};
use crate::store::{EndedLoop, LoopView, rfc3339};
use serde_json::{Value, json};

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
type StatusRow = (&'static str, String);

/// Returns a loop's status as text, one row per line, or in several rows on a terminal of this
/// width.
pub(crate) fn text(
    view: &LoopView,
    liveness: Liveness,
    directory: &str,
    width: Option<usize>,
) -> String {
    let LoopView { header, state, .. } = view;
    let running = state.status(liveness) == Status::Running;
    let mut rows = vec![
        ("Ralph Loop", header.name.clone()),
        ("Status", line(state, liveness)),
        ("Iteration", state.iteration_label(state.iteration)),
        ("Started", local(header.created_ms)),
    ];
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
    let lines = rows.iter();
    let lines = lines.map(|(name, value)| labeled_row(name, &one_line(value), width));
    lines.collect()
}

/// Returns the rows about the loop's progress and its usage.
fn progress_rows(state: &State, running: bool) -> Vec<StatusRow> {
    let (limits, mut rows) = (&state.plan.limits, Vec::new());
    let newest = if running {
        "Current iteration started"
    } else {
        "Last iteration started"
    };
    rows.extend(state.iteration_wall_ms.map(|at| (newest, local(at))));
    rows.extend(resting_until(state).map(|at| {
        let days = rest_text::days_left(at, state.wall_ms);
        let days = days.map(|days| format!(" — {days} from the last event"));
        ("Resting until", local(at) + &days.unwrap_or_default())
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
fn short_status(state: &State, liveness: Liveness) -> String {
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

/// Describes the loop's current activity. Returns `None` if the loop is not running.
fn activity(state: &State) -> Option<String> {
    Some(match &state.phase {
        Phase::Checking => {
            let next = state.checks.iter().position(Option::is_none);
            let probed = state.next_probe().map(|(check, _)| check);
            format!("checking {}", check_command(state, next.or(probed)?))
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
fn task(state: &State) -> String {
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

fn local(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| {
            at.to_zoned(jiff::tz::TimeZone::system())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        })
        .unwrap_or_default()
}

/// The cost of a loop in [`table`] if no agent reported one.
const UNKNOWN_COST: &str = "?";

/// One row of [`table`].
pub(crate) struct LoopRow {
    parent: Option<String>,
    cells: [String; 5],
}

impl LoopRow {
    pub(crate) fn new(view: &LoopView, liveness: Liveness) -> Self {
        let LoopView { header, state, .. } = view;
        let cells = [
            header.name.clone(),
            short_status(state, liveness),
            state.iteration_label(state.iteration),
            state.cost_text().unwrap_or_else(|| UNKNOWN_COST.into()),
            one_line(&state.plan.workspace.display().to_string()),
        ];
        Self {
            parent: header.parent.clone(),
            cells,
        }
    }

    /// Returns the row of a loop that has ended.
    pub(crate) fn ended(ended: EndedLoop) -> Self {
        let cells = [
            ended.name,
            ended.status.as_str().to_owned(),
            ended.iteration,
            ended.cost.unwrap_or_else(|| UNKNOWN_COST.into()),
            one_line(&ended.workspace.display().to_string()),
        ];
        Self {
            parent: ended.parent,
            cells,
        }
    }
}

/// The fewest columns that are worth a column of workspaces or names.
const COLUMN_MIN: usize = 12;

/// Returns the table of all loops, each child loop below its parent. In a terminal of `columns`
/// columns, long workspaces lose their beginning and long names their end; in a narrow one, the
/// workspaces are left out.
pub(crate) fn table(mut loops: Vec<LoopRow>, columns: Option<usize>) -> String {
    loops.sort_by_cached_key(|row| loop_order::natural_key(&row.cells[0]));
    let head = ["NAME", "STATUS", "ITERATION", "COST", "WORKSPACE"].map(str::to_owned);
    let mut rows = vec![head];
    let names: Vec<_> = loops
        .iter()
        .map(|row| (&row.cells[0][..], row.parent.as_deref()))
        .collect();
    for (depth, at) in loop_order::in_order(&names) {
        let mut cells = loops[at].cells.clone();
        cells[0] = loop_order::indented(&cells[0], depth);
        rows.push(cells);
    }
    let width = |column: usize| {
        rows.iter()
            .map(|row| display_width(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let mut widths = [0, 1, 2, 3, 4].map(width);
    if let Some(columns) = columns {
        // Two spaces follow every column but the last.
        let others: usize = widths[1..4].iter().map(|width| width + 2).sum();
        let left = columns.saturating_sub(others + 2);
        let for_name = left.saturating_sub(2 + widths[4].min(COLUMN_MIN));
        if left < 2 * COLUMN_MIN {
            widths[4] = 0;
            widths[0] = widths[0].min(left.max(COLUMN_MIN));
        } else {
            widths[0] = widths[0].min(for_name);
            widths[4] = widths[4].min(left - widths[0]);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let cell = match column {
                    4 => keep_end(cell, width),
                    _ => truncate_to_width(cell, width),
                };
                let pad = width.saturating_sub(display_width(&cell));
                cell + &" ".repeat(pad)
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Cuts the beginning of a path to fit into `width` columns; empty if that is 0.
fn keep_end(path: &str, width: usize) -> String {
    if display_width(path) <= width || width == 0 {
        return if width == 0 {
            String::new()
        } else {
            path.to_owned()
        };
    }
    let mut left = width - 1;
    let end: Vec<char> = path
        .chars()
        .rev()
        .map_while(|c| {
            left = left.checked_sub(char_width(c))?;
            Some(c)
        })
        .collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}
