//! Chooses between ending, pausing, resting and running another iteration. No other code makes this
//! choice.

use super::event::{CheckReport, Marker, Request};
use super::fallback::NextAgent;
use super::limits::Limit;
use super::outcome::{Outcome, WaitReason};
use super::plan::Signal;
use super::state::{Phase, State};

/// The loop's next action, chosen by [`decide`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// End the loop with this outcome.
    End(Outcome),
    /// Wait for child loops, or stop them, before ending.
    Drain,
    /// Pause until a person resumes the loop.
    Pause,
    /// Rest until this time on the loop's clock, in milliseconds.
    Rest(u64),
    /// Rest until this wall-clock time, in milliseconds since 1970, because every agent is at a
    /// limit.
    RestUntil(i64),
    /// Run another iteration with the agent at this index.
    Run(usize),
}

/// Decides what the loop does next, between iterations.
///
/// The order of the tests is a contract: stop, done, blocked or waiting, fatal, limit, pause, rest,
/// run. Before any ending, child loops are drained.
pub(crate) fn decide(state: &State) -> Decision {
    if state.request.is_stop() {
        let stopped = Outcome::Stopped {
            by: state.requested_by,
        };
        return if state.drained {
            Decision::End(stopped)
        } else {
            Decision::Drain
        };
    }
    let ending = done(state)
        .or_else(|| blocked_or_waiting(state))
        .or_else(|| fatal(state))
        .or_else(|| limit_reached(state));
    if let Some(outcome) = ending {
        return match outcome {
            outcome if state.drained => Decision::End(outcome),
            // An immediate pause does not wait for child loops. The loop is still done when it
            // resumes.
            Outcome::Done { .. } if state.request == Request::PauseNow => Decision::Pause,
            _ => Decision::Drain,
        };
    }
    if matches!(state.request, Request::Pause | Request::PauseNow) {
        return Decision::Pause;
    }
    if state.rest_until_ms > state.clock_ms {
        return Decision::Rest(state.rest_until_ms);
    }
    match state.next_agent() {
        NextAgent::Use(index) => Decision::Run(index),
        NextAgent::AllRestingUntil(wall_ms) => Decision::RestUntil(wall_ms),
    }
}

/// Returns `Done` if every check is green in the same iteration, and the work is claimed or proven
/// by the checks.
///
/// SCM tasks must have succeeded too. If one fails (a commit hook complains, a push is rejected),
/// the loop continues and the next prompt describes the failure. Otherwise the work could be lost
/// although the loop ended as done.
fn done(state: &State) -> Option<Outcome> {
    let proven = state.all_green() && (state.is_claimed() || state.is_proven_by_checks());
    (proven && state.scm_tasks_succeeded()).then_some(Outcome::Done {
        checked: !state.checks.is_empty(),
    })
}

fn blocked_or_waiting(state: &State) -> Option<Outcome> {
    let claims = &state.claims;
    if let Some(why) = &claims.signals.blocked {
        return Some(Outcome::Blocked { why: why.clone() });
    }
    if claims.markers.contains(&Marker::Blocked) {
        return Some(Outcome::Blocked {
            why: "BLOCKED marker".into(),
        });
    }
    if let Some(code) = claims.exit_waiting {
        return Some(Outcome::Waiting {
            why: WaitReason::Exit(code),
        });
    }
    [
        (Marker::Wait, WaitReason::Marker),
        (Marker::Bus, WaitReason::Bus),
    ]
    .into_iter()
    .find(|(marker, _)| claims.markers.contains(marker))
    .map(|(_, why)| Outcome::Waiting { why })
}

fn fatal(state: &State) -> Option<Outcome> {
    let (class, detail) = state.fault.clone()?;
    Some(Outcome::Fatal { class, detail })
}

fn limit_reached(state: &State) -> Option<Outcome> {
    let limit = state.reached_limit()?;
    let success = limit == Limit::Iterations
        && state.is_plain()
        && state.all_green()
        && state.scm_tasks_succeeded();
    Some(Outcome::Limit { limit, success })
}

impl State {
    /// Returns the number of consecutive failures that count against the limit.
    ///
    /// Failures of the agent and of the SCM tasks are counted separately: an agent that exits with
    /// 0 does not reset the count of a push that is always rejected.
    pub(super) fn failures(&self) -> u32 {
        self.consecutive_failures.max(self.scm.failures)
    }

    /// Returns whether every check of the latest iteration has run and is green. The result is also
    /// true if there are no checks, so callers must test for a claim as well.
    pub(crate) fn all_green(&self) -> bool {
        self.checks
            .iter()
            .all(|check| check.as_ref().is_some_and(CheckReport::is_green))
    }

    /// Returns whether the agent claimed, in the latest iteration, that the task is done: it gave a
    /// signal that the plan asks for, or left the DONE marker.
    pub(crate) fn is_claimed(&self) -> bool {
        let claims = &self.claims;
        // `promised` is set only for a promise that counted when the agent's message was read.
        claims.signals.promised
            || claims.markers.contains(&Marker::Done)
            || self
                .plan
                .proof
                .signals
                .iter()
                .any(|signal| signal.is_given(claims))
    }

    /// Returns whether green checks prove the work without a claim: the checks were red before the
    /// first iteration, or the plan asks for no claim.
    fn is_proven_by_checks(&self) -> bool {
        let proof = &self.plan.proof;
        if !proof.signals.is_empty() || self.checks.is_empty() {
            return false;
        }
        match self.red_at_start {
            Some(red) => red,
            None => proof.fallback.is_empty(),
        }
    }

    /// Returns whether another iteration follows unless the checks prove that the work is done.
    pub(crate) fn will_continue(&self) -> bool {
        let is_over = matches!(
            self.phase,
            Phase::Ended(_) | Phase::Paused | Phase::Draining { .. }
        );
        self.request == Request::Go
            && !is_over
            && self.fault.is_none()
            && self.reached_limit().is_none()
    }

    /// Returns whether the loop is plain: only its iteration limit or the DONE marker can end it
    /// successfully.
    pub(crate) fn is_plain(&self) -> bool {
        let proof = &self.plan.proof;
        proof.signals.is_empty()
            && proof.fallback.is_empty()
            && (proof.checks.is_empty() || self.red_at_start == Some(false))
    }

    /// Returns the promises that count now. The prompt asks for the first one.
    pub(crate) fn promises(&self) -> Vec<String> {
        let proof = &self.plan.proof;
        match proof.promise() {
            Some(promise) => vec![promise.to_owned()],
            None if !proof.signals.is_empty() || self.red_at_start == Some(true) => vec![],
            None => proof.fallback.clone(),
        }
    }

    /// Returns the signals that the prompt asks for: the explicit ones, or else the first fallback
    /// promise that counts.
    pub(crate) fn expected_signals(&self) -> Vec<Signal> {
        let explicit = &self.plan.proof.signals;
        if explicit.is_empty() {
            let promise = self.promises().into_iter().next();
            promise.map(Signal::Promise).into_iter().collect()
        } else {
            explicit.clone()
        }
    }

    /// Enters the phase that [`decide`] chooses.
    pub(super) fn proceed(&mut self) {
        self.phase = match decide(self) {
            Decision::End(outcome) => Phase::Ended(outcome),
            Decision::Drain => self.draining(),
            Decision::Pause => Phase::Paused,
            Decision::Rest(until_ms) => Phase::Resting {
                until_ms,
                wall_ms: None,
            },
            Decision::RestUntil(wall_ms) => {
                let left_ms = wall_ms.saturating_sub(self.wall_ms).max(0) as u64;
                Phase::Resting {
                    until_ms: self.clock_ms.saturating_add(left_ms),
                    wall_ms: Some(wall_ms),
                }
            }
            Decision::Run(agent) => {
                self.agent_index = agent;
                Phase::Running {
                    started: false,
                    since_ms: self.clock_ms,
                    stop_at_ms: None,
                }
            }
        };
    }
}
