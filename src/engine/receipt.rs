//! Receipts: what a loop ended with, and by which evidence. Everything in a receipt comes from the
//! journal and the record of the loop's start, so it can be written again at any time.
//!
//! The serialized names are a published format (docs/receipts.md) and never change.

use super::event::{CheckReport, Event, ProcessExit};
use super::look::{LookVerdict, SecondLook};
use super::outcome::OutcomeSummary;
use super::review::Review;
use super::state::State;
use super::test_counts::TestCounts;
use super::touched::TouchedFiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format version that is written, and the latest version that can be read.
pub(crate) const VERSION: u32 = 1;
/// The value of the field that identifies a receipt.
pub(crate) const RECEIPT: &str = "receipt";
/// Maximum number of disputes and of acceptances that a receipt lists. The newest are kept.
const HISTORY_MAX: usize = 20;

/// What is known about the repository and the system when a loop ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EndFacts {
    /// The commit that is checked out; `None` before the first commit and outside git.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The tree of that commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_tree: Option<String>,
    /// The workspace's path in the repository; empty for its top, `None` outside git.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The versions of the programs that took part.
    pub versions: Versions,
}

/// Versions of the programs that took part in a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Versions {
    /// The version of ralph that ended the loop.
    pub ralph: String,
    /// The version of the agent that ran last; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The version of git; `None` if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// The operating system, its release and the machine, as `Linux 6.12.0 x86_64`.
    pub os: String,
}

/// A receipt. Fields that are missing have their default value: older versions did not know them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Receipt {
    /// [`RECEIPT`].
    pub(crate) ralph: String,
    pub(crate) version: u32,
    /// The name and the ID of the loop.
    pub(crate) name: String,
    pub(crate) id: String,
    /// When the loop was created and when it ended, in RFC 3339 format.
    pub(crate) created: String,
    pub(crate) ended: String,
    pub(crate) outcome: Option<OutcomeSummary>,
    pub(crate) success: bool,
    /// The HEAD commit at the start and at the end.
    pub(crate) base: Option<String>,
    pub(crate) commit: Option<String>,
    /// Whether the commit contains exactly the files that were graded.
    pub(crate) is_committed: bool,
    /// The files at the start, and those that were graded.
    pub(crate) start: Option<RecordedTree>,
    pub(crate) graded: Option<RecordedTree>,
    /// The workspace's path in the repository.
    pub(crate) directory: String,
    /// The command that prepared the view; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<SetupRecord>,
    pub(crate) checks: Vec<CheckRecord>,
    pub(crate) guards: GuardHashes,
    /// Environment variables whose values the commands contain. The commands have their names
    /// instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) secrets: Vec<String>,
    /// Patterns of guards that were added, and of those that the task could change.
    pub(crate) protect: Vec<String>,
    pub(crate) allow: Vec<String>,
    pub(crate) touched: Option<TouchedFiles>,
    pub(crate) second_look: LookRecord,
    pub(crate) disputes: Vec<DisputeRecord>,
    pub(crate) accepted: Vec<AcceptanceRecord>,
    pub(crate) review: Option<Review>,
    pub(crate) iterations: u32,
    pub(crate) active_s: f64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) agent: AgentRecord,
    pub(crate) versions: Option<Versions>,
}

/// Files in git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RecordedTree {
    /// The ID of the tree, which depends on nothing but the files' content.
    pub(crate) tree: String,
    /// The ref of the checkpoint with this tree; `None` if there is none.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
}

/// The command that prepared the view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SetupRecord {
    pub(crate) command: String,
    pub(crate) timeout_s: f64,
}

/// A check with its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CheckRecord {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) timeout_s: f64,
    /// The pattern that the output must match; `None` if the exit code is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<String>,
    /// The result with the files as the agent left them; `None` if the check did not run.
    pub(crate) result: Option<RecordedResult>,
    /// The result by the original tests; `None` if it did not run with them.
    pub(crate) original: Option<RecordedResult>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RecordedResult {
    pub(crate) green: bool,
    pub(crate) exit: ProcessExit,
    pub(crate) timed_out: bool,
    pub(crate) duration_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tests: Option<TestCounts>,
}

/// SHA-256 hashes of the tests and settings that the loop began with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GuardHashes {
    pub(crate) total: u64,
    /// A hash of all paths and hashes.
    pub(crate) digest: String,
    /// The first files, by their path in the workspace.
    pub(crate) files: BTreeMap<String, String>,
    /// Why the hashes are not known; `None` if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

impl GuardHashes {
    pub(crate) fn unknown(why: String) -> Self {
        Self {
            failure: Some(why),
            ..Self::default()
        }
    }
}

/// The second look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LookRecord {
    pub(crate) mode: SecondLook,
    /// `agreed`, `untouched`, `disputed`, `skipped` or `none`.
    pub(crate) verdict: String,
    pub(crate) weaknesses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// A second look that disagreed with the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DisputeRecord {
    pub(crate) iteration: u32,
    /// The files that were changed.
    pub(crate) files: Vec<String>,
    /// The agent's reason for the change; `None` if it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// A person's acceptance of changed files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AcceptanceRecord {
    pub(crate) at: String,
    pub(crate) globs: Vec<String>,
}

/// The agent that ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentRecord {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

/// Collects what the final state does not contain, event by event.
#[derive(Debug, Default)]
pub(crate) struct ReceiptHistory {
    pub(crate) disputes: Vec<DisputeRecord>,
    pub(crate) accepted: Vec<AcceptanceRecord>,
}

impl ReceiptHistory {
    /// Adds an event that was just applied to the state. `at` is its time.
    pub(crate) fn add(&mut self, event: &Event, state: &State, at: impl FnOnce() -> String) {
        match event {
            Event::Surveyed { iteration, .. }
            | Event::SetUp { iteration, .. }
            | Event::Rechecked { iteration, .. }
            | Event::Checked { iteration, .. }
                if is_judged(event, state) && state.look_verdict() == LookVerdict::Disputed =>
            {
                let touched = state.look.touched.iter();
                self.disputes.push(DisputeRecord {
                    iteration: *iteration,
                    files: touched
                        .flat_map(TouchedFiles::names)
                        .map(str::to_owned)
                        .collect(),
                    why: state.claims.signals.changed.clone(),
                });
            }
            Event::Accepted { globs, .. } => self.accepted.push(AcceptanceRecord {
                at: at(),
                globs: globs.clone(),
            }),
            _ => return,
        }
        keep_newest(&mut self.disputes);
        keep_newest(&mut self.accepted);
    }
}

/// Returns whether an event completes what the second look judges. The checks of a sealed loop are
/// judged once all have run.
fn is_judged(event: &Event, state: &State) -> bool {
    !matches!(event, Event::Checked { .. }) || (state.is_sealed() && state.is_checked())
}

fn keep_newest<T>(list: &mut Vec<T>) {
    list.drain(..list.len().saturating_sub(HISTORY_MAX));
}

impl From<&CheckReport> for RecordedResult {
    fn from(report: &CheckReport) -> Self {
        Self {
            green: report.is_green(),
            exit: report.exit,
            timed_out: report.timed_out,
            duration_s: report.ms as f64 / 1000.0,
            tests: report.tests,
        }
    }
}

impl RecordedResult {
    /// Returns whether a second run of the check had the same result.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let facts = |result: &Self| (result.green, result.exit, result.timed_out, result.tests);
        facts(self) == facts(other)
    }
}

impl CheckRecord {
    /// Returns the result that decided: the one by the original tests, if there is one.
    pub(crate) fn decisive(&self) -> Option<&RecordedResult> {
        self.original.as_ref().or(self.result.as_ref())
    }
}

impl Receipt {
    /// Describes a loop's proof, from its state and its history. The caller adds what the engine
    /// does not know.
    pub(crate) fn new(state: &State, history: ReceiptHistory) -> Self {
        let (plan, look) = (&state.plan, &state.look);
        let end = state.end.clone().unwrap_or_default();
        let graded = state.graded_tree();
        let checks = plan.proof.checks.iter().enumerate();
        let result = |reports: &[Option<CheckReport>], at: usize| {
            let report = reports.get(at).and_then(Option::as_ref);
            report.map(RecordedResult::from)
        };
        // A sealed loop's checks run only with the original tests.
        let (as_left, original) = if state.is_sealed() {
            (&[][..], &state.checks[..])
        } else {
            (&state.checks[..], &look.checks[..])
        };
        let tokens = state.tokens.total();
        let agent = state.agent();
        Self {
            ralph: RECEIPT.to_owned(),
            version: VERSION,
            outcome: state.outcome_summary(),
            base: state.checkpoint.base.clone(),
            is_committed: graded.is_some() && end.head_tree.as_deref() == graded,
            commit: end.head,
            start: state.checkpoint.start.as_ref().map(|start| RecordedTree {
                tree: start.tree.clone(),
                reference: None,
            }),
            graded: graded.map(|tree| RecordedTree {
                tree: tree.to_owned(),
                reference: None,
            }),
            directory: end.directory.unwrap_or_default(),
            setup: plan.proof.setup.as_ref().map(|setup| SetupRecord {
                command: setup.command.clone(),
                timeout_s: setup.timeout_ms as f64 / 1000.0,
            }),
            checks: checks
                .map(|(at, check)| CheckRecord {
                    name: check.slug.clone(),
                    command: check.command.clone(),
                    timeout_s: check.timeout_ms as f64 / 1000.0,
                    expect: check.expect.clone(),
                    result: result(as_left, at),
                    original: result(original, at),
                })
                .collect(),
            secrets: plan.redacted.clone(),
            protect: plan.proof.protect.clone(),
            allow: [&plan.proof.allow[..], &look.accepted[..]].concat(),
            touched: look.touched.clone(),
            second_look: LookRecord {
                mode: plan.proof.second_look,
                verdict: match state.look_verdict() {
                    LookVerdict::Agreed => "agreed",
                    LookVerdict::Untouched => "untouched",
                    LookVerdict::Disputed => "disputed",
                    LookVerdict::Skipped => "skipped",
                    LookVerdict::NotDue
                    | LookVerdict::Survey
                    | LookVerdict::SetUp
                    | LookVerdict::Recheck(_) => "none",
                }
                .to_owned(),
                weaknesses: look.weaknesses.clone(),
                failure: look.failure.clone(),
            },
            disputes: history.disputes,
            accepted: history.accepted,
            review: state.review.clone(),
            iterations: state.iteration,
            active_s: state.active_ms as f64 / 1000.0,
            cost_usd: state.reported_cost(),
            tokens: (tokens > 0).then_some(tokens),
            agent: AgentRecord {
                name: agent.name.clone(),
                command: agent.command.clone(),
                model: agent.model.clone(),
            },
            versions: state.end.as_ref().map(|end| end.versions.clone()),
            ..Self::default()
        }
    }

    /// Names the checkpoints that contain the files of the start and those that were graded.
    pub(crate) fn set_refs(&mut self, id: &str, state: &State) {
        let reference = |number: u32| Some(format!("refs/ralph/{id}/{number}"));
        if let Some(start) = &mut self.start {
            start.reference = reference(0);
        }
        let newest = state.checkpoint.newest.filter(|_| !state.is_rewound());
        if let Some(graded) = &mut self.graded {
            graded.reference = newest.and_then(reference);
        }
    }
}
