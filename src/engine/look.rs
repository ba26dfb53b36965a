//! The second look: before a loop counts as done, its checks run again by the tests and settings
//! that the loop began with.
//!
//! The runner first surveys what has been touched since the start. If that includes files that can
//! turn a check green without the work being done, the checks run again in a view of the workspace
//! that has these files as they were. A check that is green for the agent and red in the view is
//! disputed: the agent is told once, and after that a person decides.

use super::Effect;
use super::event::{CheckReport, is_default};
use super::outcome::Outcome;
use super::prompt::describe_red_check;
use super::state::{Phase, State};
use super::test_counts::TestCounts;
use super::test_names::RecordedTests;
use super::touched::TouchedFiles;
use serde::{Deserialize, Serialize};

/// Maximum number of files that a message names.
pub(super) const NAMED_MAX: usize = 10;

/// When the checks run again before the loop counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecondLook {
    /// If files were touched that can turn a check green.
    Auto,
    Always,
    /// Never. Journals of earlier versions have no second look.
    #[default]
    Never,
}

/// The state of the second look at the newest iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LookState {
    /// The digest of the recorded tests and settings that the loop began with; `None` if there is no
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) baseline: Option<String>,
    /// What the survey found; `None` before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) touched: Option<TouchedFiles>,
    /// Why there was no look although one was due; `None` if nothing prevented it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// Why the view may still show what it should hide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) weaknesses: Vec<String>,
    /// The result of the setup command in the view; `None` if it has not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) setup: Option<CheckReport>,
    /// The results of the checks in the view, in the plan's order; `None` for a check that has not
    /// run there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The numbers of tests before the first iteration, in the plan's order; empty without preflight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    start_tests: Vec<Option<TestCounts>>,
    /// Where the names of the tests before the first iteration are recorded, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    start_names: Vec<Option<RecordedTests>>,
    /// Whether the newest iteration's prompt contained the dispute of an earlier one.
    #[serde(default, skip_serializing_if = "is_default")]
    told: bool,
    /// Globs of files whose change a person has accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) accepted: Vec<String>,
    /// Whether a person has accepted changes since the last look.
    #[serde(default, skip_serializing_if = "is_default")]
    is_outdated: bool,
}

impl LookState {
    /// Returns why the original tests could not be asked; `None` if they could.
    pub(super) fn reason_against(&self) -> Option<String> {
        let mut unknown = self.touched.iter().flat_map(|touched| &touched.unknown);
        self.failure.clone().or_else(|| unknown.next().cloned())
    }

    /// Returns whether tests were deleted together with a source. No view can put them back.
    fn has_lost_tests(&self) -> bool {
        let touched = self.touched.as_ref();
        touched.is_some_and(|touched| !touched.lost_tests.is_empty())
    }

    /// Discards the findings, because files may have changed since.
    pub(super) fn discard(&mut self) {
        self.is_outdated = false;
        self.touched = None;
        self.failure = None;
        self.weaknesses.clear();
        self.setup = None;
        self.checks.clear();
    }
}

/// What the second look has found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookVerdict {
    /// No look is needed at this point.
    NotDue,
    /// The runner has to survey the files.
    Survey,
    /// The setup command has to run in the view.
    SetUp,
    /// The check at this index has to run in the view.
    Recheck(usize),
    /// Nothing was touched that can turn a check green.
    Untouched,
    /// Every check is green in the view too.
    Agreed,
    /// No view could be made, in a client session: its person is present and can judge.
    Skipped,
    /// A check is green for the agent and red in the view, or no view could be made.
    Disputed,
}

impl State {
    /// Returns what the second look has found so far.
    pub(crate) fn look_verdict(&self) -> LookVerdict {
        let mode = self.plan.proof.second_look;
        let look = &self.look;
        if self.is_sealed() {
            return self.sealed_verdict();
        }
        if mode == SecondLook::Never || !self.is_graded_for_good() {
            return LookVerdict::NotDue;
        }
        if look.reason_against().is_some() {
            return if self.is_in_session() {
                LookVerdict::Skipped
            } else {
                LookVerdict::Disputed
            };
        }
        let Some(touched) = &look.touched else {
            return LookVerdict::Survey;
        };
        let is_suspicious = !touched.is_sources_only() || self.has_shortfall(&self.checks);
        if mode == SecondLook::Auto && !is_suspicious {
            return LookVerdict::Untouched;
        }
        if self.is_setup_due() {
            return LookVerdict::SetUp;
        }
        match look.checks.iter().position(Option::is_none) {
            Some(_) if self.is_setup_red() => LookVerdict::Disputed,
            Some(check) => LookVerdict::Recheck(check),
            None if self.has_red_recheck() => LookVerdict::Disputed,
            None if self.look.has_lost_tests() => LookVerdict::Disputed,
            None => LookVerdict::Agreed,
        }
    }

    /// Returns whether the checks of the newest iteration run in a view from the beginning.
    pub(crate) fn is_sealed(&self) -> bool {
        self.plan.proof.sealed && self.iteration > 0
    }

    /// Returns the verdict if the checks that count have run in the view themselves.
    fn sealed_verdict(&self) -> LookVerdict {
        let look = &self.look;
        let touched = look.touched.as_ref();
        let is_changed = touched.is_some_and(|touched| !touched.is_sources_only());
        let is_graded = self.is_graded_for_good();
        if look.reason_against().is_some() {
            // In a session, a person is present and can judge.
            match (self.is_in_session(), is_graded) {
                (true, true) => LookVerdict::Skipped,
                (true, false) => LookVerdict::NotDue,
                (false, _) => LookVerdict::Disputed,
            }
        } else if self.is_setup_red()
            || (is_changed && self.has_red_check() && self.claims.signals.changed.is_some())
        {
            // The agent says that the task requires the change. A person decides.
            LookVerdict::Disputed
        } else if is_graded && look.has_lost_tests() {
            LookVerdict::Disputed
        } else if is_graded && touched.is_some() {
            if self.has_shortfall(&self.checks) {
                LookVerdict::Disputed
            } else {
                LookVerdict::Agreed
            }
        } else {
            LookVerdict::NotDue
        }
    }

    pub(super) fn has_red_check(&self) -> bool {
        self.checks
            .iter()
            .flatten()
            .any(|report| !report.is_green())
    }

    /// Returns the step that prepares the view before the checks of a sealed loop run in it; `None`
    /// if none is due.
    pub(super) fn due_seal(&self) -> Option<Effect> {
        let iteration = self.iteration;
        let is_due = self.is_sealed() && self.phase == Phase::Checking;
        if !is_due || self.look.reason_against().is_some() {
            None
        } else if self.look.touched.is_none() {
            Some(Effect::Survey { iteration })
        } else {
            self.is_setup_due().then_some(Effect::SetUp { iteration })
        }
    }

    fn is_setup_due(&self) -> bool {
        self.plan.proof.setup.is_some() && self.look.setup.is_none()
    }

    fn is_setup_red(&self) -> bool {
        let setup = self.look.setup.as_ref();
        setup.is_some_and(|report| !report.is_green())
    }

    /// Returns in what way a check proves less than it did at the start; `None` if it proves as
    /// much.
    pub(crate) fn shortfall(&self, check: usize, report: &CheckReport) -> Option<String> {
        // Other tests are no surprise where the task, or a person, allows to change them.
        let touched = self.look.touched.as_ref();
        let is_allowed = touched.is_some_and(|touched| !touched.allowed.is_empty())
            || !self.look.accepted.is_empty();
        let start = self.start_tests(check).filter(|_| !is_allowed);
        let missing = report.missing_tests.as_ref().filter(|_| !is_allowed);
        let failed = report.tests.and_then(TestCounts::failures);
        failed
            .or_else(|| missing.map(|missing| missing.describe(super::display::code_span)))
            .or_else(|| TestCounts::shortfall(report.tests, start?))
    }

    /// Returns the number of tests that a check ran before the first iteration; `None` if it is
    /// unknown.
    pub(crate) fn start_tests(&self, check: usize) -> Option<TestCounts> {
        self.look.start_tests.get(check).copied().flatten()
    }

    /// Returns where the names of the tests that a check ran before the first iteration are
    /// recorded; `None` if they are unknown.
    pub(crate) fn start_names(&self, check: usize) -> Option<&RecordedTests> {
        self.look.start_names.get(check)?.as_ref()
    }

    fn has_shortfall(&self, checks: &[Option<CheckReport>]) -> bool {
        let results = checks.iter().enumerate();
        let mut results = results.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        results.any(|(check, report)| self.shortfall(check, report).is_some())
    }

    fn has_red_recheck(&self) -> bool {
        self.red_in_view().next().is_some()
    }

    /// Returns the results of the checks in the view, in the plan's order.
    pub(super) fn view_results(&self) -> &[Option<CheckReport>] {
        if self.is_sealed() {
            &self.checks
        } else {
            &self.look.checks
        }
    }

    /// Returns the checks that are red in the view, with the reason.
    pub(super) fn red_in_view(&self) -> impl Iterator<Item = (usize, String)> {
        let results = self.view_results().iter().enumerate();
        let results = results.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        results.filter_map(|(check, report)| {
            if !report.is_green() {
                return Some((check, describe_red_check(report)));
            }
            Some((check, self.shortfall(check, report)?))
        })
    }

    /// Returns the checks that the agent learns are disputed.
    pub(super) fn disputed_checks(&self) -> impl Iterator<Item = usize> {
        let is_disputed =
            self.look.reason_against().is_none() && self.look_verdict() == LookVerdict::Disputed;
        let red = self.red_in_view().filter(move |_| is_disputed);
        red.map(|(check, _)| check)
    }

    /// Remembers the tests before the first iteration.
    pub(super) fn count_tests_at_start(&mut self) {
        let reports = self.checks.iter().map(Option::as_ref);
        self.look.start_tests = reports.map(|report| report?.tests).collect();
        let reports = self.checks.iter().map(Option::as_ref);
        let names = reports.map(|report| report?.recorded_tests.clone());
        self.look.start_names = names.collect();
    }

    /// Returns whether the second look lets the loop end as done, and its SCM tasks run.
    pub(super) fn passes_look(&self) -> bool {
        matches!(
            self.look_verdict(),
            LookVerdict::NotDue
                | LookVerdict::Untouched
                | LookVerdict::Agreed
                | LookVerdict::Skipped
        )
    }

    /// Takes the second look if one is due; otherwise runs the SCM tasks.
    pub(super) fn look_or_continue(&mut self) {
        match self.look_verdict() {
            LookVerdict::Survey | LookVerdict::SetUp | LookVerdict::Recheck(_) => {
                self.phase = Phase::Looking;
            }
            _ => self.run_scm_tasks_or_proceed(),
        }
    }

    pub(super) fn surveyed(
        &mut self,
        iteration: u32,
        touched: &TouchedFiles,
        weaknesses: &[String],
        failure: Option<&String>,
    ) {
        let survey = Effect::Survey { iteration };
        if !self.orders().contains(&survey) {
            return;
        }
        self.look.touched = Some(touched.clone());
        self.look.failure = failure.cloned();
        self.look.weaknesses = weaknesses.to_vec();
        self.look.checks = vec![None; self.plan.proof.checks.len()];
        self.check_in_view_or_continue();
    }

    /// Records the result of the setup command.
    pub(super) fn set_up(&mut self, iteration: u32, report: &CheckReport) {
        let setup = Effect::SetUp { iteration };
        if !self.orders().contains(&setup) {
            return;
        }
        self.look.setup = Some(report.clone());
        self.check_in_view_or_continue();
    }

    /// Continues after a step that prepares the view. A sealed loop that has none is not checked.
    fn check_in_view_or_continue(&mut self) {
        let is_prevented = self.look.reason_against().is_some() || self.is_setup_red();
        if !self.is_sealed() || (is_prevented && !self.is_in_session()) {
            self.look_or_continue();
        }
    }

    pub(super) fn rechecked(&mut self, iteration: u32, check: usize, report: &CheckReport) {
        let is_expected = self.phase == Phase::Looking && iteration == self.iteration;
        if !is_expected || self.look_verdict() != LookVerdict::Recheck(check) {
            return;
        }
        self.look.checks[check] = Some(report.clone());
        self.look_or_continue();
    }

    pub(super) fn accepted(&mut self, globs: &[String]) {
        self.look.accepted.extend_from_slice(globs);
        self.look.is_outdated = true;
    }

    /// Continues a loop that ended with a dispute. Returns whether the checks and the look have to
    /// run again before an agent does.
    pub(super) fn reopen_dispute(&mut self) -> bool {
        self.look.told = false;
        self.claims.signals.changed = None;
        self.look.is_outdated || self.look.reason_against().is_some()
    }

    /// Begins an iteration, whose prompt contains the dispute of the one before.
    pub(super) fn begin_look(&mut self, baseline: Option<&String>) {
        if baseline.is_some() {
            self.look.baseline = baseline.cloned();
        }
        self.look.told |= self.look_verdict() == LookVerdict::Disputed;
        self.look.discard();
    }

    /// Returns the ending of a loop whose checks are disputed and whose agent cannot, or does not
    /// want to, resolve that; `None` if the loop continues.
    pub(super) fn disputed(&self) -> Option<Outcome> {
        if self.look_verdict() != LookVerdict::Disputed {
            return None;
        }
        let look = &self.look;
        let failure = look.reason_against();
        let is_final = failure.is_some()
            || look.told
            || self.claims.signals.changed.is_some()
            || self.reached_limit().is_some();
        let has_red = failure.is_some()
            || self.is_setup_red()
            || self.has_red_check()
            || self.has_red_recheck();
        let names: Vec<&str> = match &look.touched {
            Some(touched) if has_red => touched.names().collect(),
            // Everything else is green as it was at the start.
            Some(touched) => touched.lost_tests.names().collect(),
            None => Vec::new(),
        };
        let names = names.into_iter().take(NAMED_MAX);
        is_final.then(|| Outcome::Disputed {
            files: names.map(str::to_owned).collect(),
            why: failure
                .or_else(|| self.claims.signals.changed.clone())
                .or_else(|| look.touched.as_ref()?.describe_lost_tests()),
        })
    }
}
