//! Formats text about resting agents and usage limits.

use crate::engine::State;
use crate::engine::failure::FailureKind;
use crate::engine::format::{duration, plural};
use crate::engine::iteration::Iteration;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats the resting agents and their reasons: `claude: usage limit reached`. Returns `None` if
/// no agent rests.
pub(super) fn resting_agents(state: &State) -> Option<String> {
    let agents = state.plan.agents().zip(&state.availability);
    let resting = agents.filter(|(_, availability)| {
        availability
            .until_wall_ms
            .is_some_and(|at| at > state.wall_ms)
    });
    let text = resting.map(|(agent, availability)| {
        format!(
            "{}: {}",
            agent.name,
            availability.why.map_or("resting", FailureKind::describe)
        )
    });
    Some(text.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Returns the console line for an iteration that does not count, and whether its agent rests for
/// more than a day.
pub(super) fn refunded(iteration: &Iteration, state: &State) -> (String, bool) {
    let kind = iteration
        .reason
        .map_or("stopped", |reason| reason.kind.describe());
    let agent = iteration.agent.as_ref().unwrap_or(&state.agent().name);
    let availability = state.availability.get(state.agent_index);
    let until = availability
        .and_then(|availability| availability.until_wall_ms)
        .filter(|at| *at > state.wall_ms);
    let days = until.and_then(|at| days_left(at, state.wall_ms));
    let until = until.map(|at| {
        let clock = clock(at, state.wall_ms);
        match &days {
            Some(days) => format!(", RESTING FOR {}, until {clock}", days.to_uppercase()),
            None => format!(", resting until {clock} ({})", left(at, state)),
        }
    });
    let line = format!(
        "iteration {} is not counted: {agent}: {kind}{}",
        iteration.number,
        until.unwrap_or_default()
    );
    (line, days.is_some())
}

/// Formats the time left until a rest ends: `2 days 7 hours`. `None` if it is less than a day.
pub(super) fn days_left(until_ms: i64, now_ms: i64) -> Option<String> {
    let hours = until_ms.saturating_sub(now_ms).max(0) as u64 / 3_600_000;
    let (days, hours) = (hours / 24, hours % 24);
    let text = format!("{} {}", plural(days, "day"), plural(hours, "hour"));
    (days > 0).then_some(text)
}

/// Formats a usage warning: `92% of its 5-hour limit is used; it resets at 22:05:00`. `used` is a
/// fraction of the limit. If it is `None`, the text says `most`.
pub(super) fn near_limit(
    limit: &str,
    used: Option<f64>,
    until_ms: Option<i64>,
    now_ms: i64,
) -> String {
    let used = used.map_or_else(
        || "most".into(),
        |part| format!("{:.0}%", (part * 100.0).clamp(0.0, 100.0)),
    );
    let until = until_ms.map(|at| format!("; it resets at {}", clock(at, now_ms)));
    format!(
        "{used} of its {limit} limit is used{}",
        until.unwrap_or_default()
    )
}

fn left(until_ms: i64, state: &State) -> String {
    duration(until_ms.saturating_sub(state.wall_ms).max(0) as u64)
}

/// Formats a Unix time in milliseconds as local time. Includes the date unless it is today.
pub(super) fn clock(ms: i64, now_ms: i64) -> String {
    let local = |ms| Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::system()));
    let (Ok(at), Ok(now)) = (local(ms), local(now_ms)) else {
        return String::new();
    };
    let format = if at.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%b %-d, %H:%M"
    };
    at.strftime(format).to_string()
}
