//! The second look: before a loop counts as done, its checks run again by the tests and settings
//! that the loop began with.
//!
//! The runner first surveys what has been touched since the start. If that includes files that can
//! turn a check green without the work being done, the checks run again in a view of the workspace
//! that has these files as they were. A check that is green for the agent and red in the view is
//! disputed: the agent is told once, and after that a person decides.

use super::display::code_span;
use super::event::{CheckReport, is_default};
use super::outcome::Outcome;
use super::prompt::describe_red_check;
use super::signals::defang;
use super::state::{Phase, State};
use super::test_counts::TestCounts;
use super::touched::{TouchedFiles, TouchedList};
use serde::{Deserialize, Serialize};

/// Maximum number of files that a message names.
const NAMED_MAX: usize = 10;

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

impl TouchedFiles {
    /// Returns the lists of files that can turn a check green, with their names for people.
    fn rings(&self) -> [(&'static str, &TouchedList); 4] {
        [
            ("test or settings file", &self.guards),
            ("new test or settings file", &self.first_guards),
            ("ignored file", &self.ignored),
            ("file outside the workspace", &self.outside),
        ]
    }

    /// Returns the touched files that can turn a check green, as far as their names are known.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let rings = self.rings().map(|(_, ring)| &ring.files);
        rings.into_iter().flatten().map(|file| file.path.as_str())
    }

    /// Returns whether [`names`](Self::names) returns every touched file.
    pub(crate) fn has_all_names(&self) -> bool {
        let rings = self.rings();
        rings
            .iter()
            .all(|(_, ring)| ring.total <= ring.files.len() as u64)
    }

    /// Describes how many files were touched: `2 test or settings files, 1 ignored file`. Empty if
    /// none were.
    pub(crate) fn describe(&self) -> String {
        let rings = self.rings();
        let touched = rings.iter().filter(|(_, ring)| !ring.is_empty());
        let counts: Vec<String> = touched
            .map(|(name, ring)| match ring.total {
                1 => format!("1 {name}"),
                total => format!("{total} {}", name.replacen("file", "files", 1)),
            })
            .collect();
        counts.join(", ")
    }

    /// Applies `edit` to every path.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let rings = [
            &mut self.guards,
            &mut self.first_guards,
            &mut self.ignored,
            &mut self.outside,
            &mut self.sources,
        ];
        for file in rings.into_iter().flat_map(|ring| &mut ring.files) {
            edit(&mut file.path);
        }
        self.unknown.iter_mut().for_each(edit);
    }
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
    weaknesses: Vec<String>,
    /// The results of the checks in the view, in the plan's order; `None` for a check that has not
    /// run there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The numbers of tests before the first iteration, in the plan's order; empty without preflight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    start_tests: Vec<Option<TestCounts>>,
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
    fn reason_against(&self) -> Option<String> {
        let mut unknown = self.touched.iter().flat_map(|touched| &touched.unknown);
        self.failure.clone().or_else(|| unknown.next().cloned())
    }

    /// Discards the findings, because files may have changed since.
    pub(super) fn discard(&mut self) {
        self.is_outdated = false;
        self.touched = None;
        self.failure = None;
        self.weaknesses.clear();
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
        if mode == SecondLook::Never || !self.is_look_due() {
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
        match look.checks.iter().position(Option::is_none) {
            Some(check) => LookVerdict::Recheck(check),
            None if self.red_rechecks().next().is_some() => LookVerdict::Disputed,
            None => LookVerdict::Agreed,
        }
    }

    /// Returns whether the newest iteration would end the loop as done, or its work be committed.
    fn is_look_due(&self) -> bool {
        let is_green = self.iteration > 0 && !self.checks.is_empty() && self.all_green();
        is_green && (self.done_basis().is_some() || !self.plan.scm.tasks.is_empty())
    }

    /// Returns in what way a check proves less than it did at the start; `None` if it proves as
    /// much.
    pub(crate) fn shortfall(&self, check: usize, report: &CheckReport) -> Option<String> {
        let start = self.look.start_tests.get(check).copied().flatten();
        report.tests?.shortfall(start)
    }

    fn has_shortfall(&self, checks: &[Option<CheckReport>]) -> bool {
        let results = checks.iter().enumerate();
        let mut results = results.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        results.any(|(check, report)| self.shortfall(check, report).is_some())
    }

    /// Returns the checks that are red in the view, with the reason.
    fn red_rechecks(&self) -> impl Iterator<Item = (usize, String)> {
        let results = self.look.checks.iter().enumerate();
        let results = results.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        results.filter_map(|(check, report)| {
            if !report.is_green() {
                return Some((check, describe_red_check(report)));
            }
            Some((check, self.shortfall(check, report)?))
        })
    }

    /// Remembers the numbers of tests before the first iteration.
    pub(super) fn count_tests_at_start(&mut self) {
        let reports = self.checks.iter().map(Option::as_ref);
        self.look.start_tests = reports.map(|report| report?.tests).collect();
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
            LookVerdict::Survey | LookVerdict::Recheck(_) => self.phase = Phase::Looking,
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
        let is_expected = self.phase == Phase::Looking && iteration == self.iteration;
        if !is_expected || self.look_verdict() != LookVerdict::Survey {
            return;
        }
        self.look.touched = Some(touched.clone());
        self.look.failure = failure.cloned();
        self.look.weaknesses = weaknesses.to_vec();
        self.look.checks = vec![None; self.plan.proof.checks.len()];
        self.look_or_continue();
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

    /// Describes the second look at the work of a loop that is done; empty if there is nothing to
    /// say.
    pub(super) fn describe_look(&self) -> String {
        let look = &self.look;
        let touched = look.touched.as_ref();
        let has_sources = touched.is_none_or(|touched| !touched.sources.is_empty());
        match self.look_verdict() {
            LookVerdict::Agreed => {
                let files = touched.map(TouchedFiles::describe).unwrap_or_default();
                let changed = match &*files {
                    "" => String::new(),
                    files => format!(" ({files} changed)"),
                };
                let sources = if has_sources {
                    ""
                } else {
                    "; no source file was changed"
                };
                let mut text = format!(", by the original tests too{changed}{sources}");
                if !look.weaknesses.is_empty() {
                    let why = look.weaknesses.join(", ");
                    text.extend(["; the original files were not fully restored: ", &why]);
                }
                text
            }
            LookVerdict::Untouched if !has_sources => "; nothing was changed".into(),
            LookVerdict::Skipped => {
                let why = look.reason_against().unwrap_or_default();
                format!("; the original tests were not asked: {why}")
            }
            _ => String::new(),
        }
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
        let names = look.touched.iter().flat_map(TouchedFiles::names);
        is_final.then(|| Outcome::Disputed {
            files: names.take(NAMED_MAX).map(str::to_owned).collect(),
            why: failure.or_else(|| self.claims.signals.changed.clone()),
        })
    }

    /// Returns what the agent has to know about a dispute; `None` if there is none.
    pub(super) fn dispute_note(&self) -> Option<String> {
        if self.look_verdict() != LookVerdict::Disputed || self.look.reason_against().is_some() {
            return None;
        }
        let red: Vec<String> = self
            .red_rechecks()
            .map(|(check, why)| {
                let report = self.look.checks[check].as_ref();
                let line = report.and_then(|report| report.line.as_deref().map(code_span));
                let line = line.map(|line| format!(": {line}")).unwrap_or_default();
                let label = self.plan.proof.checks[check].label();
                format!("- {label} ({why}){line}")
            })
            .collect();
        let touched = self.look.touched.as_ref();
        let names: Vec<String> = touched
            .iter()
            .flat_map(|touched| touched.names())
            .take(NAMED_MAX)
            .map(|name| format!("- {}", code_span(name)))
            .collect();
        Some(format!(
            "The checks are green as you left the files, but red with the tests and settings that \
             the loop began with, so the work does not count as done:\n{}\nThese files were \
             restored for that:\n{}\nChange the code so that the original checks pass too. If the \
             task itself requires the change of a test or a setting, leave it and write \
             <changed>the reason</changed> alone on a line of your final message; a person then \
             decides.",
            defang(&red.join("\n")),
            defang(&names.join("\n"))
        ))
    }
}
