//! What is recorded about a loop's start, so that a second look can compare with it.

use crate::agent::redact::Redactor;
use crate::engine::State;
use crate::engine::plan::Plan;
use crate::proof::{BaselineSpec, VariablePaths};
use crate::store::LoopDir;
use std::path::{Path, PathBuf};

/// The surroundings of a loop that its baseline covers.
pub(crate) struct StartRecord<'a> {
    plan: &'a Plan,
    home: Option<PathBuf>,
    checks: Vec<String>,
    own: Vec<PathBuf>,
    copies_sources: bool,
}

impl<'a> StartRecord<'a> {
    pub(crate) fn new(dir: &LoopDir, state: &'a State) -> Self {
        let plan = &state.plan;
        let redactor = Redactor::for_plan(plan);
        let commands = plan.proof.checks.iter().map(|check| &check.command);
        Self {
            plan,
            home: std::env::home_dir(),
            checks: commands
                .map(|command| redactor.restore(command, &plan.redacted))
                .collect(),
            own: own_paths(dir, plan),
            copies_sources: state.checkpoint.start.is_none(),
        }
    }

    pub(crate) fn spec(&self) -> BaselineSpec<'_> {
        BaselineSpec {
            workspace: &self.plan.workspace,
            home: self.home.as_deref(),
            path_dirs: path_dirs(),
            settings: VariablePaths::of_process(),
            checks: self.checks.iter().map(String::as_str).collect(),
            protect: &self.plan.proof.protect,
            own: self.own.clone(),
            copies_sources: self.copies_sources,
        }
    }
}

/// Returns the paths that ralph and the loop's agents may change: their own settings and state.
fn own_paths(dir: &LoopDir, plan: &Plan) -> Vec<PathBuf> {
    let state = dir.path().ancestors().nth(2).map(Path::to_owned);
    let agents = plan.agents();
    let agents = agents.flat_map(|agent| agent.own_paths.iter().map(PathBuf::from));
    state.into_iter().chain(agents).collect()
}

fn path_dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}
