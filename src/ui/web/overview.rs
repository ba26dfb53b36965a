//! Reads a row about each loop, and reads a loop again only when its files have changed. The first
//! look at many loops may end early, with the newest ones.

use crate::engine::event::{CheckReport, Request};
use crate::engine::{Liveness, State};
use crate::git::project::repository;
use crate::lifecycle::handle::{is_held, read_loop};
use crate::lifecycle::live_view::live;
use crate::store::{LoopDir, LoopView, StateDir, StoreError};
use crate::ui::age::short_path;
use crate::ui::loop_table::current_text;
use crate::ui::{one_line, status, truncate_to_width};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A row of each loop as JSON, by the loop's name.
pub(super) type LoopRows = BTreeMap<String, Arc<str>>;

/// How long a running loop's row is used although its activity has changed.
const REFRESH: Duration = Duration::from_secs(2);

/// The most columns of the text about what a loop does.
const NOW_WIDTH: usize = 300;
/// Loops that are read before the time is checked again.
const BATCH: usize = 16;

/// What a look at all loops has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LoopScan {
    pub(super) rows: LoopRows,
    /// Loops that have not been read yet, all of them older than the ones in `rows`.
    pub(super) unread: usize,
}

/// The rows of all loops.
pub(super) struct Overview {
    state_dir: StateDir,
    known: BTreeMap<String, KnownLoop>,
}

struct KnownLoop {
    row: Arc<str>,
    /// The files that change when the loop does something.
    files: LoopStamps,
    activity: ChangeStamp,
    activity_path: PathBuf,
    is_live: bool,
    checked: Instant,
}

impl Overview {
    pub(super) fn new(state_dir: &StateDir) -> Self {
        Self {
            state_dir: state_dir.clone(),
            known: BTreeMap::new(),
        }
    }

    /// Returns the current rows. Stops reading loops that it does not know after `patience`.
    pub(super) fn scan(&mut self, patience: Duration) -> LoopScan {
        let begun = Instant::now();
        let names = self.state_dir.loop_names().unwrap_or_default();
        let mut known = std::mem::take(&mut self.known);
        let mut new = Vec::new();
        for name in names {
            let dir = self.state_dir.loop_dir(&name);
            match known.remove(&name) {
                Some(one) if one.is_current(&dir) => drop(self.known.insert(name, one)),
                Some(_) => drop(self.known.insert(name, KnownLoop::read(&dir))),
                None => new.push((ChangeStamp::of(&dir.journal()).mtime, dir)),
            }
        }
        new.sort_by_key(|(written, _)| std::cmp::Reverse(*written));
        let mut unread = new.len();
        for batch in new.chunks(BATCH) {
            self.known.extend(read_batch(batch));
            unread -= batch.len();
            if begun.elapsed() >= patience {
                break;
            }
        }
        let rows = self.known.iter();
        let rows = rows.map(|(name, one)| (name.clone(), Arc::clone(&one.row)));
        LoopScan {
            rows: rows.collect(),
            unread,
        }
    }
}

/// Reads loops on several threads.
fn read_batch(batch: &[((i64, i64), LoopDir)]) -> Vec<(String, KnownLoop)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let read = |part: &[((i64, i64), LoopDir)]| {
        let loops = part.iter();
        let read = loops.map(|(_, dir)| (dir.name().to_owned(), KnownLoop::read(dir)));
        read.collect::<Vec<_>>()
    };
    if batch.len() < 8 || threads == 1 {
        return read(batch);
    }
    std::thread::scope(|scope| {
        let parts = batch.chunks(batch.len().div_ceil(threads));
        let parts: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let parts = parts.into_iter();
        parts
            .flat_map(|part| part.join().unwrap_or_default())
            .collect()
    })
}

impl KnownLoop {
    fn read(dir: &LoopDir) -> Self {
        let files = LoopStamps::of(dir);
        let checked = Instant::now();
        let read = read_loop(dir);
        let (row, is_live, iteration) = match read {
            Ok((view, liveness)) => {
                let view = live(dir, view, liveness);
                let iteration = view.state.iteration;
                let row = row(dir, &view, liveness);
                (row, liveness != Liveness::Idle, iteration)
            }
            Err(error) => (unreadable(dir, &error), false, 0),
        };
        let activity_path = dir.activity(iteration);
        Self {
            row: super::routes::to_text(row).into(),
            files,
            activity: ChangeStamp::of(&activity_path),
            activity_path,
            is_live,
            checked,
        }
    }

    fn is_current(&self, dir: &LoopDir) -> bool {
        if self.files != LoopStamps::of(dir) {
            return false;
        }
        // A killed runner changes no file.
        let is_fresh = !self.is_live || self.checked.elapsed() < REFRESH;
        is_fresh || (self.activity == ChangeStamp::of(&self.activity_path) && is_held(dir))
    }
}

/// What shows that a file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangeStamp {
    len: u64,
    inode: u64,
    mtime: (i64, i64),
}

impl ChangeStamp {
    pub(super) fn of(path: &Path) -> Self {
        let data = fs::symlink_metadata(path);
        data.map_or_else(
            |_| Self::default(),
            |data| Self {
                len: data.len(),
                inode: data.ino(),
                mtime: (data.mtime(), data.mtime_nsec()),
            },
        )
    }
}

/// The files that change whenever a loop's state does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LoopStamps([ChangeStamp; 4]);

impl LoopStamps {
    pub(super) fn of(dir: &LoopDir) -> Self {
        let paths = [dir.journal(), dir.inbox(), dir.lock(), dir.start_mark()];
        Self(paths.map(|path| ChangeStamp::of(&path)))
    }
}

/// Returns what a list shows about a loop.
pub(super) fn row(dir: &LoopDir, view: &LoopView, liveness: Liveness) -> Value {
    let LoopView { header, state, .. } = view;
    let workspace = &state.plan.workspace;
    let from = state
        .plan
        .worktree
        .as_ref()
        .map_or(workspace, |own| &own.from);
    let outcome = state.outcome_summary();
    let text = one_line(&current_text(dir, view, liveness));
    let text = truncate_to_width(&text, NOW_WIDTH);
    let project = repository(from).project;
    json!({
        "name": dir.name(),
        "status": state.status(liveness).as_str(),
        "outcome": outcome.as_ref().map(|outcome| &outcome.kind),
        "why": (liveness == Liveness::Idle && !text.is_empty()).then_some(&text),
        "live": liveness != Liveness::Idle,
        "task": status::task(state),
        "agent": state.agent().name,
        "iteration": state.iteration,
        "max_iterations": state.last_number(),
        "cost_usd": state.cost_usd,
        "cost_unknown": state.reported_cost().is_none(),
        "max_cost_usd": state.plan.limits.cost_usd,
        "tokens": state.tokens.total(),
        "active_ms": state.active_ms,
        "max_time_ms": state.plan.limits.time_ms,
        "started_ms": header.created_ms,
        "updated_ms": state.wall_ms,
        "iteration_started_ms": state.iteration_wall_ms,
        "resting_until_ms": status::resting_until(state),
        "now": (liveness != Liveness::Idle).then_some(&text),
        "request": request(state),
        "parent": header.parent,
        "background": header.background,
        "workspace": workspace.display().to_string(),
        "workspace_short": short_path(workspace),
        "project": project.display().to_string(),
        "project_short": short_path(&project),
        "checks": check_marks(&state.checks),
        "history": recent(state),
    })
}

fn unreadable(dir: &LoopDir, error: &StoreError) -> Value {
    json!({
        "name": dir.name(),
        "status": "unreadable",
        "why": error.to_string(),
        "live": false,
        "checks": [],
        "history": [],
    })
}

/// Returns the request that is in force but not yet carried out; `None` if there is none.
fn request(state: &State) -> Option<&'static str> {
    match state.request {
        Request::Go => None,
        Request::Pause | Request::PauseNow => Some("pause"),
        Request::Stop | Request::StopNow => Some("stop"),
    }
}

/// Returns for each check whether it is green; null if it has not run.
pub(super) fn check_marks(checks: &[Option<CheckReport>]) -> Vec<Option<bool>> {
    let marks = checks.iter();
    marks
        .map(|report| report.as_ref().map(CheckReport::is_green))
        .collect()
}

/// Returns the last iterations, each as the numbers of green checks and of checks that ran, and
/// whether its agent failed.
fn recent(state: &State) -> Vec<Value> {
    let rows = state.recent.iter().map(|one| {
        let ran = one.checks.iter().flatten();
        let green = ran.clone().filter(|report| report.is_green()).count();
        json!([green, ran.count(), state.has_failed(one)])
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn an_early_end_leaves_out_the_oldest_loops() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::new(root.path().to_owned());
        let count = BATCH * 2 + 5;
        let now = SystemTime::now();
        for number in 0..count {
            let dir = state_dir.loop_dir(&format!("loop-{number:03}"));
            fs::create_dir_all(dir.path()).unwrap();
            // It cannot be read, which makes a row, too.
            let journal = fs::File::create(dir.journal()).unwrap();
            let age = Duration::from_secs((number * 7 % count) as u64);
            journal.set_modified(now - age).unwrap();
        }
        let mut overview = Overview::new(&state_dir);
        let first = overview.scan(Duration::ZERO);
        assert_eq!((first.rows.len(), first.unread), (BATCH, count - BATCH));
        let is_new = |number: usize| number * 7 % count < BATCH;
        let newest = (0..count).filter(|number| is_new(*number));
        let newest: Vec<_> = newest.map(|number| format!("loop-{number:03}")).collect();
        assert_eq!(first.rows.keys().cloned().collect::<Vec<_>>(), newest);
        let second = overview.scan(Duration::ZERO);
        assert_eq!((second.rows.len(), second.unread), (2 * BATCH, 5));
        let last = overview.scan(Duration::ZERO);
        assert_eq!((last.rows.len(), last.unread), (count, 0));
        assert_eq!(overview.scan(Duration::ZERO), last);
    }
}
