//! Reports what loops did: as a page, as Markdown, and in the formats of CI systems.
//!
//! Everything in a report comes from the journal, the activity, the checkpoints and the logs of the
//! checks. All texts from agents, checks and files are untrusted: each format escapes them in one
//! place.

mod activity;
mod facts;
mod findings;
mod github;
mod html;
mod junit;
mod markdown;
pub(super) mod timeline;

pub(crate) use github::{annotations, job_summary};
pub(crate) use html::page;
pub(crate) use junit::{JUNIT_START, junit};
pub(crate) use markdown::markdown;

use crate::engine::receipt::{Receipt, ReceiptHistory};
use crate::engine::{Liveness, State, Status};
use crate::lifecycle::history::{LoopHistory, PastIteration};
use crate::lifecycle::live_view::live;
use crate::lifecycle::loop_changes::LoopChanges;
use crate::store::{LoopDir, Result, rfc3339};
use facts::Tone;
use findings::{Finding, Severity};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs;
use std::path::Path;
use timeline::Timeline;

/// How an HTML report begins. `ralph report` overwrites a file that begins like this.
pub(crate) const HTML_START: &str = "<!doctype html>\n<!-- ralph report -->\n";
/// How a report in Markdown begins.
pub(crate) const MARKDOWN_START: &str = "<!-- ralph report -->\n";

/// Replaces secrets in a text about the loop at this index. The journal and the activity contain
/// none, but diffs may.
pub(crate) type Redact<'a> = &'a dyn Fn(usize, &str) -> String;

/// What a report says about one loop.
pub(crate) struct LoopReport {
    history: LoopHistory,
    /// The receipt; `None` if the loop has not ended.
    receipt: Option<Receipt>,
    changes: LoopChanges,
    timeline: Timeline,
    findings: Vec<Finding>,
    is_archived: bool,
}

impl LoopReport {
    /// Reads everything about a loop, except for the activity and the diffs of its iterations.
    pub(crate) fn read(
        dir: &LoopDir,
        liveness: Liveness,
        receipt: Option<Receipt>,
        is_archived: bool,
    ) -> Result<Self> {
        let mut timeline = Timeline::default();
        let mut disputes = ReceiptHistory::default();
        let mut history = LoopHistory::read(dir, liveness, &mut |line, state| {
            timeline.add(line, state);
            disputes.add(&line.event, state, || rfc3339(line.at_ms));
        })?;
        history.view = live(dir, history.view, liveness);
        let changes = LoopChanges::read(&history);
        let findings = findings::find(&history, &changes, &disputes, &foreign_files(dir));
        Ok(Self {
            history,
            receipt,
            changes,
            timeline,
            findings,
            is_archived,
        })
    }

    /// Returns the time of the last event, in milliseconds since 1970.
    pub(crate) fn last_event_ms(&self) -> i64 {
        self.history.last_event_ms
    }

    /// Returns the loop's place in a report about several: what needs a person first comes first.
    pub(crate) fn urgency(&self) -> u8 {
        let newest = self.findings.iter().map(|finding| finding.severity).min();
        match (newest, self.tone()) {
            (Some(Severity::Alarm), _) => 0,
            (_, Tone::Bad) => 1,
            (_, Tone::Open) => 2,
            (_, Tone::Good) => 3,
        }
    }

    /// Returns whether the loop's agent works in this directory or above it.
    pub(crate) fn works_in(&self, directory: &Path) -> bool {
        let workspace = &self.state().plan.workspace;
        let workspace = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.clone());
        directory.starts_with(workspace)
    }

    fn name(&self) -> &str {
        &self.history.view.header.name
    }

    fn state(&self) -> &State {
        &self.history.view.state
    }

    fn status(&self) -> Status {
        self.state().status(self.history.liveness)
    }

    fn iterations(&self) -> &[PastIteration] {
        &self.history.iterations
    }
}

/// Returns the names of files that other processes left in place of ralph's own.
fn foreign_files(dir: &LoopDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.contains(".aside-")).collect();
    names.sort_unstable();
    names
}

/// Formats a time in the local time zone: `18 Nov 07:31`.
fn clock(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    let local = time.to_zoned(TimeZone::system());
    local.strftime("%-d %b %H:%M").to_string()
}

/// Cuts a text to at most `max` bytes, and returns how many bytes were left out.
fn cut(text: &str, max: usize) -> (&str, usize) {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], text.len() - end)
}
