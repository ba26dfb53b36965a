//! Looks on for the host: keeps every iteration, passes on events and acts, and prints nothing.

use super::report::{CheckResult, IterationReport, Report};
use crate::agent::task_dir::TaskDir;
use crate::engine::event::CheckReport;
use crate::engine::prompt::how;
use crate::engine::state::Iteration;
use crate::engine::{Act, Event, State};
use crate::runner::Watch;
use crate::store::{Header, Line, LoopDir, Opened};
use crate::ui::cost::known_cost;
use crate::ui::derived_files::Files;
use crate::ui::output_tail::last_lines;
use std::time::Duration;

type OnEvent<'a> = Box<dyn FnMut(&Event) + Send + 'a>;
type OnAct<'a> = Box<dyn FnMut(&Act<'_>) + Send + 'a>;

/// Everything that a host is told of a loop, now and at its end.
pub(super) struct Observer<'a> {
    dir: LoopDir,
    files: Files,
    on_event: OnEvent<'a>,
    on_act: OnAct<'a>,
    preflight: Vec<CheckResult>,
    iterations: Vec<IterationReport>,
    warnings: Vec<String>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        dir: &LoopDir,
        opened: &Opened,
        on_event: OnEvent<'a>,
        on_act: OnAct<'a>,
    ) -> Self {
        let task = TaskDir::of(&opened.state.plan.workspace, &opened.header.name);
        Self {
            dir: dir.clone(),
            files: Files::of(dir, task.path(), &opened.state),
            on_event,
            on_act,
            preflight: Vec::new(),
            iterations: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Keeps words for a person.
    pub(super) fn note(&mut self, words: Vec<String>) {
        self.warnings.extend(words);
    }

    /// What came of the loop.
    pub(super) fn report(self, dir: &LoopDir, header: &Header, state: &State) -> Report {
        let outcome = state.outcome().cloned();
        let exit_code = outcome
            .as_ref()
            .map_or(3, crate::engine::Outcome::exit_code);
        Report {
            name: header.name.clone(),
            success: exit_code == 0,
            stop_reason: outcome
                .as_ref()
                .map_or("paused", crate::engine::Outcome::stop_reason)
                .to_owned(),
            outcome,
            exit_code,
            total_cost: known_cost(state),
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

    /// The state remembers the last iterations alone: each is taken down while it is there.
    fn take_down(&mut self, last: &Iteration) {
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
                .or_else(|| last.is_failure().then(|| how(last))),
            denied: last.denied,
        });
    }

    fn checked(&mut self, iteration: u32, check: usize, report: &CheckReport, state: &State) {
        let Some(what) = state.plan.proof.checks.get(check) else {
            return;
        };
        let (output, _) = last_lines(&self.dir.check_log(iteration, &what.slug));
        let result = CheckResult {
            command: what.command.clone(),
            passed: report.is_green(),
            timed_out: report.timed_out,
            duration: Duration::from_millis(report.ms),
            output: String::from_utf8_lossy(&output).into_owned(),
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
        // A claim between iterations is judged by the same checks once more.
        results.truncate(check);
        results.push(result);
    }
}

impl Watch for Observer<'_> {
    fn event(&mut self, line: &Line, state: &State) {
        self.files.event(line, state);
        if let Some(last) = state.recent.back() {
            self.take_down(last);
        }
        if let Event::Checked {
            iteration,
            check,
            report,
        } = &line.event
        {
            self.checked(*iteration, *check, report, state);
        }
        (self.on_event)(&line.event);
    }

    fn act(&mut self, act: &Act<'_>) {
        (self.on_act)(act);
    }

    fn tick(&mut self, _: &State, _: Option<Duration>) -> Option<Duration> {
        None
    }

    fn warn(&mut self, words: &str) {
        self.warnings.push(words.to_owned());
    }
}
