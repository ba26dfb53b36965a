//! Keeps the summaries of all loops up to date, and reads only what changed.

use super::activity::ActivityTail;
use super::summary::LoopSummary;
use crate::engine::{Liveness, Phase, Status};
use crate::git::project;
use crate::lifecycle::handle::{current_liveness, with_session};
use crate::store::{EndedLoop, LoopDir, LoopView, StateDir, view_with_inbox};
use crate::ui::age::short_path;
use crate::ui::one_line;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a loop as they were when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LoopStamp {
    journal: (u64, u64, i64, i64),
    inbox: u64,
}

impl LoopStamp {
    fn new(dir: &LoopDir) -> Self {
        let data = |path: PathBuf| fs::symlink_metadata(path).ok();
        Self {
            journal: data(dir.journal()).map_or((0, 0, 0, 0), |data| {
                (data.ino(), data.len(), data.mtime(), data.mtime_nsec())
            }),
            inbox: data(dir.inbox()).map_or(0, |data| data.len()),
        }
    }

    /// Returns the time of the last event, in milliseconds since 1970.
    fn changed_ms(self) -> i64 {
        self.journal.2 * 1000 + self.journal.3 / 1_000_000
    }
}

struct TrackedLoop {
    stamp: LoopStamp,
    liveness: Liveness,
    summary: Arc<LoopSummary>,
    /// The state of a running loop, so that new acts can be shown without reading it again.
    view: Option<Box<LoopView>>,
    tail: ActivityTail,
}

impl TrackedLoop {
    fn has_ended(&self) -> bool {
        !self.summary.is_running()
            && !matches!(self.summary.status, Status::Paused | Status::Crashed)
    }
}

/// The summaries of all loops.
pub(super) struct LoopTracker {
    state_dir: StateDir,
    loops: BTreeMap<String, TrackedLoop>,
    /// The archived loops that are listed, by the names of their directories.
    archived: BTreeMap<String, LoopDir>,
    /// The repository of each workspace.
    repositories: HashMap<PathBuf, String>,
}

impl LoopTracker {
    pub(super) fn new(state_dir: StateDir) -> Self {
        Self {
            state_dir,
            loops: BTreeMap::new(),
            archived: BTreeMap::new(),
            repositories: HashMap::new(),
        }
    }

    /// Reads the loops that changed: all of them, or only those that are running. Reads the details
    /// of the loops in `shown`. Returns whether a summary changed.
    pub(super) fn refresh(&mut self, scope: RefreshScope, shown: &BTreeSet<String>) -> bool {
        let mut changed = false;
        let names = match self.state_dir.loop_names() {
            Ok(mut names) if scope != RefreshScope::Running => {
                self.archived.clear();
                if scope == RefreshScope::AllAndArchived {
                    let archived = self.state_dir.archived_loops().into_iter();
                    let dirs = archived.map(|dir| (dir.name().to_owned(), dir));
                    self.archived
                        .extend(dirs.filter(|(name, _)| !names.contains(name)));
                }
                names.extend(self.archived.keys().cloned());
                let known = self.loops.len();
                let found: BTreeSet<&String> = names.iter().collect();
                self.loops.retain(|name, _| found.contains(name));
                changed |= self.loops.len() != known;
                names
            }
            _ => self.active_names(shown),
        };
        for name in names {
            changed |= self.refresh_one(&name, shown.contains(&name));
        }
        changed
    }

    /// Returns the loops that may change at any time, and those on the screen.
    fn active_names(&self, shown: &BTreeSet<String>) -> Vec<String> {
        let active = self.loops.iter();
        active
            .filter(|(name, one)| one.summary.is_running() || shown.contains(*name))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns the files whose changes are worth a new look: those of the running loops.
    pub(super) fn watched_files(&self) -> Vec<PathBuf> {
        let running = self
            .loops
            .iter()
            .filter(|(_, one)| one.summary.is_running());
        let mut paths = vec![self.state_dir.root().join("loops")];
        for (name, one) in running.take(WATCHED_MAX) {
            let dir = self.state_dir.loop_dir(name);
            paths.push(dir.journal());
            paths.extend(one.tail.path(&dir));
        }
        paths
    }

    /// Returns the summaries by name.
    pub(super) fn summaries(&self) -> Vec<Arc<LoopSummary>> {
        self.loops
            .values()
            .map(|one| Arc::clone(&one.summary))
            .collect()
    }

    /// Reads a loop if it changed, and returns whether its summary is another than before.
    fn refresh_one(&mut self, name: &str, is_shown: bool) -> bool {
        let archived = self.archived.get(name).cloned();
        let is_archived = archived.is_some();
        let dir = archived.unwrap_or_else(|| self.state_dir.loop_dir(name));
        let stamp = LoopStamp::new(&dir);
        let known = self.loops.get_mut(name);
        let is_same = known.as_ref().is_some_and(|one| {
            one.stamp == stamp
                && (one.summary.details.is_some() || !is_shown)
                && (one.has_ended() || current_liveness(&dir) == one.liveness)
        });
        let summary = match known {
            Some(one) if is_same => {
                let Some(view) = &one.view else { return false };
                if !one.tail.read(&dir, &view.state) {
                    return false;
                }
                let repository = one.summary.repository.clone();
                let live = one.tail.numbers(&view.state);
                LoopSummary::new(view, one.liveness, repository, &live)
            }
            _ => self.read(name, &dir, stamp, is_shown),
        };
        let summary = if is_archived {
            summary.archived(name)
        } else {
            summary
        };
        let Some(one) = self.loops.get_mut(name) else {
            return true;
        };
        let is_new = *one.summary != summary;
        if is_new {
            one.summary = Arc::new(summary);
        }
        is_new
    }

    /// Reads a loop, and keeps what is needed to notice its next change.
    fn read(&mut self, name: &str, dir: &LoopDir, stamp: LoopStamp, is_shown: bool) -> LoopSummary {
        let mut tail = self
            .loops
            .get_mut(name)
            .map(|one| std::mem::take(&mut one.tail))
            .unwrap_or_default();
        let ended = (!is_shown).then(|| EndedLoop::read(dir)).flatten();
        let mut liveness = Liveness::Idle;
        let mut view = None;
        let summary = if let Some(ended) = ended {
            let repository = self.repository(&ended.repository);
            LoopSummary::ended(ended, repository)
        } else {
            // Check the lock first, to see everything that an exiting runner wrote.
            liveness = current_liveness(dir);
            match view_with_inbox(dir) {
                Ok(read) => {
                    liveness = with_session(liveness, &read.state);
                    let repository = self.repository(read.state.plan.repository());
                    let is_running = liveness == Liveness::Running
                        && matches!(
                            read.state.phase,
                            Phase::Running { .. } | Phase::Killing { .. }
                        );
                    if is_running {
                        tail.read(dir, &read.state);
                    }
                    let live = if is_running {
                        tail.numbers(&read.state)
                    } else {
                        super::summary::LiveNumbers::default()
                    };
                    let summary = LoopSummary::new(&read, liveness, repository, &live);
                    view = is_running.then(|| Box::new(read));
                    summary
                }
                Err(error) => LoopSummary::unreadable(name, &error.to_string(), stamp.changed_ms()),
            }
        };
        let tracked = TrackedLoop {
            stamp,
            liveness,
            // Replaced by the caller, which compares the two.
            summary: self
                .loops
                .get(name)
                .map_or_else(|| Arc::new(summary.clone()), |one| Arc::clone(&one.summary)),
            view,
            tail,
        };
        self.loops.insert(name.to_owned(), tracked);
        summary
    }

    /// Returns the repository of a workspace, as it is shown.
    fn repository(&mut self, workspace: &Path) -> String {
        if let Some(known) = self.repositories.get(workspace) {
            return known.clone();
        }
        let shown = one_line(&short_path(&project(workspace)));
        self.repositories
            .insert(workspace.to_owned(), shown.clone());
        shown
    }
}

/// Which loops are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefreshScope {
    /// Those that may change at any time, and those on the screen.
    Running,
    All,
    AllAndArchived,
}

/// The most loops whose files are watched. The others are looked at every second.
const WATCHED_MAX: usize = 64;
