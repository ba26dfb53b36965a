//! Why a loop came to no good end, and what a person would do about it.

use super::one_line;
use super::scm_text;
use crate::engine::plan::Approve;
use crate::engine::signals::fold;
use crate::engine::{Limit, Outcome, Phase, State, Status};
use crate::store::Header;

/// What the agent would have had to say, or what stood against its word; none if only checks were red.
pub fn missing(state: &State) -> Option<String> {
    match state.outcome()? {
        Outcome::Limit { success: false, .. } if !state.is_kept() => {
            return scm_text::owed(state).map(|owed| format!("the checks are green, but {owed}"));
        }
        Outcome::Limit {
            limit: Limit::Iterations | Limit::Cost | Limit::Tokens | Limit::Time | Limit::Blocks,
            success: false,
        } => {}
        _ => return None,
    }
    let (green, proof) = (state.all_green(), &state.plan.proof);
    if state.claimed() && !green {
        return Some("the agent claimed it, but not every check was green".into());
    }
    let but = if green && !proof.checks.is_empty() {
        "the checks are green, but "
    } else {
        ""
    };
    if state.claims.said.promise_in_sentence {
        return Some(format!(
            "{but}the promise stood inside a sentence, where it may be a denial"
        ));
    }
    let promise = state
        .promises()
        .first()
        .map(|promise| format!("promise {}", fold(promise)));
    let pattern = proof
        .pattern
        .as_ref()
        .map(|pattern| format!("print a line that matches `{pattern}`"));
    let file = proof
        .file
        .as_ref()
        .map(|file| format!("create {}", file.display()));
    let signals: Vec<String> = [promise, pattern, file].into_iter().flatten().collect();
    (green && !signals.is_empty())
        .then(|| format!("{but}the agent did not {}", signals.join(" or ")))
}

/// What the agent of a loop that failed said last, line by line; none if it did not fail by its own doing.
pub fn last_words(state: &State) -> Vec<String> {
    let last = state
        .recent
        .back()
        .filter(|_| state.status(false) == Status::Failed);
    let words = last
        .and_then(|last| last.error.as_deref())
        .unwrap_or_default();
    words
        .lines()
        .map(one_line)
        .filter(|line| !line.is_empty())
        .collect()
}

/// What the agent was not allowed of late, and what would allow more.
pub fn denied(state: &State) -> Option<String> {
    let times = state
        .recent
        .iter()
        .fold(0, |sum: u32, last| sum.saturating_add(last.denied));
    let first = state
        .recent
        .iter()
        .find_map(|last| last.denial.as_deref())?;
    let more = match state.agent().approve {
        Some(Approve::None) => "; --approve edits lets it change files",
        Some(Approve::Edits) => "; --approve all lets it do everything",
        Some(Approve::All) => "",
        None => "; what it may do is for its own command to say",
    };
    let times = if times == 1 {
        "once".into()
    } else {
        format!("{times} times, first")
    };
    Some(format!("{times}: {first}{more}"))
}

/// What a person would do now, if there is anything to be done.
pub fn advice(header: &Header, state: &State, held: bool) -> Option<String> {
    (state.status(held) != Status::Done).then(|| next_step(header, state, held))?
}

/// What makes a loop go on.
pub fn next_step(header: &Header, state: &State, held: bool) -> Option<String> {
    let name = &header.name;
    let resume = format!("ralph resume {name}");
    if let Some(session) = state.plan.session.as_ref().filter(|_| state.is_inside()) {
        let back = match &session.client[..] {
            "codex" => format!("codex resume {}", session.id),
            client => format!("{client} --resume {}", session.id),
        };
        match state.status(held) {
            Status::Running => {
                return Some(format!(
                    "cancel-ralph in its session, or ralph stop {name}, ends it"
                ));
            }
            Status::Crashed => {
                return Some(format!(
                    "{back} and a word there goes on in the session; {resume} goes on outside, each time with a fresh context"
                ));
            }
            _ => {}
        }
    }
    Some(match (state.status(held), state.outcome()) {
        (Status::Running, _)
            if matches!(
                state.phase,
                Phase::Resting {
                    wall_ms: Some(_),
                    ..
                }
            ) =>
        {
            format!("{resume} --now tries at once")
        }
        (Status::Running, _) => format!("ralph logs {name} -f"),
        (Status::Blocked, _) => format!("{resume} --answer \"…\""),
        (_, Some(Outcome::Limit { limit, .. })) => match limit_raised(*limit, state) {
            Some(limit) => format!("ralph set {name} {limit} && {resume}"),
            None => resume,
        },
        (Status::Done, _) => return None,
        _ => resume,
    })
}

/// A limit that was reached, at twice its value, or at as much as there must be.
pub fn limit_raised(limit: Limit, state: &State) -> Option<String> {
    let limits = &state.plan.limits;
    Some(match limit {
        Limit::Failures | Limit::Blocks => return None,
        Limit::Iterations => {
            let max = limits.iterations?.saturating_mul(2).max(state.counted + 1);
            format!("max-iterations={max}")
        }
        Limit::Cost => {
            let cents = (limits.cost_usd?.max(state.cost_usd) * 200.0).ceil();
            format!("max-cost={:.2}", cents / 100.0)
        }
        Limit::Tokens => {
            format!(
                "max-tokens={}",
                limits.tokens?.max(state.tokens.total()).saturating_mul(2)
            )
        }
        Limit::Time => {
            let seconds = (limits.time_ms? / 500).max(state.active_ms / 1000 + 1);
            let typed = match seconds {
                hours if hours.is_multiple_of(3600) => format!("{}h", hours / 3600),
                minutes if minutes.is_multiple_of(60) => format!("{}m", minutes / 60),
                seconds => format!("{seconds}s"),
            };
            format!("max-time={typed}")
        }
    })
}
