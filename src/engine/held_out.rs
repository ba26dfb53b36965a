//! Held-out checks: they run only when all others are green, and the agent learns no more than that
//! one of them failed.

use super::event::CheckReport;
use super::plan::Check;
use super::state::State;

impl State {
    /// Returns the index of the check that runs next; `None` if all have run that are due. While
    /// another check is red, held-out checks are not due.
    pub(crate) fn next_check(&self) -> Option<usize> {
        let next = self.checks.iter().position(Option::is_none)?;
        let is_red = |report: &CheckReport| !report.is_green();
        let is_held_back = self.is_held_out(next) && self.checks.iter().flatten().any(is_red);
        (!is_held_back).then_some(next)
    }

    /// Returns the index of the check that is running or about to, before or after an iteration or
    /// to label it; `None` if none is.
    pub(crate) fn running_check(&self) -> Option<usize> {
        let probed = || self.next_probe().map(|(check, _)| check);
        self.next_check().or_else(probed)
    }

    /// Returns whether no check follows this one if it has this result.
    pub(crate) fn is_last_check(&self, check: usize, report: &CheckReport) -> bool {
        let mut reports = self.checks.iter().flatten().chain([report]);
        let is_red = reports.any(|report| !report.is_green());
        check + 1 == self.checks.len() || (is_red && self.is_held_out(check + 1))
    }

    fn is_held_out(&self, check: usize) -> bool {
        self.plan
            .proof
            .checks
            .get(check)
            .is_some_and(Check::is_held_out)
    }

    /// Returns whether every check of the newest iteration that was due has run.
    pub(crate) fn is_checked(&self) -> bool {
        self.next_check().is_none()
    }

    /// Returns whether a held-out check is red after the newest iteration, or disputed.
    fn is_held_out_red(&self) -> bool {
        let results = self.checks.iter().enumerate();
        let mut red = results.filter_map(|(check, report)| {
            let report = report.as_ref()?;
            (!report.is_green()).then_some(check)
        });
        let mut disputed = self.disputed_checks();
        let is_held_out = |check| self.is_held_out(check);
        self.iteration > 0 && (red.any(is_held_out) || disputed.any(is_held_out))
    }

    /// Counts a failure of a held-out check, of which the agent learns from the next prompt.
    pub(super) fn count_peek(&mut self) {
        self.peeks = self.peeks_used();
    }

    /// Returns how many failures of held-out checks the agent has learned of since the last resume,
    /// or is about to.
    pub(super) fn peeks_used(&self) -> u32 {
        self.peeks.saturating_add(self.is_held_out_red().into())
    }
}
