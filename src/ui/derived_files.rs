//! The files for people and scripts beside the journal: `iterations.log` and `progress.md`.

use super::event_line::has_failed;
use super::{one_line, scm_text};
use crate::engine::event::CheckReport;
use crate::engine::failure::Kind;
use crate::engine::format::{dollars, duration};
use crate::engine::prompt::{how, how_red};
use crate::engine::{Event, State};
use crate::os::regular;
use crate::store::dir::append_file;
use crate::store::{Line, LoopDir, rfc3339};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The derived files of one loop: what cannot be written is not worth a loop.
pub struct Files {
    log: Option<File>,
    task_dir: PathBuf,
    /// The last iteration that had ended when this runner began.
    ended: Option<u32>,
}

impl Files {
    /// The files of this loop, whose agent has this directory for its markers.
    pub fn of(dir: &LoopDir, task_dir: &Path, state: &State) -> Self {
        let ended = state.recent.back().map(|last| last.number);
        Self {
            log: append_file(&dir.iterations_log()).ok(),
            task_dir: task_dir.to_owned(),
            ended,
        }
    }

    /// Writes down what an event means.
    pub fn event(&mut self, line: &Line, state: &State) {
        let ended = state.recent.back().map(|last| last.number);
        if !matches!(line.event, Event::Opened { .. }) || ended != self.ended {
            let _ = self
                .log
                .as_mut()
                .map(|log| iterations_log(log, line, state));
        }
        let _ = progress(&self.task_dir, line, state);
    }
}

/// Appends a line per start, end, failure and completion.
fn iterations_log(log: &mut File, line: &Line, state: &State) -> io::Result<()> {
    let words = match &line.event {
        Event::Started { iteration, .. } => {
            format!("[START] iteration {}", state.place(*iteration))
        }
        Event::Ended { iteration, report } => {
            let last = state.recent.back();
            let word = if last.is_some_and(|last| has_failed(last, state)) {
                "FAIL"
            } else {
                "END"
            };
            let reason = last.and_then(|last| last.reason);
            let reason = reason
                .map(|reason| format!(" reason={}", reason.kind.word()))
                .unwrap_or_default();
            let exit = match (report.exit.code, report.exit.signal) {
                (Some(code), _) => code.to_string(),
                (None, signal) => {
                    signal.map_or_else(|| "none".into(), |signal| format!("signal-{signal}"))
                }
            };
            format!(
                "[{word}] iteration {iteration} exit={exit} duration={}{reason}",
                duration(report.ms).replace(' ', "")
            )
        }
        Event::Opened { .. } => match state.recent.back().filter(|last| {
            last.number == state.iteration && last.how == crate::engine::state::How::Interrupted
        }) {
            Some(last) => format!("[END] iteration {} interrupted", last.number),
            None => return Ok(()),
        },
        Event::Finished {
            outcome,
            iterations,
            ..
        } => {
            format!(
                "[{}] loop complete after {iterations} iterations: {}",
                outcome.kind.to_uppercase(),
                one_line(&outcome.detail)
            )
        }
        _ => return Ok(()),
    };
    let text = format!("{} {words}\n", rfc3339(line.at_ms));
    log.write_all(text.as_bytes())
}

/// Writes `progress.md` anew once an iteration has its verdict.
fn progress(task_dir: &Path, line: &Line, state: &State) -> io::Result<()> {
    let judged = match &line.event {
        Event::Ended { .. } => state.plan.proof.checks.is_empty() || state.outcome().is_some(),
        Event::Checked { check, .. } => check + 1 == state.plan.proof.checks.len(),
        Event::Committed { .. } => true,
        Event::Opened { .. } => state.iteration > 0,
        _ => false,
    };
    if !judged || state.iteration == 0 || !task_dir.is_dir() {
        return Ok(());
    }
    // Cut to its length after writing, not before: some file systems flush a file that was emptied.
    let text = progress_text(state);
    let mut file = regular::create(&task_dir.join("progress.md"))?;
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
        let who = iteration
            .agent
            .as_ref()
            .map(|name| format!("{name}, "))
            .unwrap_or_default();
        let _ = write!(
            text,
            "- Agent: {who}{}\n- Steps: {steps}\n- Cost: {cost}\n- Duration: {}\n",
            how(iteration),
            duration(iteration.ms)
        );
        // Who ended it, and why, is how it ended.
        if let Some(reason) = iteration
            .reason
            .filter(|reason| reason.kind != Kind::Killed)
        {
            let counts = if iteration.refunded {
                ", not counted"
            } else {
                ""
            };
            let _ = writeln!(text, "- Reason: {}{counts}", reason.kind.words());
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
                "- Not allowed ({}): {}",
                iteration.denied,
                one_line(denial)
            );
        }
        for (check, report) in state.plan.proof.checks.iter().zip(&iteration.checks) {
            let verdict = match report {
                None => "not run".into(),
                Some(report) if report.is_green() => format!("PASS ({})", duration(report.ms)),
                Some(report) => format!("FAIL ({}, {})", how_red(report), duration(report.ms)),
            };
            let _ = writeln!(text, "- Check `{}`: {verdict}", check.command);
        }
        for (task, report) in iteration.tasks.iter().enumerate() {
            let _ = writeln!(
                text,
                "- SCM `{}`: {}",
                scm_text::name(state, task),
                scm_text::verdict(report)
            );
        }
        if let Some(report) = &iteration.saved {
            let _ = writeln!(text, "- Worktree: {}", scm_text::verdict(report));
        }
    }
    text
}
