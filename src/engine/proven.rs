//! Decides whether the work is proven done, by the rules under which the loop was created.

use super::event::{CheckReport, Marker};
use super::iteration::IterationEnd;
use super::plan::Signal;
use super::state::State;

/// Why the work counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The agent claimed it, and every check is green.
    Claim,
    /// The iteration began and ended with green checks, and changed nothing.
    NothingLeft,
    /// Every check is green, and no claim is needed.
    GreenChecks,
    /// Every check was green before the first iteration, and no claim is needed.
    GreenAtStart,
}

impl Basis {
    /// Describes the proof of a loop with checks, for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Claim | Self::GreenChecks => "every check is green",
            Self::NothingLeft => "every check is green, and the agent found nothing left to do",
            Self::GreenAtStart => "every check was green already: nothing to do",
        }
    }
}

impl State {
    /// Returns why the work counts as done; `None` if it does not.
    ///
    /// Every check must be green in the same iteration, and the agent must claim that the whole
    /// task is done. An iteration that had nothing left to do counts as a claim.
    pub(crate) fn done_basis(&self) -> Option<Basis> {
        if !self.all_green() || self.has_refused_checks() {
            None
        } else if self.is_claimed() {
            Some(Basis::Claim)
        } else if self.plan.has_first_rules() {
            self.is_proven_by_first_rules()
                .then_some(Basis::GreenChecks)
        } else if self.plan.proof.until_green {
            self.basis_without_claim()
        } else {
            self.has_nothing_left().then_some(Basis::NothingLeft)
        }
    }

    /// Returns whether every check of the newest iteration has run and is green. This is true if
    /// there are no checks, so callers must test for a claim as well.
    pub(crate) fn all_green(&self) -> bool {
        self.checks
            .iter()
            .all(|check| check.as_ref().is_some_and(CheckReport::is_green))
    }

    /// Returns whether the agent gave a signal that the plan asks for, or left the DONE marker, in
    /// the newest iteration.
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

    /// Returns the basis for a loop that asks for no claim. Checks that turned green although the
    /// working tree is unchanged (a flaky test, restored dependencies) prove nothing.
    fn basis_without_claim(&self) -> Option<Basis> {
        if self.checks.is_empty() {
            None
        } else if self.iteration == 0 {
            Some(Basis::GreenAtStart)
        } else {
            (!self.is_unchanged()).then_some(Basis::GreenChecks)
        }
    }

    /// Returns whether the newest iteration counts as a claim because it had nothing left to do: it
    /// began and ended with green checks, succeeded, and changed nothing, although the loop has
    /// changed something since its start. Only git can tell, and an explicit signal outweighs it.
    fn has_nothing_left(&self) -> bool {
        let content = &self.content;
        let claims = &self.claims;
        let succeeded = self.recent.back().is_some_and(|last| {
            last.number == self.iteration
                && last.end == IterationEnd::Exited
                && last.exit.is_success()
                && last.reason.is_none()
                && last.denied == 0
        });
        self.plan.proof.signals.is_empty()
            && self.began_green
            && succeeded
            && claims.signals.blocked.is_none()
            // "I will not promise that yet."
            && !claims.signals.promise_in_sentence
            && claims.markers.is_empty()
            && claims.exit_waiting.is_none()
            && content.now.is_some()
            && content.now == content.before
            && content.start.is_some()
            && content.now != content.start
    }

    /// Returns whether the working tree is known to have its content from the loop's start. If its
    /// content could not be determined after the newest iteration, it counts as unchanged.
    fn is_unchanged(&self) -> bool {
        let content = &self.content;
        content.start.is_some() && (content.now.is_none() || content.now == content.start)
    }

    /// Returns whether all checks of the newest iteration are green, but the loop still waits for a
    /// claim.
    pub(crate) fn is_green_without_claim(&self) -> bool {
        !self.plan.has_first_rules()
            && !self.checks.is_empty()
            && self.all_green()
            && self.done_basis().is_none()
    }

    /// Returns whether checks turned green although nothing has changed since the loop's start, in
    /// a loop that otherwise needs no claim.
    pub(crate) fn is_green_without_change(&self) -> bool {
        self.plan.proof.until_green && self.is_green_without_claim()
    }

    /// Returns whether the loop is plain: only its limit or the DONE marker can end it
    /// successfully.
    pub(crate) fn is_plain(&self) -> bool {
        let proof = &self.plan.proof;
        let is_guarded = self.plan.has_first_rules() && self.red_at_start == Some(false);
        proof.signals.is_empty()
            && proof.fallback.is_empty()
            && (proof.checks.is_empty() || is_guarded)
    }

    /// Returns the promises that count now. The prompt asks for the first.
    pub(crate) fn promises(&self) -> Vec<String> {
        let proof = &self.plan.proof;
        let is_proven_by_checks = self.plan.has_first_rules() && self.red_at_start == Some(true);
        match proof.promise() {
            Some(promise) => vec![promise.to_owned()],
            None if !proof.signals.is_empty() || is_proven_by_checks => vec![],
            None => proof.fallback.clone(),
        }
    }

    /// Returns the signals that the prompt asks for: the explicit ones, or else the first fallback
    /// promise that counts. A loop that needs no claim asks for one only after checks turned green
    /// without a change.
    pub(crate) fn expected_signals(&self) -> Vec<Signal> {
        let proof = &self.plan.proof;
        if !proof.signals.is_empty() {
            return proof.signals.clone();
        }
        if proof.until_green && !self.claim_needed {
            return vec![];
        }
        let promise = self.promises().into_iter().next();
        promise.map(Signal::Promise).into_iter().collect()
    }

    /// Returns the promise that the prompt asks for; `None` if it asks for none.
    pub(crate) fn expected_promise(&self) -> Option<String> {
        self.expected_signals()
            .into_iter()
            .find_map(|signal| match signal {
                Signal::Promise(text) => Some(text),
                Signal::Pattern(_) | Signal::File(_) => None,
            })
    }

    /// Returns whether green checks prove the work without a claim, by the rules of journals that
    /// name none: the checks were red before the first iteration, or no claim is asked for.
    fn is_proven_by_first_rules(&self) -> bool {
        let proof = &self.plan.proof;
        if !proof.signals.is_empty() || self.checks.is_empty() {
            return false;
        }
        match self.red_at_start {
            Some(red) => red,
            None => proof.fallback.is_empty(),
        }
    }
}
