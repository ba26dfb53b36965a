//! Chooses between ending, pausing, resting and running another iteration. No other code makes this
//! choice.

use super::event::{Marker, Request};
use super::fallback::NextAgent;
use super::limits::Limit;
use super::outcome::{Outcome, WaitReason};
use super::state::{Claims, Phase, State};

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
/// The order of the tests is a contract: stop, done, disputed, blocked or waiting, fatal, limit,
/// pause, rest, run. Before any ending, child loops are drained.
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
    if let Some(outcome) = ending(state) {
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
    if state.has_refuted_claim() && !state.drained {
        // A child loop may be about to turn the check green. No iteration is paid for until it has
        // ended and the checks have run again.
        return Decision::Drain;
    }
    if state.rest_until_ms > state.clock_ms {
        return Decision::Rest(state.rest_until_ms);
    }
    match state.next_agent() {
        NextAgent::Use(index) => Decision::Run(index),
        NextAgent::AllRestingUntil(wall_ms) => Decision::RestUntil(wall_ms),
    }
}

/// Returns the outcome with which the loop ends unless a person asks for something else; `None` if
/// it continues.
fn ending(state: &State) -> Option<Outcome> {
    done(state)
        .or_else(|| state.disputed())
        .or_else(|| blocked_or_waiting(state))
        .or_else(|| fatal(state))
        .or_else(|| limit_reached(state))
}

/// Returns `Done` if the work is [proven](State::done_basis), the second look agrees and the SCM
/// tasks have succeeded.
///
/// If an SCM task fails (a commit hook complains, a push is rejected), the loop continues and the
/// next prompt says what failed. Otherwise the work could be lost although the loop ended as done.
fn done(state: &State) -> Option<Outcome> {
    state.done_basis()?;
    (state.passes_look() && state.scm_tasks_succeeded()).then_some(Outcome::Done {
        checked: !state.checks.is_empty(),
    })
}

fn blocked_or_waiting(state: &State) -> Option<Outcome> {
    let claims = &state.claims;
    if let Some(why) = claims.blocked() {
        return Some(Outcome::Blocked { why });
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
    if limit == Limit::Stalls {
        return Some(Outcome::Stalled);
    }
    let success = limit == Limit::Iterations
        && state.is_plain()
        && state.all_green()
        && state.scm_tasks_succeeded();
    Some(Outcome::Limit { limit, success })
}

impl Claims {
    /// Returns why the agent is blocked, in its final message or its marker; `None` if it does not
    /// say that it is.
    pub(super) fn blocked(&self) -> Option<String> {
        let marker = self.markers.contains(&Marker::Blocked).then(|| {
            let text = self.marker_texts.get(&Marker::Blocked).cloned();
            text.unwrap_or_else(|| "BLOCKED marker".into())
        });
        self.signals.blocked.clone().or(marker)
    }
}

impl State {
    /// Returns what the agent said against the ending of a loop that is done: that it is blocked, or
    /// asks to wait. `None` if it said neither, or if the loop is not done.
    pub(crate) fn overruled_claim(&self) -> Option<String> {
        let Outcome::Done { .. } = self.outcome()? else {
            return None;
        };
        Some(match blocked_or_waiting(self)? {
            Outcome::Blocked { why } => format!("the agent also said that it is blocked: {why}"),
            waiting => waiting.summary().detail,
        })
    }

    /// Returns the number of consecutive failures that count against the limit.
    ///
    /// Failures of the agent and of the SCM tasks are counted separately: an agent that exits with
    /// 0 does not reset the count of a push that is always rejected.
    pub(super) fn failures(&self) -> u32 {
        self.consecutive_failures.max(self.scm.failures)
    }

    /// Returns whether the agent claims that the task is done, but a check is red. Under the first
    /// rules, such a claim was ignored.
    fn has_refuted_claim(&self) -> bool {
        !self.plan.has_first_rules() && self.is_claimed() && !self.all_green()
    }

    /// Returns whether the loop waits for its child loops only because of a claim over a red check,
    /// and continues afterwards.
    pub(super) fn continues_after_draining(&self) -> bool {
        self.has_refuted_claim() && !self.request.is_stop() && ending(self).is_none()
    }

    /// Returns whether another iteration follows unless the checks prove the work done.
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
