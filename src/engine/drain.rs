//! Child loops: before a loop ends, it waits for the loops that its agents started. It stops them
//! if the wait times out or if the loop itself is stopped.

use super::event::Request;
use super::state::{Phase, State};

impl State {
    /// Returns the phase that waits for child loops. A loop that is already waiting keeps its
    /// deadline.
    pub(super) fn draining(&self) -> Phase {
        let stop = self.is_hurried();
        if let Phase::Draining {
            until_ms,
            stop: stopping,
        } = self.phase
        {
            return Phase::Draining {
                until_ms,
                stop: stop || stopping,
            };
        }
        let wait = self.plan.grace.children_ms;
        Phase::Draining {
            until_ms: wait.map(|ms| self.clock_ms.saturating_add(ms)),
            stop,
        }
    }

    /// Called when the last child loop has ended. A child loop that was running may have changed
    /// the workspace, so checks and SCM tasks then run again.
    pub(super) fn drained(&mut self, iteration: u32, any_was_running: bool) {
        let Phase::Draining { .. } = self.phase else {
            return;
        };
        if iteration != self.iteration {
            return;
        }
        self.drained = true;
        if any_was_running && !self.is_hurried() && self.fault.is_none() {
            self.restart_scm_tasks();
            self.begin_checks();
        } else {
            self.proceed();
        }
    }

    /// Called when child loops are still running at the time `at` up to which the loop waits for
    /// them. It stops them, but not if it continues itself.
    pub(super) fn drain_timed_out(&mut self, at: u64) {
        if self.continues_after_draining() {
            self.drained = true;
            self.proceed();
        } else {
            self.phase = Phase::Draining {
                until_ms: Some(at),
                stop: true,
            };
        }
    }

    /// Continues after a crash during the wait. Child loops may have changed the workspace since,
    /// so checks and SCM tasks run again.
    pub(super) fn drain_again(&mut self) {
        if self.is_hurried() || self.fault.is_some() {
            self.proceed();
        } else {
            self.restart_scm_tasks();
            self.begin_checks();
        }
    }

    /// Applies a request that arrives while the loop waits for its child loops or stops them.
    pub(super) fn hurry_drain(&mut self) {
        let stopping = matches!(self.phase, Phase::Draining { stop: true, .. });
        match self.request {
            // The child loops are already being stopped. A second immediate request does not wait
            // for them.
            Request::StopNow | Request::PauseNow if stopping => {
                self.drained = true;
                self.proceed();
            }
            Request::Stop | Request::StopNow | Request::PauseNow => self.proceed(),
            Request::Pause if self.continues_after_draining() => self.proceed(),
            Request::Go if stopping => self.reopen(),
            Request::Go | Request::Pause => {}
        }
    }

    /// Returns whether the loop should end without waiting for its child loops.
    fn is_hurried(&self) -> bool {
        self.request.is_stop() || self.request == Request::PauseNow
    }
}
