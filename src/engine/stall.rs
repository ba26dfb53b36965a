//! Detects a loop that makes no progress: iterations that leave it in a state it has been in before.
//!
//! A state is the content of the working tree together with the failures of the red checks, so
//! going back and forth between two states is no progress either.

use super::iteration::IterationEnd;
use super::state::State;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of states that are remembered. Returning to an older state counts as progress.
const SEEN_MAX: usize = 256;

/// The working tree's content, as git tree IDs. `None` means unknown, as outside git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// The content at the loop's start.
    pub(crate) start: Option<String>,
    /// The content when the newest iteration began.
    pub(crate) before: Option<String>,
    /// The content after the newest iteration's checks.
    pub(crate) now: Option<String>,
}

/// The states that a loop has been in, and how long it has made no progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StallState {
    /// Number of iterations in a row that led to no new state.
    pub(crate) stalls: u32,
    /// Hashes of the states the loop has been in, newest last.
    seen: VecDeque<u64>,
    /// The newest iteration that was judged. Its checks may run again.
    judged: u32,
}

impl State {
    /// Records the working tree's content at the start of the loop, or after an iteration's checks.
    pub(super) fn measured(&mut self, tree: Option<&String>) {
        if self.iteration == 0 {
            self.content.start = tree.cloned();
        }
        self.content.now = tree.cloned();
    }

    /// Moves on to the next iteration. If the content was not measured after the last one, the one
    /// before counts.
    pub(super) fn begin_content(&mut self) {
        if let Some(now) = self.content.now.take() {
            self.content.before = Some(now);
        }
    }

    /// Judges the newest iteration once all its checks have run. An iteration that was refunded or
    /// interrupted neither counts nor resets the count.
    ///
    /// If the content is unknown and all checks are green, there is nothing to judge by.
    pub(super) fn judge_progress(&mut self) {
        if self.content.now.is_none() && self.all_green() {
            return;
        }
        let key = self.state_key();
        let is_new = !self.progress.seen.contains(&key);
        if is_new {
            if self.progress.seen.len() == SEEN_MAX {
                self.progress.seen.pop_front();
            }
            self.progress.seen.push_back(key);
        }
        let last = self.recent.back();
        let counts = last.is_some_and(|last| {
            last.number == self.iteration && !last.refunded && last.end != IterationEnd::Interrupted
        });
        if !counts {
            return;
        }
        if is_new {
            self.progress.stalls = 0;
        } else if self.progress.judged != self.iteration {
            self.progress.stalls = self.progress.stalls.saturating_add(1);
        }
        self.progress.judged = self.iteration;
    }

    fn state_key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.content.now.hash(&mut hasher);
        for report in self.checks.iter().flatten() {
            let failure = (!report.is_green()).then_some((&report.fingerprint, report.timed_out));
            failure.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns whether the next prompt should ask for another approach: exactly once, two
    /// iterations before the limit.
    pub(crate) fn is_stall_warning_due(&self) -> bool {
        let max = self.plan.limits.stalls.unwrap_or(0);
        max > 1 && self.progress.stalls == max.saturating_sub(2).max(1)
    }
}
