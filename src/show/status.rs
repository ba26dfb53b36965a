//! Where a loop stands, for people and for scripts.

use crate::engine::words::{dollars, duration, of_limit};
use crate::engine::{Phase, State};
use crate::store::{Header, View, rfc3339};
use serde_json::{Value, json};

/// A loop as one JSON object.
pub fn object(view: &View, held: bool, directory: &str) -> Value {
    let View { header, state, .. } = view;
    let outcome = state.outcome().map(crate::engine::Outcome::verdict);
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
        "cost_usd": state.known_cost(),
        "max_cost": state.plan.limits.cost_usd,
        "active_s": state.active_ms as f64 / 1000.0,
        "max_time": seconds(state.plan.limits.time_ms),
        "max_failures": state.plan.limits.failures,
        "done_pattern": state.plan.proof.pattern,
        "inactivity_timeout": seconds(state.plan.limits.inactivity_ms),
        "prompt_file": state.plan.task.file,
        "workspace": state.plan.workspace,
        "worktree": Value::Null,
        "directory": directory,
        "parent": header.parent,
        "checks": checks(state),
        "last_exit": last.map(|last| json!({"code": last.exit.code, "signal": last.exit.signal})),
    })
}

fn checks(state: &State) -> Vec<Value> {
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    checks
        .map(|(check, report)| {
            let green = report.as_ref().map(crate::engine::event::CheckReport::is_green);
            json!({"command": check.command, "green": green})
        })
        .collect()
}

fn resting_until(state: &State) -> Option<i64> {
    match state.phase {
        Phase::Resting { until_ms } => Some(state.wall_ms + until_ms.saturating_sub(state.clock_ms) as i64),
        _ => None,
    }
}

/// A loop in a few lines.
pub fn text(view: &View, held: bool) -> String {
    let View { header, state, .. } = view;
    let limits = &state.plan.limits;
    let status = state.status(held).word();
    let status = match state.outcome() {
        Some(outcome) => format!("{status} ({})", outcome.verdict().detail),
        None => status.to_owned(),
    };
    let mut rows = vec![
        ("Ralph Loop", header.name.clone()),
        ("Status", status),
        ("Iteration", of_limit(state.iteration, limits.iterations)),
        ("Started", local(header.created_ms)),
    ];
    rows.extend(state.iteration_wall_ms.map(|at| ("Current iteration started", local(at))));
    rows.extend(resting_until(state).map(|at| ("Resting until", local(at))));
    rows.push(("Consecutive failures", state.consecutive_failures.to_string()));
    rows.push(("Total failures", state.total_failures.to_string()));
    rows.extend(limits.inactivity_ms.map(|ms| ("Inactivity timeout", super::line::seconds(ms))));
    rows.extend(state.plan.proof.pattern.clone().map(|pattern| ("Done pattern", pattern)));
    rows.push((
        "Active time",
        match limits.time_ms {
            Some(max) => format!("{} of {}", duration(state.active_ms), duration(max)),
            None => duration(state.active_ms),
        },
    ));
    rows.push((
        "Cost",
        match (state.known_cost(), limits.cost_usd) {
            (Some(usd), Some(max)) => format!("{} of {}", dollars(usd), dollars(max)),
            (Some(usd), None) => dollars(usd),
            (None, _) => "unknown".into(),
        },
    ));
    for (check, report) in state.plan.proof.checks.iter().zip(&state.checks) {
        let verdict =
            report.as_ref().map_or_else(|| "not run in this iteration".into(), super::line::verdict);
        rows.push(("Check", format!("{} — {verdict}", check.command)));
    }
    rows.push(("Workspace", state.plan.workspace.display().to_string()));
    rows.extend(next_step(header, state, held).map(|words| ("Next", words)));
    let lines = rows.iter().map(|(name, value)| format!("{name}: {}", super::one_line(value)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// What a person would do now.
pub fn next_step(header: &Header, state: &State, held: bool) -> Option<String> {
    use crate::engine::{Limit, Outcome, Status};
    let name = &header.name;
    Some(match (state.status(held), state.outcome()) {
        (Status::Running, _) => format!("ralph logs {name} -f"),
        (Status::Blocked, _) => format!("ralph resume {name} --answer \"…\""),
        (_, Some(Outcome::Limit { limit, .. })) if *limit != Limit::Failures => {
            let key = match limit {
                Limit::Cost => "max-cost",
                Limit::Time => "max-time",
                _ => "max-iterations",
            };
            format!("ralph set {name} {key}=…, then ralph resume {name}")
        }
        (Status::Done, _) => return None,
        _ => format!("ralph resume {name}"),
    })
}

fn local(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_default()
}

/// All loops, one a line.
pub fn table(loops: &[(View, bool)]) -> String {
    let head = ["NAME", "STATUS", "ITERATION", "COST", "WORKSPACE"].map(str::to_owned);
    let mut rows = vec![head];
    for (View { header, state, .. }, held) in loops {
        rows.push([
            header.name.clone(),
            state.status(*held).word().to_owned(),
            of_limit(state.iteration, state.plan.limits.iterations),
            state.known_cost().map_or_else(|| "?".into(), dollars),
            super::one_line(&state.plan.workspace.display().to_string()),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
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
