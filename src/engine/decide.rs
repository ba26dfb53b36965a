//! The one place that chooses between an ending, a pause, a rest and another iteration.

use super::event::{Marker, Wish};
use super::fallback::Turn;
use super::outcome::{Limit, Outcome};
use super::state::{Phase, State};

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The loop is over.
    End(Outcome),
    /// Child loops may still be at work.
    Drain,
    /// A person wants a pause.
    Pause,
    /// Not before this time on the loop's clock.
    Rest(u64),
    /// Not before this time on the wall's, in milliseconds since 1970: every agent rests.
    RestAll(i64),
    /// Another iteration, by this agent.
    Run(usize),
}

/// Chooses what comes next. The order of these tests is a contract:
/// stop, done, blocked or waiting, fatal, limit, paused, rest, run. Before an ending, child loops are drained.
pub fn decide(state: &State) -> Next {
    if matches!(state.wish, Wish::Stop | Wish::StopNow) {
        let stopped = Outcome::Stopped {
            by: state.wished_by.word().into(),
        };
        return if state.drained {
            Next::End(stopped)
        } else {
            Next::Drain
        };
    }
    let ending = done(state)
        .or_else(|| given_up(state))
        .or_else(|| fatal(state))
        .or_else(|| used_up(state));
    if let Some(outcome) = ending {
        return match outcome {
            outcome if state.drained => Next::End(outcome),
            // Whoever does not wait for the agent does not wait for child loops. What is done is so after a pause, too.
            Outcome::Done { .. } if state.wish == Wish::PauseNow => Next::Pause,
            _ => Next::Drain,
        };
    }
    if matches!(state.wish, Wish::Pause | Wish::PauseNow) {
        return Next::Pause;
    }
    if state.rest_until_ms > state.clock_ms {
        return Next::Rest(state.rest_until_ms);
    }
    match state.turn() {
        Turn::Of(place) => Next::Run(place),
        Turn::NobodyUntil(wall_ms) => Next::RestAll(wall_ms),
    }
}

/// Done: every check green in the same iteration, and the work claimed or shown.
///
/// Where tasks for green work were asked for, they must have been done as well. One that failed (a hook that
/// complains, a push that is rejected) is the agent's to mend: the loop goes on, and the next prompt says what
/// failed. Otherwise the very iteration that proves the work would lose it without a word.
fn done(state: &State) -> Option<Outcome> {
    let proven = state.all_green() && (state.claimed() || state.shown());
    (proven && state.is_kept()).then_some(Outcome::Done {
        checked: !state.checks.is_empty(),
    })
}

fn given_up(state: &State) -> Option<Outcome> {
    let claims = &state.claims;
    if let Some(why) = &claims.said.blocked {
        return Some(Outcome::Blocked { why: why.clone() });
    }
    if claims.markers.contains(&Marker::Blocked) {
        return Some(Outcome::Blocked {
            why: "BLOCKED marker".into(),
        });
    }
    if let Some(code) = claims.exit_waiting {
        return Some(Outcome::Waiting {
            why: format!("exit {code}"),
        });
    }
    let asked = [(Marker::Wait, "WAIT marker"), (Marker::Bus, "bus")].into_iter();
    let mut asked = asked.filter(|(marker, _)| claims.markers.contains(marker));
    asked
        .next()
        .map(|(_, why)| Outcome::Waiting { why: why.into() })
}

fn fatal(state: &State) -> Option<Outcome> {
    let (class, detail) = state.fault.clone()?;
    Some(Outcome::Fatal { class, detail })
}

fn used_up(state: &State) -> Option<Outcome> {
    let limit = state.reached()?;
    let success =
        limit == Limit::Iterations && state.is_plain() && state.all_green() && state.is_kept();
    Some(Outcome::Limit { limit, success })
}

impl State {
    /// The limit beyond which nothing starts, if one is reached.
    pub fn reached(&self) -> Option<Limit> {
        let limits = &self.plan.limits;
        let reached = [
            (
                Limit::Failures,
                limits.failures.is_some_and(|max| self.failures() >= max),
            ),
            (
                Limit::Cost,
                limits.cost_usd.is_some_and(|max| self.cost_usd >= max),
            ),
            (
                Limit::Tokens,
                limits.tokens.is_some_and(|max| self.tokens.total() >= max),
            ),
            (
                Limit::Time,
                limits.time_ms.is_some_and(|max| self.active_ms >= max),
            ),
            (
                Limit::Iterations,
                limits.iterations.is_some_and(|max| self.counted >= max),
            ),
            (Limit::Blocks, self.is_out_of_blocks()),
        ];
        reached
            .into_iter()
            .find_map(|(limit, reached)| reached.then_some(limit))
    }

    /// Failures of the agent and failures of the tasks for green work are counted apart, each in a row: an agent that
    /// exits well does not excuse a push that is never accepted.
    pub(super) fn failures(&self) -> u32 {
        self.consecutive_failures.max(self.keeping.failures)
    }

    /// Whether every check of the newest iteration has run and is green. True of no checks at all:
    /// whoever asks must ask for a claim as well.
    pub fn all_green(&self) -> bool {
        self.checks.iter().all(|check| {
            check
                .as_ref()
                .is_some_and(super::event::CheckReport::is_green)
        })
    }

    /// Whether the agent gave a signal that was asked for, or the DONE marker, in the newest iteration.
    pub fn claimed(&self) -> bool {
        let (claims, proof) = (&self.claims, &self.plan.proof);
        claims.said.promised
            || (proof.pattern.is_some() && claims.said.matched)
            || (proof.file.is_some() && claims.markers.contains(&Marker::File))
            || claims.markers.contains(&Marker::Done)
    }

    /// Whether green checks alone show the work.
    fn shown(&self) -> bool {
        let proof = &self.plan.proof;
        if proof.explicit() || self.checks.is_empty() {
            return false;
        }
        match self.red_at_start {
            Some(red) => red,
            None => proof.fallback.is_empty(),
        }
    }

    /// Whether nothing can finish this loop but its limit or the DONE marker.
    pub fn is_plain(&self) -> bool {
        let proof = &self.plan.proof;
        !proof.explicit()
            && proof.fallback.is_empty()
            && (proof.checks.is_empty() || self.red_at_start == Some(false))
    }

    /// The promises that count now; the first is the one the prompt asks for.
    pub fn promises(&self) -> Vec<String> {
        let proof = &self.plan.proof;
        match &proof.promise {
            Some(promise) => vec![promise.clone()],
            None if proof.explicit() || self.red_at_start == Some(true) => vec![],
            None => proof.fallback.clone(),
        }
    }

    /// Follows the decision.
    pub(super) fn proceed(&mut self) {
        let next = decide(self);
        if let Next::Run(place) = next {
            self.using = place;
        }
        self.phase = match next {
            Next::End(outcome) => Phase::Ended(outcome),
            Next::Drain => self.draining(),
            Next::Pause => Phase::Paused,
            Next::Rest(until_ms) => Phase::Resting {
                until_ms,
                wall_ms: None,
            },
            Next::RestAll(wall_ms) => {
                let left_ms = wall_ms.saturating_sub(self.wall_ms).max(0) as u64;
                let until_ms = self.clock_ms.saturating_add(left_ms);
                Phase::Resting {
                    until_ms,
                    wall_ms: Some(wall_ms),
                }
            }
            Next::Run(_) => Phase::Running {
                started: false,
                since_ms: self.clock_ms,
                stop_at_ms: None,
            },
        };
    }
}
