//! Labels the checks before the first iteration: what can their results prove?
//!
//! One run tells a red check from a green one, and finds checks that are broken or swallowed.
//! Extra runs, in views, find those that are flaky or vacuous. They are bounded, so that no loop
//! starts noticeably later: `ralph selftest` has more time.

use super::display::code_span;
use super::event::{CheckReport, Event, Fault, is_default};
use super::signals::defang;
use super::state::{Phase, State};
use serde::{Deserialize, Serialize};

/// A check that takes this long gets no extra runs, in milliseconds.
pub(crate) const PROBE_MAX_MS: u64 = 5000;

/// The time that all extra runs together may take, in milliseconds. No run starts that would exceed
/// it if it took as long as the first one.
const PROBES_MAX_MS: u64 = 3000;

/// How often a check runs to find out whether it is flaky.
const RUNS: usize = 3;

/// What a check's results can prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckLabel {
    /// It is red before the first iteration: turning green proves something.
    Red,
    /// It is green before the first iteration: it guards what works.
    Green,
    /// Its result differs between runs without a change.
    Flaky,
    /// It cannot run.
    Broken,
    /// It exits with 0 although something in it failed, or would.
    Swallowed,
    /// It is green even if the sources are empty.
    Vacuous,
    /// A label of a later version.
    #[serde(other)]
    Unknown,
}

impl CheckLabel {
    /// Returns the name used in the journal and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Green => "green",
            Self::Flaky => "flaky",
            Self::Broken => "broken",
            Self::Swallowed => "swallowed",
            Self::Vacuous => "vacuous",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether the check proves less than its color says.
    pub fn is_weak(self) -> bool {
        !matches!(self, Self::Red | Self::Green | Self::Unknown)
    }

    /// Returns whether nothing can follow from the check's result.
    fn is_useless(self) -> bool {
        matches!(self, Self::Broken | Self::Swallowed)
    }
}

/// A check's label, with the reason if it is weak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Label {
    /// The label.
    pub label: CheckLabel,
    /// Why the check is weak; empty if it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Label {
    pub(crate) fn new(label: CheckLabel, why: String) -> Self {
        Self { label, why }
    }
}

/// What happens to a loop whose checks are all broken or swallowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WeakChecks {
    /// Checks get no labels, as in journals of earlier versions.
    #[default]
    Unlabeled,
    /// The loop ends before its first iteration.
    Refuse,
    Accept,
}

impl WeakChecks {
    pub(crate) fn from_setting(accepts: bool) -> Self {
        if accepts { Self::Accept } else { Self::Refuse }
    }
}

/// An extra run of a check, in a view, before the first iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckProbe {
    /// The check runs again, with nothing changed.
    Again,
    /// The check runs with every source file emptied.
    Emptied,
    /// The check runs with text in every source file that no compiler accepts.
    Garbled,
    /// A probe of a later version.
    #[serde(other)]
    Unknown,
}

impl CheckProbe {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Again => "again",
            Self::Emptied => "emptied",
            Self::Garbled => "garbled",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of an extra run; `report` is `None` if it could not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckProbeResult {
    check: usize,
    probe: CheckProbe,
    report: Option<CheckReport>,
}

/// What is known about the checks before the first iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabelState {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    probes: Vec<CheckProbeResult>,
    /// Whether a runner was killed during an extra run. There are no more then: a loop that is
    /// killed again and again must still get past preflight.
    #[serde(default, skip_serializing_if = "is_default")]
    is_cut_short: bool,
    /// The labels, in the plan's order; empty if there are none yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) labels: Vec<Label>,
}

/// What the extra runs of a green check with other sources say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceUse {
    /// This run is needed to tell.
    Unknown(CheckProbe),
    /// The check depends on the sources.
    Used,
    /// The check does not look at the sources, or its tests assert nothing about them.
    Vacuous,
}

/// Judges whether a green check looks at the sources. A linter or a build is green with empty
/// sources, but not with sources that it cannot read; tests that pass without any code are not tests
/// of it.
pub(crate) fn judge_source_use(
    emptied: Option<&CheckReport>,
    garbled: Option<&CheckReport>,
) -> SourceUse {
    let Some(emptied) = emptied else {
        return SourceUse::Unknown(CheckProbe::Emptied);
    };
    let passed = emptied.tests.map_or(0, |tests| tests.passed);
    match garbled {
        _ if !emptied.is_green() => SourceUse::Used,
        _ if passed > 0 => SourceUse::Vacuous,
        None => SourceUse::Unknown(CheckProbe::Garbled),
        Some(garbled) if garbled.is_green() => SourceUse::Vacuous,
        Some(_) => SourceUse::Used,
    }
}

/// Returns the label of a check that ran several times without a change; `None` if it does not
/// differ.
pub(crate) fn flaky(runs: &[&CheckReport]) -> Option<Label> {
    let colors: Vec<&str> = runs.iter().map(|run| color(run)).collect();
    let differs = colors.iter().any(|color| *color != colors[0]);
    differs.then(|| {
        let why = format!("it was {} without a change", colors.join(", then "));
        Label::new(CheckLabel::Flaky, why)
    })
}

/// Returns the label of a check that is green without its sources.
pub(crate) fn vacuous() -> Label {
    let why = "it is green even if every source file is empty".to_owned();
    Label::new(CheckLabel::Vacuous, why)
}

fn color(report: &CheckReport) -> &'static str {
    if report.is_green() { "green" } else { "red" }
}

impl State {
    /// Returns whether preflight is about to label the checks.
    pub(crate) fn is_labeling(&self) -> bool {
        self.phase == Phase::Checking
            && self.iteration == 0
            && self.plan.proof.preflight
            && self.plan.proof.weak_checks != WeakChecks::Unlabeled
            && !self.is_in_session()
            && !self.checks.is_empty()
            && self.is_checked()
            && self.label.labels.is_empty()
    }

    /// Returns the extra run that is needed next; `None` if the labels are settled. Runs of the same
    /// kind follow each other, so that they can share a view.
    pub(crate) fn next_probe(&self) -> Option<(usize, CheckProbe)> {
        let results = &self.label.probes;
        let spent: u64 = results.iter().map(CheckProbeResult::ms).sum();
        let cannot_run = |probe: CheckProbe| {
            let mut failed = results.iter().filter(|result| result.report.is_none());
            failed.any(|result| result.probe == probe)
        };
        let is_over = self.label.is_cut_short || cannot_run(CheckProbe::Again);
        if !self.is_labeling() || is_over {
            return None;
        }
        let checks = self.checks.iter().enumerate();
        let checks = checks.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        let wanted = checks.filter_map(|(check, first)| {
            let is_quick = first.ms < PROBE_MAX_MS && spent + first.ms <= PROBES_MAX_MS;
            if !is_quick || first.timed_out || first.label.is_some() {
                return None;
            }
            let runs = self.runs(check, first);
            if runs.iter().any(|run| run.timed_out) || flaky(&runs).is_some() {
                return None;
            }
            if runs.len() < RUNS {
                return Some((check, CheckProbe::Again));
            }
            match self.source_use(check) {
                SourceUse::Unknown(probe) if first.is_green() && !cannot_run(probe) => {
                    Some((check, probe))
                }
                _ => None,
            }
        });
        wanted.min_by_key(|(check, probe)| (*probe as usize, *check))
    }

    /// Returns the runs of a check without a change.
    fn runs<'a>(&'a self, check: usize, first: &'a CheckReport) -> Vec<&'a CheckReport> {
        let again = self.probes(check, CheckProbe::Again);
        std::iter::once(first).chain(again).collect()
    }

    fn probes(&self, check: usize, probe: CheckProbe) -> impl Iterator<Item = &CheckReport> {
        let results = self.label.probes.iter();
        let results = results.filter(move |one| one.check == check && one.probe == probe);
        results.filter_map(|one| one.report.as_ref())
    }

    fn source_use(&self, check: usize) -> SourceUse {
        let run = |probe| self.probes(check, probe).next();
        judge_source_use(run(CheckProbe::Emptied), run(CheckProbe::Garbled))
    }

    /// Returns the labels that follow from the runs so far.
    pub(crate) fn judge_labels(&self) -> Vec<Label> {
        let checks = self.checks.iter().enumerate();
        let reports = checks.filter_map(|(check, report)| Some((check, report.as_ref()?)));
        reports
            .map(|(check, first)| {
                let mut runs = self.runs(check, first);
                // Under load, a run may take longer than its timeout: that says nothing.
                runs.retain(|run| !run.timed_out || std::ptr::eq(*run, first));
                let is_vacuous = first.is_green() && self.source_use(check) == SourceUse::Vacuous;
                let color = if first.is_green() {
                    CheckLabel::Green
                } else {
                    CheckLabel::Red
                };
                first
                    .label
                    .clone()
                    .or_else(|| flaky(&runs))
                    .or_else(|| is_vacuous.then(vacuous))
                    .unwrap_or_else(|| Label::new(color, String::new()))
            })
            .collect()
    }

    pub(super) fn stop_probing(&mut self) {
        self.label.is_cut_short = true;
    }

    /// Forgets the labels if the checks of preflight run again.
    pub(super) fn discard_labels(&mut self) {
        if self.iteration == 0 {
            self.label = LabelState::default();
        }
    }

    pub(super) fn apply_label_event(&mut self, event: &Event) {
        match event {
            Event::Probed {
                check,
                probe,
                report,
            } => self.probed(*check, *probe, report.as_ref()),
            Event::Labeled { labels } => self.labeled(labels),
            _ => {}
        }
    }

    fn probed(&mut self, check: usize, probe: CheckProbe, report: Option<&CheckReport>) {
        if self.next_probe() == Some((check, probe)) {
            let report = report.cloned();
            self.label.probes.push(CheckProbeResult {
                check,
                probe,
                report,
            });
        }
    }

    /// Ends preflight. A loop of which no check can prove anything is refused.
    fn labeled(&mut self, labels: &[Label]) {
        if !self.is_labeling() || labels.is_empty() {
            return;
        }
        self.label.labels = labels.to_vec();
        let refuses = self.plan.proof.weak_checks == WeakChecks::Refuse;
        if refuses && labels.iter().all(|label| label.label.is_useless()) {
            self.fault = Some((Fault::WeakChecks, self.describe_weak_checks()));
            self.proceed();
        } else {
            self.look_or_continue();
        }
    }

    /// Returns whether the loop was refused because none of its checks can prove anything.
    pub(super) fn has_refused_checks(&self) -> bool {
        matches!(self.fault, Some((Fault::WeakChecks, _)))
    }

    fn describe_weak_checks(&self) -> String {
        let reasons: Vec<String> = self
            .weak_labels()
            .map(|(check, label)| {
                let command = code_span(&self.plan.proof.checks[check].command);
                format!("{command} is {}: {}", label.label.as_str(), label.why)
            })
            .collect();
        format!(
            "no check can prove anything ({}); correct the checks, or run with --weak-checks",
            reasons.join("; ")
        )
    }

    /// Returns the labels of checks that prove less than their color says.
    pub(crate) fn weak_labels(&self) -> impl Iterator<Item = (usize, &Label)> {
        let labels = self.label.labels.iter().enumerate();
        let count = self.plan.proof.checks.len();
        labels.filter(move |(check, label)| *check < count && label.label.is_weak())
    }

    /// Returns the label of a check if it is weak.
    pub(crate) fn weak_label(&self, check: usize) -> Option<&Label> {
        let label = self.label.labels.get(check)?;
        label.label.is_weak().then_some(label)
    }

    /// Returns what the agent has to know about the checks.
    pub(super) fn label_notes(&self) -> Vec<String> {
        let flaky = self.weak_labels();
        let flaky = flaky.filter(|(_, label)| label.label == CheckLabel::Flaky);
        flaky
            .map(|(check, label)| {
                let command = defang(&self.plan.proof.checks[check].label());
                let why = &label.why;
                format!("- The check {command} is flaky: {why}. Run it more than once.")
            })
            .collect()
    }
}

impl CheckProbeResult {
    fn ms(&self) -> u64 {
        self.report.as_ref().map_or(0, |report| report.ms)
    }
}
