//! Loops that move between machines: the plan keeps its meaning, and its paths change.

use super::plan::{Plan, Signal, Worktree};
use super::state::State;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where a loop runs after it has moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewPlace {
    /// The machine's name, for people.
    pub(crate) host: String,
    /// How many machines have owned the loop, this one included.
    pub(crate) epoch: u64,
    /// The directory in which the agent and the checks run.
    pub(crate) workspace: PathBuf,
    /// The git worktree in which the loop works; `None` if it has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
    /// The user's home directory, where the loop was and where it is now; `None` if one is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) homes: Option<(PathBuf, PathBuf)>,
    /// The digest of the tests and settings that the loop began with, as recorded in the new place;
    /// `None` if they are not recorded yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) baseline: Option<String>,
}

impl State {
    /// Continues the loop in another place.
    pub(super) fn moved(&mut self, place: &NewPlace) {
        self.plan.relocate(place);
        self.look.baseline.clone_from(&place.baseline);
        // The process is one of another machine.
        self.process = None;
        self.boot = None;
        self.host = Some(place.host.clone());
        self.epoch = place.epoch;
    }
}

impl Plan {
    /// Changes every path of the plan that is inside the workspace, its worktree or the user's home.
    fn relocate(&mut self, place: &NewPlace) {
        let mut moves = vec![(self.workspace.clone(), place.workspace.clone())];
        if let (Some(from), Some(to)) = (&self.worktree, &place.worktree) {
            moves.push((from.path.clone(), to.path.clone()));
        }
        moves.extend(place.homes.clone());
        let rebase = |path: &mut PathBuf| {
            if let Some(moved) = moves.iter().find_map(|(from, to)| rebased(path, from, to)) {
                *path = moved;
            }
        };
        self.task.file.iter_mut().for_each(rebase);
        for signal in &mut self.proof.signals {
            if let Signal::File(path) = signal {
                rebase(path);
            }
        }
        for agent in std::iter::once(&mut self.agent).chain(&mut self.fallback) {
            for own in &mut agent.own_paths {
                let mut path = PathBuf::from(&*own);
                rebase(&mut path);
                *own = path.to_string_lossy().into_owned();
            }
        }
        self.workspace.clone_from(&place.workspace);
        self.worktree.clone_from(&place.worktree);
    }
}

/// Returns the path below `to` that corresponds to a path below `from`; `None` for other paths.
fn rebased(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    // Joining an empty path would add a slash.
    Some(if rest.as_os_str().is_empty() {
        to.to_owned()
    } else {
        to.join(rest)
    })
}
