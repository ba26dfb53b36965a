//! Iterations in which the agent did nothing: what was known before such an iteration stays valid,
//! so its checks need not run again.

use super::event::{AgentReport, CheckReport};
use super::scm::ScmState;
use super::state::{Claims, State};
use serde::{Deserialize, Serialize};

/// What the loop knew about the work when an iteration began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// The iteration whose work it is about.
    iteration: u32,
    /// Whether it is still valid, because the agent has done nothing since.
    in_force: bool,
    checks: Vec<Option<CheckReport>>,
    scm: ScmState,
    claims: Claims,
}

impl State {
    /// Returns a check's latest result: until it has run in the newest iteration, that of an earlier
    /// one. `None` if neither is known.
    pub(crate) fn last_check_report(&self, check: usize) -> Option<&CheckReport> {
        let before = self.previous_verdict.as_ref();
        let before = before.and_then(|before| before.checks.get(check)?.as_ref());
        let now = self.checks.get(check).and_then(Option::as_ref);
        now.or(before)
    }

    /// Returns the iteration that the check results are about: the newest one, or an earlier one if
    /// the agent has done nothing since.
    pub(crate) fn checked_iteration(&self) -> u32 {
        let before = self.previous_verdict.as_ref();
        before
            .filter(|before| before.in_force)
            .map_or(self.iteration, |before| before.iteration)
    }

    /// Saves what is known, before a new iteration replaces it.
    pub(super) fn save_verdict(&mut self) {
        self.previous_verdict = Some(Box::new(Verdict {
            iteration: self.checked_iteration(),
            in_force: false,
            checks: self.checks.clone(),
            scm: self.scm.clone(),
            claims: self.claims.clone(),
        }));
    }

    /// Forgets what was known before the newest iteration, because its work is checked.
    pub(super) fn discard_verdict(&mut self) {
        self.previous_verdict = None;
    }

    /// Returns to what was known before the newest iteration, if its agent did nothing: it was
    /// refunded, called no tool and claimed nothing. Returns whether that is so.
    pub(super) fn restore_verdict(&mut self, refunded: bool, report: &AgentReport) -> bool {
        let is_idle = refunded && report.idle && self.claims == Claims::default();
        let Some(before) = self.previous_verdict.as_deref_mut().filter(|_| is_idle) else {
            return false;
        };
        before.in_force = true;
        self.checks.clone_from(&before.checks);
        self.scm.clone_from(&before.scm);
        self.claims.clone_from(&before.claims);
        true
    }
}
