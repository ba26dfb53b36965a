//! Writes `iterations.log` and `progress.md`, which people and scripts read instead of the journal.

use super::dir::append_file;
use super::{JournalLine, LoopDir, rfc3339};
use crate::engine::display::{code_span, one_line};
use crate::engine::event::CheckReport;
use crate::engine::failure::FailureKind;
use crate::engine::format::{dollars, duration};
use crate::engine::iteration::describe_end;
use crate::engine::prompt::describe_red_check;
use crate::engine::task_text::{task_name, task_verdict};
use crate::engine::{Event, State};
use crate::os::regular_file;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the progress report in the task directory.
pub(crate) const PROGRESS_FILE: &str = "progress.md";

/// Writes one loop's derived files. Ignores write errors, because these files must not end a loop.
pub(crate) struct DerivedFiles {
    log: Option<File>,
    task_dir: PathBuf,
    /// The number of the last iteration that had ended when this runner started; `None` if none
    /// had.
    ended: Option<u32>,
}

impl DerivedFiles {
    /// Opens `iterations.log` in `dir`. Later calls write `progress.md` to `task_dir`.
    pub(crate) fn new(dir: &LoopDir, task_dir: &Path, state: &State) -> Self {
        let ended = state.recent.back().map(|last| last.number);
        Self {
            log: append_file(&dir.iterations_log()).ok(),
            task_dir: task_dir.to_owned(),
            ended,
        }
    }

    /// Updates the files after `line` has been applied to `state`.
    pub(crate) fn record(&mut self, line: &JournalLine, state: &State) {
        let ended = state.recent.back().map(|last| last.number);
        if !matches!(line.event, Event::Opened { .. }) || ended != self.ended {
            let _ = self
                .log
                .as_mut()
                .map(|log| append_log_line(log, line, state));
        }
        let _ = write_progress(&self.task_dir, line, state);
    }
}

/// Appends a line to the log for a start, end, failure or completion. Other events add no line.
fn append_log_line(log: &mut File, line: &JournalLine, state: &State) -> io::Result<()> {
    let message = match &line.event {
        Event::Started { iteration, .. } => {
            format!("[START] iteration {}", state.iteration_label(*iteration))
        }
        Event::Ended { iteration, report } => {
            let last = state.recent.back();
            let tag = if last.is_some_and(|last| state.has_failed(last)) {
                "FAIL"
            } else {
                "END"
            };
            let reason = last.and_then(|last| Some((last.reason?.kind, last.end)));
            let reason = reason
                .map(|(kind, why)| format!(" reason={} why={}", kind.as_str(), why.as_str()))
                .unwrap_or_default();
            let exit = match (report.exit.code, report.exit.signal) {
                (Some(code), _) => code.to_string(),
                (None, signal) => {
                    signal.map_or_else(|| "none".into(), |signal| format!("signal-{signal}"))
                }
            };
            format!(
                "[{tag}] iteration {iteration} exit={exit} duration={}{reason}",
                duration(report.ms).replace(' ', "")
            )
        }
        Event::Opened { .. } => match state.recent.back().filter(|last| {
            last.number == state.iteration
                && last.end == crate::engine::iteration::IterationEnd::Interrupted
        }) {
            Some(last) => format!("[END] iteration {} interrupted", last.number),
            None => return Ok(()),
        },
        Event::Finished {
            outcome,
            iterations,
            success,
            ..
        } => {
            format!(
                "[{}] loop {} after {iterations} iterations: {}",
                outcome.kind.to_uppercase(),
                if *success { "complete" } else { "ended" },
                one_line(&outcome.detail)
            )
        }
        _ => return Ok(()),
    };
    let text = format!("{} {message}\n", rfc3339(line.at_ms));
    log.write_all(text.as_bytes())
}

/// Rewrites `progress.md` once the iteration's checks and SCM tasks have ended.
fn write_progress(task_dir: &Path, line: &JournalLine, state: &State) -> io::Result<()> {
    let judged = match &line.event {
        Event::Ended { .. } => state.plan.proof.checks.is_empty() || state.outcome().is_some(),
        Event::Checked { .. } => state.is_checked(),
        Event::Committed { .. } => true,
        Event::Opened { .. } => state.iteration > 0,
        _ => false,
    };
    // An agent may have put a link in place of the directory, to a place with a file of this name.
    let is_dir = fs::symlink_metadata(task_dir).is_ok_and(|data| data.is_dir());
    if !judged || state.iteration == 0 || !is_dir {
        return Ok(());
    }
    // Truncate after writing, not before: some file systems flush a truncated file when it is
    // closed.
    let text = progress_text(state);
    let mut file = regular_file::create(&task_dir.join(PROGRESS_FILE))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

fn progress_text(state: &State) -> String {
    let mut text = String::from("# Progress\n");
    if let Some(first) = state.recent.front().filter(|first| first.number > 1) {
        let _ = write!(
            text,
            "\nIterations 1 to {} are not listed here.\n",
            first.number - 1
        );
    }
    for iteration in &state.recent {
        let green = !iteration.checks.is_empty()
            && iteration
                .checks
                .iter()
                .all(|check| check.as_ref().is_some_and(CheckReport::is_green));
        let verdict = match (iteration.checks.is_empty(), green) {
            (true, _) if iteration.claimed => "CLAIMED",
            (true, _) => "OPEN",
            (false, true) => "PASS",
            (false, false) => "FAIL",
        };
        let steps = iteration
            .steps
            .map_or_else(|| "unknown".into(), |steps| steps.to_string());
        let cost = iteration.cost_usd.map_or_else(|| "unknown".into(), dollars);
        let _ = write!(text, "\n## Iteration {} — {verdict}\n\n", iteration.number);
        let agent = iteration
            .agent
            .as_ref()
            .map(|name| format!("{name}, "))
            .unwrap_or_default();
        let _ = write!(
            text,
            "- Agent: {agent}{}\n- Steps: {steps}\n- Cost: {cost}\n- Duration: {}\n",
            describe_end(iteration),
            duration(iteration.ms)
        );
        // The "Agent" line already says that ralph killed the agent.
        if let Some(reason) = iteration
            .reason
            .filter(|reason| reason.kind != FailureKind::Killed)
        {
            let counts = if iteration.refunded {
                ", not counted"
            } else {
                ""
            };
            let _ = writeln!(text, "- Reason: {}{counts}", reason.kind.describe());
        }
        if let Some(tokens) = iteration.tokens {
            let _ = writeln!(text, "- Tokens: {}", tokens.total());
        }
        if let Some(error) = &iteration.error {
            let _ = writeln!(text, "- Error: {}", one_line(error));
        }
        if let Some(denial) = &iteration.denial {
            let _ = writeln!(
                text,
                "- Denied ({}): {}",
                iteration.denied,
                one_line(denial)
            );
        }
        for (check, report) in state.plan.proof.checks.iter().zip(&iteration.checks) {
            let verdict = match report {
                None => "not run".into(),
                Some(report) if report.is_green() => format!("PASS ({})", duration(report.ms)),
                Some(report) => format!(
                    "FAIL ({}, {})",
                    describe_red_check(report),
                    duration(report.ms)
                ),
            };
            let why = report.as_ref().filter(|_| !check.is_held_out());
            let why = why.and_then(|report| report.line.as_deref());
            let why = why.map(|line| format!(": {}", code_span(line)));
            let command = if check.is_held_out() {
                check.label()
            } else {
                code_span(&check.command)
            };
            let _ = writeln!(
                text,
                "- Check {command}: {verdict}{}",
                why.unwrap_or_default()
            );
        }
        for (task, report) in iteration.tasks.iter().enumerate() {
            let _ = writeln!(
                text,
                "- SCM `{}`: {}",
                task_name(state, task),
                task_verdict(report)
            );
        }
        if let Some(report) = &iteration.worktree_commit {
            let _ = writeln!(text, "- Worktree: {}", task_verdict(report));
        }
    }
    text
}
