//! Reads what a loop did, iteration by iteration, from its journal, its activity and its checkpoints.
//!
//! Every view of a loop's past uses this: `status`, `show`, `top`, the web page, the report and the
//! statistics. It works on running, ended, crashed and archived loops, and changes no file.

use crate::engine::event::CheckReport;
use crate::engine::iteration::Iteration;
use crate::engine::touched::TouchedFiles;
use crate::engine::{Act, Event, Liveness, State};
use crate::git::checkpoint::{Checkpoints, FileDiffStat};
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::store::{JournalLine, LoopDir, LoopView, Result, cache};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The largest patch that is read as a whole, in bytes.
const PATCH_MAX: usize = 64 << 20;

/// A loop's past and present.
pub(crate) struct LoopHistory {
    pub(crate) dir: LoopDir,
    /// The state after the last line of the journal.
    pub(crate) view: LoopView,
    pub(crate) liveness: Liveness,
    /// The checks before the first iteration, in the plan's order; empty if they did not run.
    pub(crate) preflight: Vec<Option<CheckReport>>,
    /// All iterations, oldest first.
    pub(crate) iterations: Vec<PastIteration>,
    /// The tree of the checkpoint at the start; `None` if there is none.
    pub(crate) start_tree: Option<String>,
    /// The time of the last event, in milliseconds since 1970.
    pub(crate) last_event_ms: i64,
    /// Changes that were read in advance.
    known_changes: Mutex<HashMap<TreePair, Vec<FileDiffStat>>>,
}

/// Two trees that are compared.
type TreePair = (String, String);

/// An iteration, as far as the journal tells.
#[derive(Clone, Debug)]
pub(crate) struct PastIteration {
    pub(crate) number: u32,
    /// The name of its agent.
    pub(crate) agent: String,
    /// The model that its agent was asked to use; `None` for the agent's default.
    pub(crate) model: Option<String>,
    /// The time at which it began, in milliseconds since 1970.
    pub(crate) started_ms: i64,
    /// The time at which its agent ended, in milliseconds since 1970; `None` while it runs.
    pub(crate) ended_ms: Option<i64>,
    /// What is known about the agent's run; `None` while it runs.
    pub(crate) record: Option<Iteration>,
    /// Whether its agent's promise was inside a sentence, where it does not count.
    pub(crate) promise_in_sentence: bool,
    /// The results of its checks, in the plan's order; `None` for a check that did not run.
    pub(crate) checks: Vec<Option<CheckReport>>,
    /// The results of its second look, in the plan's order; empty if there was none.
    pub(crate) second_look: Vec<Option<CheckReport>>,
    /// The files that the second look found touched; `None` if there was no look.
    pub(crate) touched: Option<TouchedFiles>,
    /// The tree of its checkpoint; `None` if there is none.
    pub(crate) tree: Option<String>,
    /// Commits and pushes, with their tasks' indices in the plan.
    pub(crate) commits: Vec<(usize, crate::engine::scm::ScmTaskReport)>,
}

impl PastIteration {
    /// Returns how many checks were green, and how many ran.
    pub(crate) fn green_checks(&self) -> (usize, usize) {
        let ran = self.checks.iter().flatten();
        let green = ran.clone().filter(|report| report.is_green()).count();
        (green, ran.count())
    }

    /// Returns the first line that says why a check is red; `None` if none does.
    pub(crate) fn first_failing_line(&self) -> Option<&str> {
        let mut red = self
            .checks
            .iter()
            .flatten()
            .filter(|report| !report.is_green());
        red.find_map(|report| report.line.as_deref())
    }
}

impl LoopHistory {
    /// Reads a loop's history. Passes each line of the journal to `visit`, with the state after it.
    pub(crate) fn read(
        dir: &LoopDir,
        liveness: Liveness,
        visit: &mut dyn FnMut(&JournalLine, &State),
    ) -> Result<Self> {
        let mut builder = Builder::default();
        let view = cache::replay(dir, &mut |line, state| {
            builder.add(line, state);
            visit(line, state);
        })?;
        Ok(Self {
            dir: dir.clone(),
            last_event_ms: builder.last_event_ms.max(view.header.created_ms),
            view,
            liveness,
            preflight: builder.preflight,
            iterations: builder.iterations,
            start_tree: builder.start_tree,
            known_changes: Mutex::default(),
        })
    }

    /// Returns the iteration with this number; `None` if there is none.
    pub(crate) fn iteration(&self, number: u32) -> Option<&PastIteration> {
        let at = self
            .iterations
            .binary_search_by_key(&number, |one| one.number);
        at.ok().map(|at| &self.iterations[at])
    }

    /// Returns whether this iteration is running now.
    pub(crate) fn is_running(&self, one: &PastIteration) -> bool {
        let is_newest = self.view.state.iteration == one.number;
        self.liveness == Liveness::Running && one.record.is_none() && is_newest
    }

    /// Returns how long the loop rested after an iteration, in milliseconds; `None` if no other one
    /// has started since.
    pub(crate) fn rest_after(&self, one: &PastIteration) -> Option<u64> {
        let next = self.iteration(one.number + 1)?;
        Some(next.started_ms.abs_diff(one.ended_ms?))
    }

    /// Returns the trees before and after an iteration, for a comparison; `None` if one of them has
    /// no checkpoint.
    pub(crate) fn trees_of(&self, number: u32) -> Option<(&str, &str)> {
        let after = self.iteration(number)?.tree.as_deref()?;
        let earlier = self.iterations.iter().rev();
        let mut earlier = earlier.filter(|one| one.number < number);
        let before = earlier.find_map(|one| one.tree.as_deref());
        Some((before.or(self.start_tree.as_deref())?, after))
    }

    /// Returns the trees at the start and at the newest checkpoint; `None` if there are none.
    pub(crate) fn trees_of_all(&self) -> Option<(&str, &str)> {
        let mut newest = self.iterations.iter().rev();
        let newest = newest.find_map(|one| one.tree.as_deref())?;
        Some((self.start_tree.as_deref()?, newest))
    }

    /// Returns the files that changed between two trees. Empty if the checkpoints are gone.
    pub(crate) fn changes(&self, (from, to): (&str, &str)) -> Vec<FileDiffStat> {
        if from == to {
            return Vec::new();
        }
        let known = self.known_changes();
        if let Some(changes) = known.get(&(from.to_owned(), to.to_owned())) {
            return changes.clone();
        }
        drop(known);
        let checkpoints = Checkpoints::find(&self.dir.git_scratch());
        let changes = checkpoints.map(|all| all.changes(from, to));
        changes
            .and_then(std::result::Result::ok)
            .unwrap_or_default()
    }

    /// Reads the changes of these iterations, and of the whole loop, in advance: one process compares
    /// many trees much faster than one process each.
    pub(crate) fn read_changes(&self, iterations: &[PastIteration]) {
        let each = iterations
            .iter()
            .filter_map(|one| self.trees_of(one.number));
        let pairs = each.chain(self.trees_of_all());
        let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
        let checkpoints = Checkpoints::find(&self.dir.git_scratch());
        let changes = checkpoints.map(|all| all.changes_of_each(&pairs));
        // If a checkpoint is gone, each comparison is tried on its own.
        if let Some(Ok(changes)) = changes {
            let names = pairs.iter();
            let names = names.map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
            self.known_changes().extend(names.zip(changes));
        }
    }

    fn known_changes(&self) -> MutexGuard<'_, HashMap<TreePair, Vec<FileDiffStat>>> {
        let known = self.known_changes.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the changes between two trees as a patch. Fails if the checkpoints are gone, or if
    /// the patch is too long.
    pub(crate) fn patch(&self, trees: (&str, &str)) -> std::result::Result<String, String> {
        match self.patch_start(trees, PATCH_MAX)? {
            (patch, false) => Ok(patch),
            _ => Err("too many changes".into()),
        }
    }

    /// Returns the first `max` bytes of the changes between two trees as a patch, and whether it was
    /// cut off. Fails if the checkpoints are gone.
    pub(crate) fn patch_start(
        &self,
        trees: (&str, &str),
        max: usize,
    ) -> std::result::Result<(String, bool), String> {
        let checkpoints = Checkpoints::find(&self.dir.git_scratch());
        let checkpoints = checkpoints.ok_or("its checkpoints are gone")?;
        let (patch, is_cut) = checkpoints.patch_start(trees, max)?;
        Ok((String::from_utf8_lossy(&patch).into_owned(), is_cut))
    }
}

/// Collects the history while the journal is read.
#[derive(Default)]
struct Builder {
    preflight: Vec<Option<CheckReport>>,
    iterations: Vec<PastIteration>,
    start_tree: Option<String>,
    last_event_ms: i64,
}

impl Builder {
    fn add(&mut self, line: &JournalLine, state: &State) {
        self.last_event_ms = line.at_ms;
        match &line.event {
            Event::Started { iteration, .. } => {
                let agent = state.agent();
                self.iterations.push(PastIteration {
                    number: *iteration,
                    agent: agent.name.clone(),
                    model: agent.model.clone(),
                    started_ms: line.at_ms,
                    ended_ms: None,
                    record: None,
                    promise_in_sentence: false,
                    checks: vec![None; state.plan.proof.checks.len()],
                    second_look: Vec::new(),
                    touched: None,
                    tree: None,
                    commits: Vec::new(),
                });
            }
            Event::Ended {
                iteration, report, ..
            } => {
                if let Some(one) = self.find(*iteration) {
                    one.promise_in_sentence = report.signals.promise_in_sentence;
                }
            }
            Event::Checked {
                iteration,
                check,
                report,
                ..
            } => {
                let checks = match self.find(*iteration) {
                    Some(one) => &mut one.checks,
                    None => &mut self.preflight,
                };
                put(checks, *check, report);
            }
            Event::Rechecked {
                iteration,
                check,
                report,
            } => {
                if let Some(one) = self.find(*iteration) {
                    put(&mut one.second_look, *check, report);
                }
            }
            Event::Surveyed {
                iteration, touched, ..
            } => {
                if let Some(one) = self.find(*iteration) {
                    one.touched = Some(touched.clone());
                }
            }
            Event::Checkpointed {
                iteration, tree, ..
            } => match self.find(*iteration) {
                Some(one) => one.tree.clone_from(tree),
                None => self.start_tree.clone_from(tree),
            },
            Event::Committed {
                iteration,
                task,
                report,
            } => {
                if let Some(one) = self.find(*iteration) {
                    one.commits.push((*task, report.clone()));
                }
            }
            _ => {}
        }
        self.take_record(line.at_ms, state);
    }

    /// Copies the newest iteration's record from the state when it appears or changes: an interrupted
    /// iteration has no event of its own.
    fn take_record(&mut self, at_ms: i64, state: &State) {
        let Some(newest) = state.recent.back() else {
            return;
        };
        let Some(one) = self.find(newest.number) else {
            return;
        };
        one.ended_ms.get_or_insert(at_ms);
        if one.record.as_ref() != Some(newest) {
            one.record = Some(newest.clone());
        }
    }

    /// Returns the iteration with this number, which is one of the last.
    fn find(&mut self, number: u32) -> Option<&mut PastIteration> {
        let mut newest = self.iterations.iter_mut().rev();
        newest.find(|one| one.number == number)
    }
}

fn put(reports: &mut Vec<Option<CheckReport>>, at: usize, report: &CheckReport) {
    if reports.len() <= at {
        reports.resize(at + 1, None);
    }
    reports[at] = Some(report.clone());
}

/// What an agent did in one iteration, with the time of each act in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct IterationActivity {
    pub(crate) acts: Vec<(i64, Act<'static>)>,
    /// Number of acts that were not kept.
    pub(crate) dropped: u64,
}

impl IterationActivity {
    /// Reads an iteration's activity. Empty if it has none.
    pub(crate) fn read(dir: &LoopDir, iteration: u32) -> Self {
        let mut activity = Self::default();
        if let Some(mut reader) = ActivityReader::open(&dir.activity(iteration)) {
            let _ = reader.read(&mut |item| match item {
                ActivityItem::Act { at_ms, act } => activity.acts.push((at_ms, act)),
                ActivityItem::Dropped(count) => activity.dropped += count,
            });
        }
        activity
    }

    /// Returns the agent's final message, or else its last text; empty if it wrote none.
    pub(crate) fn last_words(&self) -> String {
        let mut last = String::new();
        let mut is_open = false;
        for (_, act) in &self.acts {
            match act {
                Act::Finished(text) if !text.trim().is_empty() => return text.trim().to_owned(),
                Act::Text(text) => {
                    if !is_open {
                        last.clear();
                    }
                    last.push_str(text);
                    is_open = true;
                }
                Act::ToolStarted { .. } | Act::ToolFinished { .. } => is_open = false,
                _ => {}
            }
        }
        last.trim().to_owned()
    }
}
