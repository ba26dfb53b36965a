//! The line below everything else: what goes on right now, and for how long.

use super::rest_text;
use super::rest_text::clock;
use super::status::resting_until;
use super::{event_line, fit, one_line, scm_text};
use crate::engine::format::{duration, of_limit};
use crate::engine::{Phase, State};
use std::time::Duration;

/// How times are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Times {
    /// As they pass: somebody looks on, and the line is renewed every second.
    Passing,
    /// As the clock says: in a window that nobody may look at, a line that stays true need not be renewed.
    Standing,
}

/// Shorter silences are not worth a word.
const SILENCE: Duration = Duration::from_secs(5);

/// How soon an agent that has been silent for so long is silent for long enough.
pub(super) fn silence_shows_in(silent_for: Option<Duration>) -> Option<Duration> {
    silent_for
        .and_then(|silent| SILENCE.checked_sub(silent))
        .filter(|left| !left.is_zero())
}

/// What changes while nothing happens that the journal knows.
pub(super) struct Moment {
    /// How long ago the last event was.
    pub(super) since: Duration,
    /// How long the agent has been silent.
    pub(super) silent_for: Option<Duration>,
    /// What was spent by now.
    pub(super) spent: Vec<String>,
}

/// The words of the line.
pub(super) fn words(name: &str, state: &State, moment: Moment, times: Times) -> String {
    let Moment {
        since,
        silent_for,
        spent,
    } = moment;
    let limits = &state.plan.limits;
    let since_ms = since.as_millis() as u64;
    let now_ms = state.wall_ms.saturating_add_unsigned(since_ms);
    let time = |ms| clock(ms, now_ms);
    let elapsed = state.active_ms + since_ms;
    let standing = times == Times::Standing;
    let mut parts = vec![match &state.phase {
        Phase::Checking => checking(state),
        Phase::Committing => {
            format!(
                "iteration {}: git {}",
                state.iteration,
                scm_text::name(state, state.keeping.reports.len())
            )
        }
        Phase::Killing { .. } => format!("stopping iteration {}", state.iteration),
        Phase::Draining { .. } => "waiting for child loops".into(),
        Phase::Resting { .. } if standing => {
            let who = rest_text::who(state)
                .map(|who| who + ", ")
                .unwrap_or_default();
            format!(
                "{who}resting until {}",
                resting_until(state).map(time).unwrap_or_default()
            )
        }
        Phase::Resting {
            wall_ms: Some(wall_ms),
            ..
        } => waiting(state, *wall_ms),
        Phase::Resting { until_ms, .. } => {
            let left = until_ms.saturating_sub(state.clock_ms + since_ms);
            format!("resting {}", duration(left / 1000 * 1000 + 1000))
        }
        _ => format!("iteration {}", state.place(state.iteration.max(1))),
    }];
    match &state.phase {
        Phase::Resting { .. } if standing => {}
        Phase::Running { started: true, .. } if standing => {
            parts.push(format!(
                "since {}",
                time(state.iteration_wall_ms.unwrap_or(state.wall_ms))
            ));
        }
        _ if standing => parts.push(format!("since {}", time(state.wall_ms))),
        _ => parts.push(whole_seconds(elapsed)),
    }
    if let Some(silent) = silent_for.filter(|silent| *silent >= SILENCE) {
        parts.push(match times {
            Times::Passing => format!("idle {}", duration(silent.as_secs() * 1000)),
            Times::Standing => format!("idle since {}", time(now_ms - silent.as_millis() as i64)),
        });
    }
    parts.extend(spent);
    if let Some(max) = limits.time_ms {
        parts.push(match times {
            Times::Passing => format!("{} left", whole_seconds(max.saturating_sub(elapsed))),
            Times::Standing => {
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
            of_limit(state.consecutive_failures, limits.failures)
        ));
    }
    format!("▸ {name} · {}", parts.join(" · "))
}

/// Which check runs.
fn checking(state: &State) -> String {
    let when = match state.iteration {
        0 => "preflight".to_owned(),
        number => format!("checking iteration {}", state.place(number)),
    };
    let check = state.checks.iter().position(Option::is_none).unwrap_or(0);
    format!(
        "{when}: {}",
        fit(&one_line(&event_line::check_words(state, check)), 40)
    )
}

/// A time that is renewed every second.
fn whole_seconds(ms: u64) -> String {
    if ms < 1000 {
        "0s".into()
    } else {
        duration(ms / 1000 * 1000)
    }
}

/// Who rests until when.
fn waiting(state: &State, wall_ms: i64) -> String {
    let left = wall_ms
        .saturating_sub(jiff::Timestamp::now().as_millisecond())
        .max(0) as u64;
    let who = rest_text::who(state).unwrap_or_else(|| "resting".into());
    format!("{who}, {} left", whole_seconds(left + 999))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Plan;
    use serde_json::json;

    fn plan() -> Plan {
        serde_json::from_value(json!({
            "task": {"title": null, "text": "mend", "file": null},
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

    fn line(state: &State, since: u64, silent: Option<u64>, times: Times) -> String {
        let silent_for = silent.map(Duration::from_secs);
        words(
            "a",
            state,
            Moment {
                since: Duration::from_secs(since),
                silent_for,
                spent: vec![],
            },
            times,
        )
    }

    #[test]
    fn a_standing_line_stays_true_while_time_passes() {
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
            let early = line(&state, 6, Some(6), Times::Standing);
            assert_eq!(early, line(&state, 20, Some(20), Times::Standing));
            assert!(early.contains("idle since"), "{early}");
            assert_ne!(
                line(&state, 6, None, Times::Passing),
                line(&state, 20, None, Times::Passing)
            );
        }
    }

    #[test]
    fn silence_shows_once() {
        let after = |secs| silence_shows_in(Some(Duration::from_secs(secs)));
        assert_eq!(
            (after(2), after(5), after(9)),
            (Some(Duration::from_secs(3)), None, None)
        );
        assert_eq!(silence_shows_in(None), None);
    }
}
