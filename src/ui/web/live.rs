//! Streams of server-sent events: changes of all loops, or of one loop and its activity.
//!
//! A stream sends what has changed since its last event, at most a few times a second, however much
//! happens. It waits for a slow reader, so that at most one event is in memory for each stream.

use super::Web;
use super::activity_rows::ActivityRows;
use super::loop_json::{detail, open_activity, summary};
use super::overview::{ChangeStamp, LoopRows, LoopScan, LoopStamps, Overview};
use super::routes::to_text;
use crate::store::activity::ActivityReader;
use crate::store::{LoopDir, StateDir, cache};
use axum::body::{Body, Bytes};
use futures_core::Stream;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::spawn_blocking;

/// The shortest time between two events of a stream about one loop.
const LOOP_INTERVAL: Duration = Duration::from_millis(250);
/// The shortest time between two looks at all loops.
const SCAN_INTERVAL: Duration = Duration::from_millis(500);
/// How long one look at all loops may read loops that it does not know yet. What it has read by then
/// is shown, and the next look follows at once.
const SCAN_PATIENCE: Duration = Duration::from_millis(250);
/// The same for the first look of a page.
const FIRST_PATIENCE: Duration = Duration::from_millis(100);
/// A look at files may take at most one part in this many of the time.
const DUTY: u32 = 10;
/// How often a stream shows that its connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a running loop's numbers are shown although its activity has changed.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(1);

/// The newest rows of all loops.
pub(super) struct Overviews {
    reader: Arc<Mutex<Overview>>,
    found: watch::Sender<Arc<LoopScan>>,
    /// Wakes the scan when the first stream opens.
    wanted: tokio::sync::Notify,
}

impl Overviews {
    pub(super) fn new(state_dir: &StateDir) -> Self {
        Self {
            reader: Arc::new(Mutex::new(Overview::new(state_dir))),
            found: watch::Sender::new(Arc::default()),
            wanted: tokio::sync::Notify::new(),
        }
    }

    /// Looks at all loops, and reads those that it does not know for at most `patience`.
    async fn scan(&self, patience: Duration) -> Arc<LoopScan> {
        let reader = Arc::clone(&self.reader);
        let scan = move || {
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.scan(patience)
        };
        Arc::new(spawn_blocking(scan).await.unwrap_or_default())
    }

    /// Returns the rows of all loops as of now.
    pub(super) async fn scan_all(&self) -> Arc<LoopScan> {
        loop {
            let found = self.scan(SCAN_PATIENCE).await;
            if found.unread == 0 {
                return found;
            }
        }
    }
}

/// Keeps the rows of all loops up to date as long as a stream reads them.
pub(super) async fn scan_loops(web: Arc<Web>) {
    let overviews = &web.overviews;
    loop {
        if overviews.found.receiver_count() == 0 {
            overviews.wanted.notified().await;
        }
        let begun = Instant::now();
        let found = overviews.scan(SCAN_PATIENCE).await;
        let is_complete = found.unread == 0;
        overviews.found.send_if_modified(|known| {
            let is_new = **known != *found;
            *known = found;
            is_new
        });
        if is_complete {
            tokio::time::sleep(SCAN_INTERVAL.max(begun.elapsed() * DUTY)).await;
        }
    }
}

/// Returns the stream of all loops' changes.
pub(super) fn overview_stream(web: &Arc<Web>, permit: OwnedSemaphorePermit) -> Body {
    let (sender, body) = EventBody::open(permit);
    let mut changes = web.overviews.found.subscribe();
    let web = Arc::clone(web);
    tokio::spawn(async move {
        // The newest rows may be old if no stream has been open.
        let mut sent = web.overviews.scan(FIRST_PATIENCE).await;
        web.overviews.wanted.notify_one();
        let mut event = loops_event(&LoopRows::new(), &sent, true);
        while sender.send(event).await.is_ok() {
            event = match tokio::time::timeout(KEEP_ALIVE, changes.changed()).await {
                Ok(Ok(())) => {
                    let found = Arc::clone(&changes.borrow_and_update());
                    let event = loops_event(&sent.rows, &found, false);
                    sent = found;
                    event
                }
                Ok(Err(_)) => return,
                Err(_) => Bytes::from_static(b": alive\n\n"),
            };
        }
    });
    body
}

/// Returns the event with the rows that differ.
fn loops_event(old: &LoopRows, found: &LoopScan, is_reset: bool) -> Bytes {
    let LoopScan { rows: new, unread } = found;
    let is_changed = |(name, row): &(&String, &Arc<str>)| old.get(*name) != Some(*row);
    let changed = new.iter().filter(is_changed).map(|(_, row)| &**row);
    let changed: Vec<&str> = changed.collect();
    let removed: Vec<_> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    Bytes::from(format!(
        "event: loops\ndata: {{\"reset\":{is_reset},\"unread\":{unread},\"loops\":[{}],\"removed\":{}}}\n\n",
        changed.join(","),
        json!(removed)
    ))
}

/// Returns the stream of one loop's changes and its activity.
pub(super) fn loop_stream(web: &Arc<Web>, dir: LoopDir, permit: OwnedSemaphorePermit) -> Body {
    let (sender, body) = EventBody::open(permit);
    let mut state = LoopStream::new(&web.state_dir, dir);
    tokio::spawn(async move {
        let mut last_sent = Instant::now();
        loop {
            let begun = Instant::now();
            let look = move || {
                let events = state.look();
                (state, events)
            };
            let Ok((back, mut events)) = spawn_blocking(look).await else {
                return;
            };
            state = back;
            let cost = begun.elapsed();
            if events.is_empty() && last_sent.elapsed() > KEEP_ALIVE {
                events.push(Bytes::from_static(b": alive\n\n"));
            }
            for event in events {
                if sender.send(event).await.is_err() {
                    return;
                }
                last_sent = Instant::now();
            }
            if sender.is_closed() {
                return;
            }
            tokio::time::sleep(LOOP_INTERVAL.max(cost * DUTY)).await;
        }
    });
    body
}

/// What a stream has sent about a loop.
struct LoopStream {
    state_dir: StateDir,
    dir: LoopDir,
    files: Option<LoopStamps>,
    activity: ChangeStamp,
    summary: String,
    summary_read: Option<Instant>,
    iteration: u32,
    reader: Option<ActivityReader>,
    rows: ActivityRows,
}

impl LoopStream {
    fn new(state_dir: &StateDir, dir: LoopDir) -> Self {
        Self {
            state_dir: state_dir.clone(),
            dir,
            files: None,
            activity: ChangeStamp::default(),
            summary: String::new(),
            summary_read: None,
            iteration: 0,
            reader: None,
            rows: ActivityRows::default(),
        }
    }

    /// Returns the events since the last call.
    fn look(&mut self) -> Vec<Bytes> {
        let mut events = Vec::new();
        let files = LoopStamps::of(&self.dir);
        if self.files.replace(files) != Some(files) {
            self.summary_read = None;
            events.push(match detail(&self.state_dir, &self.dir) {
                Ok(detail) => event("loop", detail),
                Err(error) => event("gone", json!({"error": error.to_string()})),
            });
            if let Ok(view) = cache::read(&self.dir) {
                self.open_iteration(view.state.iteration, &mut events);
            }
        }
        self.read_activity(&mut events);
        let is_due = |read: Instant| read.elapsed() > SUMMARY_INTERVAL;
        if self.summary_read.is_none_or(is_due) {
            self.summary_read = Some(Instant::now());
            let summary = summary(&self.dir).map(to_text).unwrap_or_default();
            if summary != self.summary && !summary.is_empty() {
                events.push(Bytes::from(format!("event: summary\ndata: {summary}\n\n")));
                self.summary = summary;
            }
        }
        events
    }

    fn open_iteration(&mut self, iteration: u32, events: &mut Vec<Bytes>) {
        if iteration == self.iteration && self.reader.is_some() {
            return;
        }
        if iteration != self.iteration || !self.rows.is_empty() {
            events.push(event(
                "activity",
                json!({"iteration": iteration, "reset": true, "rows": [], "dropped": 0}),
            ));
        }
        self.iteration = iteration;
        self.rows = ActivityRows::default();
        self.activity = ChangeStamp::default();
        self.reader = None;
    }

    fn read_activity(&mut self, events: &mut Vec<Bytes>) {
        let stamp = ChangeStamp::of(&self.dir.activity(self.iteration));
        if std::mem::replace(&mut self.activity, stamp) == stamp {
            return;
        }
        if self.reader.is_none() {
            self.reader = open_activity(&self.dir, self.iteration);
        }
        let Some(reader) = &mut self.reader else {
            return;
        };
        let rows = &mut self.rows;
        let _ = reader.read(&mut |item| rows.add(item));
        let changed = rows.take_changed();
        if !changed.is_empty() {
            events.push(event(
                "activity",
                json!({
                    "iteration": self.iteration,
                    "reset": false,
                    "rows": changed,
                    "dropped": rows.dropped(),
                }),
            ));
        }
    }
}

fn event(name: &str, data: Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {}\n\n", to_text(data)))
}

/// The body of a stream: the events that its task sends.
struct EventBody {
    events: mpsc::Receiver<Bytes>,
    _permit: OwnedSemaphorePermit,
}

impl EventBody {
    fn open(permit: OwnedSemaphorePermit) -> (mpsc::Sender<Bytes>, Body) {
        let (sender, events) = mpsc::channel(1);
        let body = Self {
            events,
            _permit: permit,
        };
        (sender, Body::from_stream(body))
    }
}

impl Stream for EventBody {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context).map(|event| event.map(Ok))
    }
}
