//! Where a loop stands, for people and for scripts.

use super::cost::{cost, cost_of_limit, known_cost};
use super::event_line::{check_words, seconds, verdict};
use super::{fit, loop_order, one_line, outcome_text, rest_text, scm_text, worktree_text};
use crate::engine::event::Wish;
use crate::engine::format::{duration, thousands};
use crate::engine::{Outcome, Phase, State, Status};
use crate::store::{View, rfc3339};
use serde_json::{Value, json};

pub use outcome_text::{limit_raised, next_step};

/// A loop as one JSON object.
pub fn object(view: &View, held: bool, directory: &str) -> Value {
    let View { header, state, .. } = view;
    let outcome = state.verdict();
    let seconds = |ms: Option<u64>| ms.map(|ms| ms as f64 / 1000.0);
    let last = state.recent.back();
    json!({
        "name": header.name,
        "status": state.status(held).word(),
        "outcome": outcome,
        "stop_reason": state.outcome().map(crate::engine::Outcome::stop_reason),
        "current_iteration": state.iteration,
        "max_iterations": state.plan.limits.iterations,
        "started": rfc3339(header.created_ms),
        "last_iteration_started": state.iteration_wall_ms.map(rfc3339),
        "resting_until": resting_until(state).map(rfc3339),
        "consecutive_failures": state.consecutive_failures,
        "total_failures": state.total_failures,
        "cost_usd": known_cost(state),
        "max_cost": state.plan.limits.cost_usd,
        "tokens": state.recent.iter().any(|last| last.tokens.is_some()).then(|| state.tokens.total()),
        "max_tokens": state.plan.limits.tokens,
        "agent": state.agent().name,
        "session": state.plan.session.as_ref().filter(|_| state.is_inside()).map(|session| &session.id),
        "stumbled": state.stumble(),
        "active_s": state.active_ms as f64 / 1000.0,
        "max_time": seconds(state.plan.limits.time_ms),
        "max_failures": state.plan.limits.failures,
        "done_pattern": state.plan.proof.pattern,
        "inactivity_timeout": seconds(state.plan.limits.inactivity_ms),
        "prompt_file": state.plan.task.file,
        "workspace": state.plan.workspace,
        "worktree": state.plan.worktree.as_ref().map(|worktree| &worktree.path),
        "branch": state.plan.worktree.as_ref().map(|worktree| &worktree.branch),
        "directory": directory,
        "parent": header.parent,
        "checks": checks(state),
        "scm": tasks(state),
        "iterations": iterations(state),
        "last_reason": last.and_then(|last| last.reason),
        "last_error": last.and_then(|last| last.error.as_deref()),
        "last_exit": last.map(|last| json!({"code": last.exit.code, "signal": last.exit.signal})),
    })
}

/// The last iterations that have ended, the newest last.
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
        .map(|(check, report)| {
            let green = report
                .as_ref()
                .map(crate::engine::event::CheckReport::is_green);
            json!({"command": check.command, "green": green})
        })
        .collect()
}

fn tasks(state: &State) -> Vec<Value> {
    let reports = state.keeping.reports.iter().enumerate();
    reports
        .map(|(task, report)| {
            json!({
                "task": state.task_words(task),
                "green": report.is_good(),
                "skipped": report.skipped,
                "commit": report.commit,
            })
        })
        .collect()
}

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

/// A loop in a few lines.
pub fn text(view: &View, held: bool, directory: &str) -> String {
    let View { header, state, .. } = view;
    let (limits, running) = (&state.plan.limits, state.status(held) == Status::Running);
    let mut rows = vec![
        ("Ralph Loop", header.name.clone()),
        ("Status", line(state, held)),
        ("Iteration", state.place(state.iteration)),
        ("Started", local(header.created_ms)),
    ];
    let newest = if running {
        "Current iteration started"
    } else {
        "Last iteration started"
    };
    rows.extend(state.iteration_wall_ms.map(|at| (newest, local(at))));
    rows.extend(resting_until(state).map(|at| ("Resting until", local(at))));
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
            .pattern
            .clone()
            .map(|pattern| ("Done pattern", pattern)),
    );
    rows.extend(now(state).filter(|_| running).map(|words| ("Now", words)));
    rows.push((
        "Active time",
        match limits.time_ms {
            Some(max) => format!("{} of {}", duration(state.active_ms), duration(max)),
            None => duration(state.active_ms),
        },
    ));
    rows.push((
        "Cost",
        cost_of_limit(state).unwrap_or_else(|| "unknown".into()),
    ));
    let used = thousands(state.tokens.total());
    match limits.tokens {
        Some(max) => rows.push(("Tokens", format!("{used} of {}", thousands(max)))),
        None if state.tokens.total() > 0 => rows.push(("Tokens", used)),
        None => {}
    }
    for (check, report) in state.plan.proof.checks.iter().zip(&state.checks) {
        let verdict = report
            .as_ref()
            .map_or_else(|| "not run in this iteration".into(), verdict);
        rows.push(("Check", format!("{} — {verdict}", check.command)));
    }
    for (task, report) in state.keeping.reports.iter().enumerate() {
        rows.push((
            "SCM",
            format!(
                "{} — {}",
                scm_text::name(state, task),
                scm_text::verdict(report)
            ),
        ));
    }
    rows.extend(outcome_text::missing(state).map(|words| ("Missing", words)));
    rows.extend(
        state
            .stumble()
            .map(str::to_owned)
            .map(|words| ("Broke off", words)),
    );
    rows.push(("Task", task(state)));
    let agent = state.agent();
    let command = agent.command.join(" ");
    match state.plan.session.as_ref().filter(|_| state.is_inside()) {
        Some(session) => rows.push(("Session", format!("{} {}", session.client, session.id))),
        None => rows.push((
            "Agent",
            if command.is_empty() {
                agent.name.clone()
            } else {
                command
            },
        )),
    }
    rows.extend(header.parent.clone().map(|parent| ("Parent", parent)));
    rows.push(("Workspace", state.plan.workspace.display().to_string()));
    if let Some(own) = &state.plan.worktree {
        rows.push(("Worktree", worktree_text::place(own)));
        rows.extend(worktree_text::unsaved(state, running).map(|words| ("Unsaved", words)));
        let names = ["Inspect", "Merge", "Remove"];
        let commands = worktree_text::commands(own, &header.name).map(|(_, command)| command);
        rows.extend(names.into_iter().zip(commands));
    }
    rows.push(("Logs", directory.to_owned()));
    rows.extend(outcome_text::advice(header, state, held).map(|words| ("Next", words)));
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name}: {}", one_line(value)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// A loop's status, and why it is so: `done (every check is green)`.
pub fn line(state: &State, held: bool) -> String {
    let word = state.status(held).word();
    match state.outcome().zip(state.verdict()) {
        Some((Outcome::Stopped { .. }, by)) => format!("{word} {}", by.detail),
        Some((_, why)) => format!("{word} ({})", one_line(&why.detail)),
        None => word.to_owned(),
    }
}

/// A loop's status in a table, where one that rests at an agent's limit is told from one that works.
fn word(state: &State, held: bool) -> String {
    let rests = held
        && matches!(
            state.phase,
            Phase::Resting {
                wall_ms: Some(_),
                ..
            }
        );
    let word = state.status(held).word();
    if rests {
        format!("{word}, resting")
    } else {
        word.to_owned()
    }
}

/// What is under way.
fn now(state: &State) -> Option<String> {
    Some(match &state.phase {
        Phase::Checking => {
            let check = state.checks.iter().position(Option::is_none)?;
            format!("checking {}", check_words(state, check))
        }
        Phase::Committing => format!("git {}", scm_text::name(state, state.task_due()?)),
        Phase::Running { .. } => match state.wish {
            Wish::Go => "the agent works".into(),
            Wish::Pause | Wish::PauseNow => "the agent works; then it pauses".into(),
            Wish::Stop | Wish::StopNow => "the agent works; then it stops".into(),
        },
        Phase::Killing { .. } => "stopping the agent".into(),
        Phase::Draining { stop: true, .. } => "stopping child loops".into(),
        Phase::Draining { .. } => "waiting for child loops".into(),
        Phase::Resting { .. } => rest_text::who(state).unwrap_or_else(|| "resting".into()),
        Phase::Waiting | Phase::Paused | Phase::Ended(_) => return None,
    })
}

/// The task in one line: its name, or how it begins, or where it stands.
fn task(state: &State) -> String {
    let task = &state.plan.task;
    let first = || {
        task.text
            .as_ref()?
            .lines()
            .find(|line| !line.trim().is_empty())
    };
    match task.title.as_deref().or_else(first) {
        Some(words) => fit(&one_line(words), 80),
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

/// A loop as a line among others.
pub struct Row {
    parent: Option<String>,
    cells: [String; 5],
}

impl Row {
    /// A loop's line.
    pub fn of(view: &View, held: bool) -> Self {
        let View { header, state, .. } = view;
        let cells = [
            header.name.clone(),
            word(state, held),
            state.place(state.iteration),
            cost(state).unwrap_or_else(|| "?".into()),
            one_line(&state.plan.workspace.display().to_string()),
        ];
        Self {
            parent: header.parent.clone(),
            cells,
        }
    }
}

/// All loops, one a line; one that was started by another's agent stands below that one.
pub fn table(loops: &[Row]) -> String {
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
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(cell);
            text.push_str(&" ".repeat(width + 2 - cell.chars().count()));
        }
        text.push_str(&row[4]);
        text.push('\n');
    }
    text
}
