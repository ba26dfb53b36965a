//! Runs checks again before the first iteration, in views of the workspace, and records their
//! labels.

use super::input::JobKey;
use super::job::JobResult;
use super::reconcile::Flow;
use super::{Runner, RunnerError};
use crate::engine::label::CheckProbe;
use crate::engine::{Effect, Event};
use crate::proof::view::{View, ViewRequest};
use crate::proof::{GARBLED, SourceFiles, ViewChange};

/// Maximum number of source files that are replaced in a view: each one has to be written.
const SOURCES_MAX: usize = 5000;

impl Runner<'_> {
    /// Prepares a view, and starts a check in it. Without a view, what the run would find out stays
    /// unknown.
    pub(super) fn start_probe(
        &mut self,
        check: usize,
        probe: CheckProbe,
    ) -> Result<Flow, RunnerError> {
        // The previous run has left the view if it was of the same kind.
        if self.view.is_none() {
            self.remove_view();
            self.view = self.view_for_probe(probe);
        }
        if self.view.is_none() {
            self.remove_view();
            self.record_probe(check, probe, None)?;
            return Ok(Flow::Again);
        }
        let log = self.probe_log(check, probe);
        self.start_check_job(JobKey::Probe(check, probe), check, &log)
    }

    fn view_for_probe(&self, probe: CheckProbe) -> Option<View> {
        let request = ViewRequest {
            workspace: &self.rec.state.plan.workspace,
            scratch: &self.rec.dir.view_scratch(),
            changes: &self.changes_for_probe(probe)?,
            is_own_worktree: false,
        };
        View::prepare_overlay(&request).ok()
    }

    /// Returns how the view differs from the workspace; `None` if there are no sources to replace,
    /// or too many.
    fn changes_for_probe(&self, probe: CheckProbe) -> Option<Vec<ViewChange>> {
        let text = match probe {
            CheckProbe::Again => return Some(Vec::new()),
            CheckProbe::Emptied => "",
            CheckProbe::Garbled => GARBLED,
            CheckProbe::Unknown => return None,
        };
        let plan = &self.rec.state.plan;
        let checks = plan.proof.checks.iter();
        let checks: Vec<String> = checks.map(|check| check.command.clone()).collect();
        let files = SourceFiles::list(&plan.workspace, &checks).ok()?;
        let is_some = !files.sources.is_empty() && files.sources.len() <= SOURCES_MAX;
        is_some.then(|| files.with_sources(text))
    }

    pub(super) fn probe_ended(
        &mut self,
        check: usize,
        probe: CheckProbe,
        result: &JobResult,
    ) -> Result<(), RunnerError> {
        let order = Effect::Probe { check, probe };
        if self.rec.state.orders().contains(&order) {
            let log = self.probe_log(check, probe);
            self.record_probe(check, probe, Some((&log, result)))?;
        }
        let next = self.rec.state.next_probe();
        if next.is_none_or(|(_, next)| next != probe) {
            self.remove_view();
        }
        self.record_survivors("a check", &result.survivors)
    }

    fn record_probe(
        &mut self,
        check: usize,
        probe: CheckProbe,
        run: Option<(&str, &JobResult)>,
    ) -> Result<(), RunnerError> {
        let report = run.map(|(log, result)| {
            let log = self.rec.dir.check_log(0, log);
            let key = JobKey::Probe(check, probe);
            self.read_report(key, Some(check), &log, result).0
        });
        self.rec.record(Event::Probed {
            check,
            probe,
            report,
        })
    }

    pub(super) fn record_labels(&mut self) -> Result<Flow, RunnerError> {
        let labels = self.rec.state.judge_labels();
        self.rec.record(Event::Labeled { labels })?;
        Ok(Flow::Again)
    }

    /// Returns the name of the log of an extra run.
    fn probe_log(&self, check: usize, probe: CheckProbe) -> String {
        let slug = &self.rec.state.plan.proof.checks[check].slug;
        format!("{slug}-{}", probe.as_str())
    }
}
