//! Reads loops on a thread of its own, so that slow files never delay a key.
//!
//! The thread keeps only the newest version of everything it reads: a terminal that is too slow to
//! draw it all skips some.

use super::activity::ActivityLines;
use super::page_data::{
    DiffData, PageData, PagePart, PageRequest, PageUpdate, read_past, split_patch, text_lines,
};
use super::summary::LoopSummary;
use super::tracker::{LoopTracker, RefreshScope};
use crate::engine::Liveness;
use crate::lifecycle::handle::current_liveness;
use crate::lifecycle::history::LoopHistory;
use crate::lifecycle::watcher::{THREAD_STACK_SIZE, ThreadWaker, WakeReason, WakingWatcher};
use crate::os::regular_file;
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::store::{LoopDir, StateDir};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often running loops are looked at if no file changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often all other loops are looked at.
const FULL_INTERVAL: Duration = Duration::from_secs(4);
/// The shortest time between two looks, however often files change.
const PAUSE: Duration = Duration::from_millis(200);
/// The most bytes of a prompt or a log that are read.
const TEXT_MAX: u64 = 512 << 10;

/// What the user looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Interest {
    /// The loops on the screen.
    pub(super) shown: BTreeSet<String>,
    pub(super) page: Option<PageRequest>,
    /// Whether archived loops are listed.
    pub(super) archived: bool,
    /// Increases when all loops must be looked at, such as after a command.
    pub(super) generation: u64,
}

/// What was read since the last look.
#[derive(Default)]
pub(super) struct News {
    pub(super) loops: Option<Vec<Arc<LoopSummary>>>,
    /// The updates of a page, with the name of its loop.
    pub(super) page: Vec<(String, PageUpdate)>,
}

#[derive(Default)]
struct Shared {
    interest: Mutex<Interest>,
    news: Mutex<News>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that reads loops.
pub(super) struct LoopReader {
    shared: Arc<Shared>,
    waker: ThreadWaker,
    interest: Interest,
}

impl LoopReader {
    /// Starts the thread. It wakes `main` when it has news.
    pub(super) fn start(state_dir: StateDir, main: ThreadWaker) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (watcher, waker) = WakingWatcher::new()?;
        let thread = ReaderThread {
            tracker: LoopTracker::new(state_dir.clone()),
            state_dir,
            shared: Arc::clone(&shared),
            page: None,
            watcher,
            main,
        };
        std::thread::Builder::new()
            .stack_size(THREAD_STACK_SIZE * 4)
            .spawn(move || thread.run())?;
        Ok(Self {
            shared,
            waker,
            interest: Interest::default(),
        })
    }

    /// Sets what to read.
    pub(super) fn set_interest(&mut self, interest: Interest) {
        if self.interest != interest {
            self.interest = interest.clone();
            *lock(&self.shared.interest) = interest;
            self.waker.wake();
        }
    }

    pub(super) fn take_news(&self) -> News {
        std::mem::take(&mut lock(&self.shared.news))
    }
}

struct ReaderThread {
    state_dir: StateDir,
    tracker: LoopTracker,
    shared: Arc<Shared>,
    page: Option<PageReader>,
    watcher: WakingWatcher,
    main: ThreadWaker,
}

impl ReaderThread {
    fn run(mut self) {
        let (mut full_at, mut generation) = (Instant::now(), 0);
        let mut is_first = true;
        loop {
            let started = Instant::now();
            let interest = lock(&self.shared.interest).clone();
            let all = is_first || started >= full_at || interest.generation != generation;
            if all {
                full_at = started + FULL_INTERVAL;
                generation = interest.generation;
            }
            let scope = match (all, interest.archived) {
                (false, _) => RefreshScope::Running,
                (true, false) => RefreshScope::All,
                (true, true) => RefreshScope::AllAndArchived,
            };
            let changed = self.tracker.refresh(scope, &interest.shown);
            let updates = self.read_page(interest.page.as_ref());
            let has_news = changed || is_first || !updates.is_empty();
            if has_news {
                let mut news = lock(&self.shared.news);
                if changed || is_first {
                    news.loops = Some(self.tracker.summaries());
                }
                for (name, update) in updates {
                    let kind = std::mem::discriminant(&update);
                    news.page
                        .retain(|(_, old)| std::mem::discriminant(old) != kind);
                    news.page.push((name, update));
                }
                drop(news);
                self.main.wake();
            }
            is_first = false;
            self.wait(started);
        }
    }

    /// Waits for a change, but not so short that constant changes keep a processor busy.
    fn wait(&mut self, started: Instant) {
        let mut files = self.tracker.watched_files();
        if let Some(page) = &self.page {
            files.extend(page.watched_files());
        }
        self.watcher.watch(&files);
        if self.watcher.wait(POLL_INTERVAL) == WakeReason::FilesChanged {
            let rest = PAUSE.saturating_sub(started.elapsed());
            self.watcher.wait_for_waker(rest);
        }
    }

    fn read_page(&mut self, request: Option<&PageRequest>) -> Vec<(String, PageUpdate)> {
        let Some(request) = request else {
            self.page = None;
            return Vec::new();
        };
        if self
            .page
            .as_ref()
            .is_none_or(|page| page.name != request.name)
        {
            let dir = self.state_dir.find_loop(&request.name).ok();
            let dir = dir.or_else(|| self.state_dir.find_archived(&request.name));
            let dir = dir.unwrap_or_else(|| self.state_dir.loop_dir(&request.name));
            self.page = Some(PageReader::new(request.name.clone(), dir));
        }
        let page = self.page.as_mut().expect("it was just set");
        let updates = page.read(request);
        let named = updates
            .into_iter()
            .map(|update| (request.name.clone(), update));
        named.collect()
    }
}

/// The trees at the start and at the newest checkpoint; `None` if there are none.
#[derive(PartialEq)]
struct ComparedTrees(Option<(String, String)>);

/// The size and the time of the last change of a file.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let data = fs::symlink_metadata(path).ok()?;
    Some((data.ino(), data.len(), data.mtime(), data.mtime_nsec()))
}

/// Reads the parts of one loop that its page shows.
struct PageReader {
    name: String,
    dir: LoopDir,
    /// The journal that was read, and whether a runner worked on the loop.
    journal: Option<(Stamp, Liveness)>,
    history: Option<LoopHistory>,
    past: Arc<PageData>,
    /// The iteration whose activity is read.
    activity: Option<(u32, Option<ActivityReader>, ActivityLines)>,
    /// The file that was read last for the prompt or a check's log.
    text: Option<(PathBuf, Stamp)>,
    /// The trees whose difference was read last.
    diff: Option<ComparedTrees>,
}

impl PageReader {
    fn new(name: String, dir: LoopDir) -> Self {
        Self {
            name,
            dir,
            journal: None,
            history: None,
            past: Arc::default(),
            activity: None,
            text: None,
            diff: None,
        }
    }

    fn watched_files(&self) -> Vec<PathBuf> {
        let activity = self.activity.as_ref();
        let activity = activity.map(|(iteration, ..)| self.dir.activity(*iteration));
        let activity = activity.filter(|path| path.exists());
        [Some(self.dir.journal()), activity]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Reads what changed in the part that is shown.
    fn read(&mut self, request: &PageRequest) -> Vec<PageUpdate> {
        let mut updates = Vec::new();
        let liveness = current_liveness(&self.dir);
        let journal = (stamp(&self.dir.journal()), liveness);
        if self.journal != Some(journal) {
            self.journal = Some(journal);
            match read_past(&self.dir, liveness) {
                Ok((past, history)) => {
                    self.history = Some(history);
                    self.past = Arc::new(past);
                    updates.push(PageUpdate::Past(Arc::clone(&self.past)));
                }
                Err(error) => updates.push(PageUpdate::Unreadable(error.to_string())),
            }
        }
        let iteration = request.iteration.unwrap_or(self.past.newest());
        let update = match request.part {
            PagePart::Activity => self.read_activity(iteration),
            PagePart::Prompt => {
                let path = self.dir.iteration_dir(iteration).join("prompt.md");
                let lines = self.read_text(&path);
                lines.map(|lines| PageUpdate::Prompt { iteration, lines })
            }
            PagePart::CheckLog => {
                let check = self.past.checks.get(request.check);
                let path = check.map(|check| self.dir.check_log(iteration, &check.slug));
                let lines = path.and_then(|path| self.read_text(&path));
                lines.map(PageUpdate::CheckLog)
            }
            PagePart::Diff => self.read_diff(),
            PagePart::Past => None,
        };
        if request.part != PagePart::Activity {
            self.activity = None;
        }
        updates.extend(update);
        updates
    }

    fn read_activity(&mut self, iteration: u32) -> Option<PageUpdate> {
        let is_other = self
            .activity
            .as_ref()
            .is_none_or(|(number, ..)| *number != iteration);
        if is_other {
            self.activity = Some((iteration, None, ActivityLines::default()));
        }
        let (_, reader, lines) = self.activity.as_mut()?;
        if reader.is_none() {
            *reader = ActivityReader::open(&self.dir.activity(iteration));
        }
        let mut is_new = is_other;
        if let Some(reader) = reader {
            let _ = reader.read(&mut |item| {
                is_new = true;
                match item {
                    ActivityItem::Act { at_ms, act } => lines.add(at_ms, &act),
                    ActivityItem::Dropped(count) => lines.dropped += count,
                }
            });
        }
        is_new.then(|| PageUpdate::Activity {
            iteration,
            lines: lines.all(),
            dropped: lines.dropped,
        })
    }

    /// Reads a file's lines; `None` if it is the same as before.
    fn read_text(&mut self, path: &Path) -> Option<Vec<String>> {
        let key = (path.to_owned(), stamp(path));
        if self.text.as_ref() == Some(&key) {
            return None;
        }
        self.text = Some(key);
        let read = regular_file::read(path, TEXT_MAX, false);
        Some(read.map_or_else(|_| Vec::new(), |(bytes, is_cut)| text_lines(&bytes, is_cut)))
    }

    fn read_diff(&mut self) -> Option<PageUpdate> {
        let trees = Some(ComparedTrees(self.past.trees.clone()));
        if self.diff == trees {
            return None;
        }
        self.diff = trees;
        let note = |note: String| DiffData {
            files: Vec::new(),
            note: Some(note),
        };
        let data = match (&self.past.trees, &self.history) {
            (None, _) | (_, None) => note("there is no checkpoint yet".into()),
            (Some((from, to)), _) if from == to => {
                note("nothing has changed since the start".into())
            }
            (Some((from, to)), Some(history)) => match history.patch((from, to)) {
                Ok(patch) => split_patch(&patch),
                Err(error) => note(error),
            },
        };
        Some(PageUpdate::Diff(data))
    }
}
