//! Observes a loop for the host: calls its callbacks and collects the final report.

use super::report::{CheckResult, IterationReport, Report};
use crate::agent::task_dir::TaskDir;
use crate::engine::event::CheckReport;
use crate::engine::iteration::Iteration;
use crate::engine::iteration::describe_end;
use crate::engine::{Act, Event, ExitCode, Outcome, State, StopReason};
use crate::runner::Observer;
use crate::store::derived_files::DerivedFiles;
use crate::store::log_tail::last_lines;
use crate::store::{JournalHeader, JournalLine, LoopDir, OpenedJournal};
use std::time::Duration;

type OnEvent<'a> = Box<dyn FnMut(&Event) + Send + 'a>;
type OnAct<'a> = Box<dyn FnMut(&Act<'_>) + Send + 'a>;

pub(super) struct HostObserver<'a> {
    dir: LoopDir,
    files: DerivedFiles,
    on_event: OnEvent<'a>,
    on_act: OnAct<'a>,
    preflight: Vec<CheckResult>,
    iterations: Vec<IterationReport>,
    warnings: Vec<String>,
}

impl<'a> HostObserver<'a> {
    pub(super) fn new(
        dir: &LoopDir,
        opened: &OpenedJournal,
        on_event: OnEvent<'a>,
        on_act: OnAct<'a>,
    ) -> Self {
        let task = TaskDir::new(&opened.state.plan.workspace, &opened.header.name);
        Self {
            dir: dir.clone(),
            files: DerivedFiles::new(dir, task.path(), &opened.state),
            on_event,
            on_act,
            preflight: Vec::new(),
            iterations: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn add_warnings(&mut self, warnings: Vec<String>) {
        self.warnings.extend(warnings);
    }

    /// Builds the report of a loop whose runner has exited.
    pub(super) fn report(self, dir: &LoopDir, header: &JournalHeader, state: &State) -> Report {
        let outcome = state.outcome().cloned();
        let exit_code = outcome
            .as_ref()
            .map_or(ExitCode::Resumable, Outcome::exit_code);
        Report {
            name: header.name.clone(),
            success: exit_code == ExitCode::Success,
            stop_reason: outcome
                .as_ref()
                .map_or(StopReason::Paused, Outcome::stop_reason),
            outcome,
            exit_code,
            total_cost: state.reported_cost(),
            duration: Duration::from_millis(state.active_ms),
            worktree: state
                .plan
                .worktree
                .as_ref()
                .map(|worktree| worktree.path.clone()),
            directory: dir.path().to_owned(),
            preflight: self.preflight,
            iterations: self.iterations,
            warnings: self.warnings,
        }
    }

    /// Copies an iteration into the report, because the state keeps only the most recent ones.
    fn add_iteration(&mut self, last: &Iteration) {
        let known = self
            .iterations
            .last_mut()
            .filter(|known| known.iteration == last.number);
        let checks = known
            .map(|known| std::mem::take(&mut known.checks))
            .unwrap_or_default();
        self.iterations
            .retain(|known| known.iteration != last.number);
        self.iterations.push(IterationReport {
            iteration: last.number,
            steps: last.steps,
            cost: last.cost_usd,
            duration: Duration::from_millis(last.ms),
            checks,
            claimed: last.claimed,
            error: last
                .error
                .clone()
                .or_else(|| last.is_failure().then(|| describe_end(last))),
            denied: last.denied,
        });
    }

    fn add_check_result(
        &mut self,
        iteration: u32,
        check: usize,
        report: &CheckReport,
        state: &State,
    ) {
        let Some(planned) = state.plan.proof.checks.get(check) else {
            return;
        };
        let (output, _) = last_lines(&self.dir.check_log(iteration, &planned.slug));
        let result = CheckResult {
            command: planned.command.clone(),
            passed: report.is_green(),
            timed_out: report.timed_out,
            duration: Duration::from_millis(report.ms),
            output,
        };
        let last = self
            .iterations
            .last_mut()
            .filter(|last| last.iteration == iteration);
        let results = match last {
            Some(last) => &mut last.checks,
            None if iteration == 0 => &mut self.preflight,
            None => return,
        };
        // A claim made between iterations runs the same checks again. Keep only the latest results.
        results.truncate(check);
        results.push(result);
    }
}

impl Observer for HostObserver<'_> {
    fn event(&mut self, line: &JournalLine, state: &State) {
        self.files.record(line, state);
        if let Some(last) = state.recent.back() {
            self.add_iteration(last);
        }
        if let Event::Checked {
            iteration,
            check,
            report,
            ..
        } = &line.event
        {
            self.add_check_result(*iteration, *check, report, state);
        }
        (self.on_event)(&line.event);
    }

    fn act(&mut self, act: &Act<'_>) {
        (self.on_act)(act);
    }

    fn tick(&mut self, _: &State, _: Option<Duration>) -> Option<Duration> {
        None
    }

    fn warn(&mut self, message: &str) {
        self.warnings.push(message.to_owned());
    }
}
