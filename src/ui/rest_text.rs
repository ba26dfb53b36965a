//! Why nobody works: who rests at which limit, and until when.

use crate::engine::State;
use crate::engine::failure::Kind;
use crate::engine::format::duration;
use crate::engine::state::Iteration;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Who rests, and why: `claude: usage limit reached`.
pub fn who(state: &State) -> Option<String> {
    let all = state.plan.agents().zip(&state.team);
    let resting =
        all.filter(|(_, standing)| standing.until_wall_ms.is_some_and(|at| at > state.wall_ms));
    let words = resting.map(|(agent, standing)| {
        format!(
            "{}: {}",
            agent.name,
            standing.why.map_or("resting", Kind::words)
        )
    });
    Some(words.collect::<Vec<_>>().join("; ")).filter(|words| !words.is_empty())
}

/// What is said of an iteration that does not count.
pub fn refunded(iteration: &Iteration, state: &State) -> String {
    let kind = iteration
        .reason
        .map_or("it had to stop", |reason| reason.kind.words());
    let agent = iteration.agent.as_ref().unwrap_or(&state.agent().name);
    let standing = state.team.get(state.using);
    let until = standing
        .and_then(|standing| standing.until_wall_ms)
        .filter(|at| *at > state.wall_ms);
    let until = until.map(|at| {
        format!(
            ", resting until {} ({})",
            clock(at, state.wall_ms),
            left(at, state)
        )
    });
    format!(
        "iteration {} is not counted: {agent}: {kind}{}",
        iteration.number,
        until.unwrap_or_default()
    )
}

/// What is said of an account that is near a limit: `92% of its 5-hour limit is used; it begins anew at 22:05:00`.
pub fn near(limit: &str, used: Option<f64>, until_ms: Option<i64>, now_ms: i64) -> String {
    let used = used.map_or_else(
        || "most".into(),
        |part| format!("{:.0}%", (part * 100.0).clamp(0.0, 100.0)),
    );
    let until = until_ms.map(|at| format!("; it begins anew at {}", clock(at, now_ms)));
    format!(
        "{used} of its {limit} limit is used{}",
        until.unwrap_or_default()
    )
}

fn left(until_ms: i64, state: &State) -> String {
    duration(until_ms.saturating_sub(state.wall_ms).max(0) as u64)
}

/// A time here: of today by its hour, of another day with its date.
pub(super) fn clock(ms: i64, now_ms: i64) -> String {
    let here = |ms| Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::system()));
    let (Ok(at), Ok(now)) = (here(ms), here(now_ms)) else {
        return String::new();
    };
    let form = if at.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%b %-d, %H:%M"
    };
    at.strftime(form).to_string()
}
