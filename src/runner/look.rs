//! Takes the second look: records the files of the loop's start, surveys what was touched since, and
//! runs the checks again in a view that has tests and settings as they were.

use super::check::SETUP_LOG;
use super::input::JobKey;
use super::job::JobResult;
use super::reconcile::Flow;
use super::task_files::FaultResult;
use super::{Runner, RunnerError};
use crate::engine::event::Fault;
use crate::engine::look::SecondLook;
use crate::engine::touched::TouchedFiles;
use crate::engine::{Effect, Event};
use crate::proof::view::{View, ViewRequest};
use crate::proof::{Baseline, BaselineSpec, VariablePaths};
use std::path::PathBuf;

impl Runner<'_> {
    /// Records the files of the loop's start, before its first agent can touch them. Returns the
    /// digest of the record; `None` if the loop takes no second look.
    pub(super) fn take_baseline(&self) -> FaultResult<Option<String>> {
        let plan = &self.rec.state.plan;
        if plan.proof.second_look == SecondLook::Never || plan.proof.checks.is_empty() {
            return Ok(None);
        }
        let commands = plan.proof.checks.iter().map(|check| &check.command);
        let commands: Vec<String> = commands
            .map(|command| self.rec.restore_secrets(command))
            .collect();
        let home = std::env::home_dir();
        let spec = BaselineSpec {
            workspace: &plan.workspace,
            home: home.as_deref(),
            path_dirs: path_dirs(),
            settings: VariablePaths::of_process(),
            checks: commands.iter().map(String::as_str).collect(),
            protect: &plan.proof.protect,
            own: self.own_paths(),
            copies_sources: self.rec.state.checkpoint.start.is_none(),
        };
        match Baseline::take(&spec, self.rec.dir.path()) {
            Ok(baseline) => Ok(Some(baseline.digest().to_owned())),
            Err(error) => Err((
                Fault::Disk,
                format!("cannot record the tests and settings that the loop begins with: {error}"),
            )),
        }
    }

    /// Returns the paths that ralph and the loop's agents may change: their own settings and state.
    fn own_paths(&self) -> Vec<PathBuf> {
        let state = self
            .rec
            .dir
            .path()
            .parent()
            .and_then(|loops| loops.parent());
        let agents = self.rec.state.plan.agents();
        let agents = agents.flat_map(|agent| agent.own_paths.iter().map(PathBuf::from));
        state.map(PathBuf::from).into_iter().chain(agents).collect()
    }

    /// Compares the files with the loop's start, and prepares the view if the checks must run again.
    pub(super) fn survey(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        self.remove_view();
        let (touched, failure) = match self.prepare_look() {
            Ok(touched) => (touched, None),
            Err(why) => (TouchedFiles::default(), Some(why)),
        };
        let view = self.view.iter().flat_map(View::weaknesses);
        let weaknesses = view.map(ToString::to_string).collect();
        self.rec.record(Event::Surveyed {
            iteration,
            touched,
            weaknesses,
            failure,
        })?;
        self.remove_unneeded_view();
        Ok(Flow::Again)
    }

    fn prepare_look(&mut self) -> Result<TouchedFiles, String> {
        let (dir, state) = (&self.rec.dir, &self.rec.state);
        let missing = "the tests and settings that the loop began with were not recorded";
        let digest = state.look.baseline.as_deref().ok_or(missing)?;
        let baseline = Baseline::open(dir.path(), digest)
            .map_err(|error| format!("the record of the loop's start is unusable: {error}"))?
            .ok_or("the record of the loop's start was deleted")?;
        let touched = baseline
            .touched(&state.plan.proof.allow, &state.look.accepted)
            .map_err(|error| format!("cannot compare files with the loop's start: {error}"))?;
        let changes = baseline
            .changes_for_view(&touched)
            .map_err(|error| format!("cannot restore the original tests: {error}"))?;
        let view = View::prepare(&ViewRequest {
            workspace: &state.plan.workspace,
            scratch: &dir.view_scratch(),
            changes: &changes,
            is_own_worktree: state.plan.worktree.is_some(),
        });
        self.view = Some(view.map_err(|error| format!("cannot prepare the view: {error}"))?);
        Ok(touched.files)
    }

    pub(super) fn start_recheck(
        &mut self,
        iteration: u32,
        check: usize,
    ) -> Result<Flow, RunnerError> {
        let log = self.recheck_log(check);
        self.start_check_job(JobKey::Recheck(iteration, check), check, &log)
    }

    pub(super) fn setup_ended(
        &mut self,
        iteration: u32,
        result: &JobResult,
    ) -> Result<(), RunnerError> {
        let order = Effect::SetUp { iteration };
        if self.rec.state.orders().contains(&order) {
            let log = self.rec.dir.check_log(iteration, SETUP_LOG);
            let (report, _) = self.read_report(JobKey::SetUp(iteration), None, &log, result);
            self.rec.record(Event::SetUp { iteration, report })?;
        }
        self.remove_unneeded_view();
        self.record_survivors("the setup command", &result.survivors)
    }

    pub(super) fn recheck_ended(
        &mut self,
        iteration: u32,
        check: usize,
        result: &JobResult,
    ) -> Result<(), RunnerError> {
        let order = Effect::Recheck { iteration, check };
        if !self.rec.state.orders().contains(&order) {
            self.remove_view();
            return Ok(());
        }
        let log = self.recheck_log(check);
        let report = self.check_report(JobKey::Recheck(iteration, check), check, &log, result);
        self.rec.record(Event::Rechecked {
            iteration,
            check,
            report,
        })?;
        self.remove_unneeded_view();
        self.record_survivors("a check", &result.survivors)
    }

    /// Removes the view unless something is about to run in it.
    pub(super) fn remove_unneeded_view(&mut self) {
        let orders = self.rec.state.orders();
        let is_sealed = self.rec.state.is_sealed();
        let is_needed = orders.iter().any(|order| match order {
            Effect::SetUp { .. } | Effect::Recheck { .. } => true,
            Effect::Check { .. } => is_sealed,
            _ => false,
        });
        if !is_needed {
            self.remove_view();
        }
    }

    /// Removes the view, or what a runner that was killed left of one.
    pub(super) fn remove_view(&mut self) {
        let removed = match self.view.take() {
            Some(view) => view.remove(),
            None => View::recover(&self.rec.dir.view_scratch()),
        };
        if let Err(error) = removed {
            self.rec.warn(&format!("cannot remove the view: {error}"));
        }
    }

    /// Returns the name of the log of a check in the view.
    fn recheck_log(&self, check: usize) -> String {
        format!("{}-original", self.rec.state.plan.proof.checks[check].slug)
    }
}

/// Returns the directories of `PATH`.
fn path_dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}
