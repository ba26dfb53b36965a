//! The live line at the bottom of the console: what the loop is doing, and for how long.

use super::rest_text;
use super::rest_text::clock;
use super::status::resting_until;
use super::tty::width;
use super::{StyledText, TextStyle, adapt, event_line, look_text, one_line, truncate_to_width};
use crate::engine::format::{duration, with_limit};
use crate::engine::plain_text::visible;
use crate::engine::task_text::task_name;
use crate::engine::{Phase, State};
use std::time::Duration;

/// The format of times in the live line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimeStyle {
    /// Durations. The line is redrawn every second.
    Elapsed,
    /// Clock times. The line need not be redrawn while nothing happens.
    Clock,
}

/// The shortest silence that is shown as idle.
const MIN_IDLE: Duration = Duration::from_secs(5);

/// Returns the time until a silent agent is shown as idle. `None` if it already is, or if it is not
/// silent.
pub(super) fn idle_shown_in(silent_for: Option<Duration>) -> Option<Duration> {
    silent_for
        .and_then(|silent| MIN_IDLE.checked_sub(silent))
        .filter(|left| !left.is_zero())
}

/// The data that the live line shows in addition to [`State`].
pub(super) struct LiveStatus {
    /// The time since the last event, by which the state's clocks are advanced.
    pub(super) since_event: Duration,
    /// The time since the agent's last activity. `None` if no agent is running.
    pub(super) silent_for: Option<Duration>,
    /// The loop's cost and tokens, including those of the running iteration.
    pub(super) spend: Vec<String>,
}

/// Formats the live line: `▸ NAME · iteration 2/25 · 1m 5s · $0.40`.
pub(super) fn text(name: &str, state: &State, status: LiveStatus, times: TimeStyle) -> String {
    format!("▸ {name} · {}", parts(state, status, times).join(" · "))
}

/// Returns the rows of a plain console: the agent's unfinished line, if any, and the live line.
pub(super) fn rows(text: &str, unfinished: Option<String>, color: bool) -> Vec<StyledText> {
    let width = width().unwrap_or(80) - 1;
    let unfinished = unfinished.map(|text| {
        let mut row = StyledText::new(color);
        row.push(&adapt(truncate_to_width(&format!("  │ {text}"), width)));
        row
    });
    let mut row = StyledText::new(color);
    let text = truncate_to_width(&visible(text), width);
    row.push_styled(&adapt(text), TextStyle::Bold);
    unfinished.into_iter().chain([row]).collect()
}

/// Returns what the loop is doing, for how long, and what it has spent.
pub(super) fn parts(state: &State, status: LiveStatus, times: TimeStyle) -> Vec<String> {
    let LiveStatus {
        since_event,
        silent_for,
        spend,
    } = status;
    let limits = &state.plan.limits;
    let since_ms = since_event.as_millis() as u64;
    let now_ms = state.wall_ms.saturating_add_unsigned(since_ms);
    let time = |ms| clock(ms, now_ms);
    let elapsed = state.active_ms + since_ms;
    let by_clock = times == TimeStyle::Clock;
    let mut parts = vec![match &state.phase {
        Phase::Checking => checking(state),
        Phase::Looking => format!(
            "iteration {}: {}",
            state.iteration,
            look_text::activity(state)
        ),
        Phase::Committing => {
            format!(
                "iteration {}: git {}",
                state.iteration,
                task_name(state, state.scm.reports.len())
            )
        }
        Phase::Killing { .. } => format!("stopping iteration {}", state.iteration),
        Phase::Draining { .. } => "waiting for child loops".into(),
        Phase::Resting { .. } if by_clock => {
            let agents = rest_text::resting_agents(state)
                .map(|agents| agents + ", ")
                .unwrap_or_default();
            format!(
                "{agents}resting until {}",
                resting_until(state).map(time).unwrap_or_default()
            )
        }
        Phase::Resting {
            wall_ms: Some(wall_ms),
            ..
        } => resting(state, *wall_ms),
        Phase::Resting { until_ms, .. } => {
            let left = until_ms.saturating_sub(state.clock_ms + since_ms);
            format!("resting {}", duration(left / 1000 * 1000 + 1000))
        }
        _ => format!(
            "iteration {}",
            state.iteration_label(state.iteration.max(1))
        ),
    }];
    match &state.phase {
        Phase::Resting { .. } if by_clock => {}
        Phase::Running { started: true, .. } if by_clock => {
            parts.push(format!(
                "since {}",
                time(state.iteration_wall_ms.unwrap_or(state.wall_ms))
            ));
        }
        _ if by_clock => parts.push(format!("since {}", time(state.wall_ms))),
        _ => parts.push(whole_seconds(elapsed)),
    }
    if let Some(silent) = silent_for.filter(|silent| *silent >= MIN_IDLE) {
        parts.push(match times {
            TimeStyle::Elapsed => format!("idle {}", duration(silent.as_secs() * 1000)),
            TimeStyle::Clock => format!("idle since {}", time(now_ms - silent.as_millis() as i64)),
        });
    }
    parts.extend(spend);
    if let Some(max) = limits.time_ms {
        parts.push(match times {
            TimeStyle::Elapsed => format!("{} left", whole_seconds(max.saturating_sub(elapsed))),
            TimeStyle::Clock => {
                let until = state
                    .wall_ms
                    .saturating_add_unsigned(max.saturating_sub(state.active_ms));
                format!("at most until {}", time(until))
            }
        });
    }
    if state.consecutive_failures > 0 {
        parts.push(format!(
            "failures {}",
            with_limit(state.consecutive_failures, limits.failures)
        ));
    }
    parts
}

/// Formats the check that is running: ``checking iteration 2/25: `cargo test` ``.
fn checking(state: &State) -> String {
    let when = match state.iteration {
        0 => "preflight".to_owned(),
        number => format!("checking iteration {}", state.iteration_label(number)),
    };
    let check = state.running_check().unwrap_or(0);
    format!(
        "{when}: {}",
        truncate_to_width(&one_line(&event_line::check_command(state, check)), 40)
    )
}

/// Formats a duration without fractions, because the line is redrawn only once a second.
fn whole_seconds(ms: u64) -> String {
    if ms < 1000 {
        "0s".into()
    } else {
        duration(ms / 1000 * 1000)
    }
}

/// Formats the names of resting agents and the remaining time of their rest.
fn resting(state: &State, wall_ms: i64) -> String {
    let left = wall_ms
        .saturating_sub(jiff::Timestamp::now().as_millisecond())
        .max(0) as u64;
    let agents = rest_text::resting_agents(state).unwrap_or_else(|| "resting".into());
    format!("{agents}, {} left", whole_seconds(left + 999))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::engine::Plan;
    use serde_json::json;

    /// Returns a plan without checks.
    pub(in crate::ui) fn plan() -> Plan {
        serde_json::from_value(json!({
            "task": {"title": null, "text": "fix", "file": null},
            "proof": {"checks": [], "preflight": false, "promise": null, "pattern": null, "file": null, "fallback": []},
            "limits": {"iterations": 3, "cost_usd": null, "time_ms": 60_000, "failures": null,
                "iteration_ms": null, "inactivity_ms": null},
            "rest": {"delay_ms": 0, "backoff_ms": 0, "backoff_cap_ms": 0},
            "agent": {"name": "a", "command": ["a"], "prompt": "stdin", "exits": [], "reports_cost": false},
            "context": {"level": "none", "diff_chars": 0, "output_chars": 0, "template": ""},
            "grace": {"term_ms": 0, "marker_ms": 0, "survivor_ms": 0},
            "workspace": "/", "share_workspace": false, "log_cap": 0, "min_free": 0,
        }))
        .unwrap()
    }

    fn line(state: &State, since: u64, silent: Option<u64>, times: TimeStyle) -> String {
        let silent_for = silent.map(Duration::from_secs);
        text(
            "a",
            state,
            LiveStatus {
                since_event: Duration::from_secs(since),
                silent_for,
                spend: vec![],
            },
            times,
        )
    }

    #[test]
    fn a_line_with_clock_times_does_not_change_while_time_passes() {
        let mut state = State::new(plan());
        (state.iteration, state.wall_ms) = (1, jiff::Timestamp::now().as_millisecond());
        let phases = [
            Phase::Running {
                started: true,
                since_ms: 0,
                stop_at_ms: None,
            },
            Phase::Resting {
                until_ms: 30_000,
                wall_ms: None,
            },
            Phase::Draining {
                until_ms: None,
                stop: false,
            },
        ];
        for phase in phases {
            state.phase = phase;
            let early = line(&state, 6, Some(6), TimeStyle::Clock);
            assert_eq!(early, line(&state, 20, Some(20), TimeStyle::Clock));
            assert!(early.contains("idle since"), "{early}");
            assert_ne!(
                line(&state, 6, None, TimeStyle::Elapsed),
                line(&state, 20, None, TimeStyle::Elapsed)
            );
        }
    }

    #[test]
    fn an_idle_agent_is_shown_once() {
        let after = |secs| idle_shown_in(Some(Duration::from_secs(secs)));
        assert_eq!(
            (after(2), after(5), after(9)),
            (Some(Duration::from_secs(3)), None, None)
        );
        assert_eq!(idle_shown_in(None), None);
    }
}
