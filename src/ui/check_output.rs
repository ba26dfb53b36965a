//! Formats the output of a red check or a failed SCM task: its last lines, or what matters of it.

use super::gutter::GutterWriter;
use super::truncate_to_width;
use crate::engine::failing_lines::failing_lines;
use crate::engine::plain_text::plain;
use crate::engine::plan::Scm;
use crate::engine::{Event, State};
use crate::store::LoopDir;
use crate::store::log_tail::{last_lines, log_end};
use std::path::PathBuf;

/// Maximum number of lines of a folded output.
const FOLDED_LINES: usize = 6;

/// The log of a red check or a failed SCM task.
pub(super) struct FailedLog {
    log: PathBuf,
    /// The path of a copy in the workspace, which is shown.
    pub(super) shown_path: String,
}

impl FailedLog {
    /// Returns the log that belongs to an event; `None` if the event reports no failure.
    pub(super) fn of_event(event: &Event, state: &State, dir: &LoopDir) -> Option<Self> {
        let (log, shown_path) = match event {
            Event::Checked {
                iteration,
                check,
                report,
                ..
            } if !report.is_green() => {
                let slug = &state.plan.proof.checks.get(*check)?.slug;
                (
                    dir.check_log(*iteration, slug),
                    state.plan.guardrail_log(*iteration, slug),
                )
            }
            Event::Committed {
                iteration,
                task,
                report,
            } if !report.is_success() => (
                dir.scm_task_log(*iteration, *task),
                state.plan.guardrail_log(*iteration, &Scm::slug(*task)),
            ),
            _ => return None,
        };
        Some(Self { log, shown_path })
    }

    /// Appends the log's last lines to `out`. Returns whether earlier lines were left out.
    pub(super) fn print_last_lines(&self, gutter: &str, width: usize, out: &mut Vec<u8>) -> bool {
        let mut writer = GutterWriter::new(gutter);
        writer.set_width(width);
        let (last, cut) = last_lines(&self.log);
        writer.feed(last.as_bytes(), out);
        writer.flush(out);
        cut
    }

    /// Appends to `out` the lines that say what failed, or else the last lines, one row each. Returns
    /// whether lines were left out.
    pub(super) fn print_folded(&self, gutter: &str, width: usize, out: &mut Vec<u8>) -> bool {
        let (text, cut) = log_end(&self.log);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let shown = if lines.len() <= FOLDED_LINES {
            lines.clone()
        } else {
            let mut failing = failing_lines(&text);
            // The first failure is often the cause. If no line names one, these are the last lines,
            // and the end says most.
            let is_end = lines.iter().rev().map(|line| line.trim());
            if is_end.take(failing.len()).eq(failing.iter().rev().copied()) {
                failing.drain(..failing.len().saturating_sub(FOLDED_LINES));
            } else {
                failing.truncate(FOLDED_LINES);
            }
            failing
        };
        for line in &shown {
            let row = truncate_to_width(plain(line).trim_end(), width);
            out.extend_from_slice(format!("{gutter}{row}\n").as_bytes());
        }
        cut || shown.len() < lines.len()
    }
}
