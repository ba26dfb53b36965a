//! What becomes of child loops: none outlives a loop that ends. They are waited for, and stopped if that takes too
//! long or if the loop itself is stopped.

use super::event::Wish;
use super::state::{Phase, State};

impl State {
    /// Waits for child loops, or goes on waiting for them.
    pub(super) fn draining(&self) -> Phase {
        let stop = self.is_hurried();
        if let Phase::Draining {
            until_ms,
            stop: before,
        } = self.phase
        {
            return Phase::Draining {
                until_ms,
                stop: stop || before,
            };
        }
        let wait = self.plan.grace.children_ms;
        Phase::Draining {
            until_ms: wait.map(|ms| self.clock_ms.saturating_add(ms)),
            stop,
        }
    }

    /// No child loop is left. What one that was left did may have undone the proof, or be the proof: the checks look
    /// once more, and what it did is kept.
    pub(super) fn drained(&mut self, iteration: u32, any_was_left: bool) {
        let Phase::Draining { .. } = self.phase else {
            return;
        };
        if iteration != self.iteration {
            return;
        }
        self.drained = true;
        if any_was_left && !self.is_hurried() && self.fault.is_none() {
            self.keep_again();
            self.begin_checks();
        } else {
            self.proceed();
        }
    }

    /// A runner was killed while it waited: nobody knows what child loops have done since.
    pub(super) fn drain_again(&mut self) {
        if self.is_hurried() || self.fault.is_some() {
            self.proceed();
        } else {
            self.keep_again();
            self.begin_checks();
        }
    }

    /// A person wants something while child loops are waited for, or stopped.
    pub(super) fn hurry_drain(&mut self) {
        let stopping = matches!(self.phase, Phase::Draining { stop: true, .. });
        match self.wish {
            // They have been told to stop, and this person does not wait for it.
            Wish::StopNow | Wish::PauseNow if stopping => {
                self.drained = true;
                self.proceed();
            }
            Wish::Stop | Wish::StopNow | Wish::PauseNow => self.proceed(),
            Wish::Go if stopping => self.reopen(),
            Wish::Go | Wish::Pause => {}
        }
    }

    /// Whether a person wants an end more than what child loops would still bring.
    fn is_hurried(&self) -> bool {
        matches!(self.wish, Wish::Stop | Wish::StopNow | Wish::PauseNow)
    }
}
