//! One claim: a loop from the moment a worker takes it from the queue until it ends, pauses, or goes to
//! another worker.

use super::arrival::{ArrivedLoop, LoopFiles, arrive, handover_checkpoint};
use super::lease::{LeaseFile, keep_lease};
use super::relay::Relay;
use super::{WorkerNews, WorkerShared, missing};
use crate::engine::Phase;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{
    CodeSource, Exchange, LeasedJob, LoopRecord, Piece, Stored, StreamKind,
};
use crate::git::TreeContent;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::launch::launch;
use crate::lifecycle::locks::mark_as_starting;
use crate::process::file_watcher::FileWatcher;
use crate::store::{LoopDir, StateDir, boot_clock_ms, cache, inbox};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long other workers wait for a loop that this one cannot run.
const REFUSED_DELAY: Duration = Duration::from_secs(10);
/// How long to wait before a loop whose supervisor crashed is tried again.
const CRASHED_DELAY: Duration = Duration::from_secs(2);
/// How often files are looked at that no watch reports.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The stack size of a thread that only waits, in bytes.
const STACK_SIZE: usize = 128 << 10;
/// How long a supervisor may take to kill its tree when its loop is handed back.
const HANDBACK_TIME: Duration = Duration::from_secs(20);

/// How a claim ended.
enum ClaimEnd {
    /// The loop ended or paused, and all of it is published.
    Over(String),
    /// The loop goes on, on this or another worker: all of it is published.
    HandedBack(String),
    /// Another worker owns the loop. Its directory is kept.
    Lost,
}

/// A claimed loop.
struct Claim<'a, E: Exchange> {
    shared: &'a WorkerShared<E>,
    job: &'a E::Job,
    record: LoopRecord,
    revision: u64,
    state_dir: StateDir,
}

/// Takes a loop, runs it, and gives the job back or removes it.
pub(super) async fn run_claim<E: Exchange>(shared: &WorkerShared<E>, job: E::Job) {
    let name = job.loop_name().to_owned();
    let report = |why: String| {
        let name = name.clone();
        (shared.report)(WorkerNews::Left { name, why });
    };
    match Claim::take(shared, &job).await {
        Ok(Some(claim)) => {
            let epoch = claim.record.epoch;
            (shared.report)(WorkerNews::Claimed {
                name: name.clone(),
                epoch,
            });
            shared.set_running(&name, Some(0));
            report(claim.run_to_end().await);
            shared.set_running(&name, None);
        }
        Ok(None) => {}
        Err(error) => {
            report(error.to_string());
            let _ = job.release(REFUSED_DELAY).await;
        }
    }
}

impl<'a, E: Exchange> Claim<'a, E> {
    /// Becomes the loop's owner; `None` if the loop is not wanted, or needs what this worker lacks.
    async fn take(
        shared: &'a WorkerShared<E>,
        job: &'a E::Job,
    ) -> Result<Option<Self>, FleetError> {
        let exchange = &shared.exchange;
        let Some(Stored {
            value: mut record,
            revision,
        }) = exchange.record(job.loop_name()).await?
        else {
            job.finish().await?;
            return Ok(None);
        };
        if !record.wanted {
            job.finish().await?;
            return Ok(None);
        }
        if let Some(why) = missing(&record.needs, &shared.options) {
            record.refused = Some(format!("{}: {why}", shared.options.host));
            let _ = exchange.update_record(&record, revision).await;
            job.release(REFUSED_DELAY).await?;
            return Ok(None);
        }
        record.epoch += 1;
        record.owner = Some(shared.options.id.clone());
        record.refused = None;
        let revision = exchange.update_record(&record, revision).await?;
        let place = format!("{}-{}", record.name, record.epoch);
        Ok(Some(Self {
            shared,
            job,
            state_dir: StateDir::new(shared.options.root.join(place)),
            record,
            revision,
        }))
    }

    /// Runs the loop while its lease is kept. Returns how that ended, for people.
    async fn run_to_end(mut self) -> String {
        let dir = self.state_dir.loop_dir(&self.record.name);
        let times = self.shared.options.times;
        let lease = LeaseFile::new(dir, self.record.epoch, boot_clock_ms(), times);
        let ended = tokio::select! {
            ended = self.run_loop(&lease) => ended,
            _ = keep_lease(self.job, &lease, times) => unreachable!("the lease is kept for ever"),
        };
        self.leave(ended).await
    }

    async fn run_loop(&self, lease: &LeaseFile) -> Result<ClaimEnd, FleetError> {
        let exchange = &self.shared.exchange;
        let id = &self.record.id;
        let journal = exchange.read(id, StreamKind::Journal, 0).await?;
        let inbox = exchange.read(id, StreamKind::Inbox, 0).await?;
        let files = exchange.read(id, StreamKind::Files, 0).await?;
        let last = journal.last().map_or(0, |piece| piece.position);
        let inbox_position = inbox.last().map_or(0, |piece| piece.position);
        let bundles = self.download(&journal).await?;
        let arrived = self.arrive(journal, inbox, files, bundles).await?;
        lease.set_published(arrived.published);
        lease.write();
        let ends = (id.as_str(), self.record.epoch, last);
        let mut relay =
            Relay::new(exchange, lease.clone(), &arrived, ends).map_err(FleetError::Other)?;
        // The line that says that the loop is here now: from here on, an earlier owner is fenced.
        relay.publish().await?;
        let mut supervisor = self.launch(&arrived).await?;
        let follow = self.follow_inbox(&arrived.dir, inbox_position);
        let result = tokio::select! {
            result = self.relay_until_exit(&mut relay, &mut supervisor, &arrived.dir) => result,
            result = follow => Err(result.err().unwrap_or(FleetError::Fenced)),
        };
        if result.is_err() {
            stop_supervisor(&mut supervisor).await;
        }
        match result {
            Err(FleetError::Fenced) => Ok(ClaimEnd::Lost),
            Err(error) => Err(error),
            Ok(is_stopping) => self.finish(&mut relay, &arrived, is_stopping).await,
        }
    }

    /// Fetches the bundles that the loop's journal names.
    async fn download(&self, journal: &[Piece]) -> Result<Vec<PathBuf>, FleetError> {
        let directory = self.state_dir.root().join("bundles");
        std::fs::create_dir_all(&directory).map_err(|error| broken(&error))?;
        let first = match &self.record.code {
            CodeSource::Bundle { blob, .. } => Some(blob.as_str()),
            CodeSource::Remote { .. } => None,
        };
        let named = journal.iter().map(|piece| piece.file.as_str());
        let blobs = first
            .into_iter()
            .chain(named)
            .filter(|blob| !blob.is_empty());
        let mut files = Vec::new();
        for (index, blob) in blobs.enumerate() {
            let file = directory.join(format!("{index}.bundle"));
            if !self.shared.exchange.get_blob(blob, &file).await? {
                return Err(FleetError::Other(format!(
                    "the fleet has lost the commits in {blob}"
                )));
            }
            files.push(file);
        }
        Ok(files)
    }

    async fn arrive(
        &self,
        journal: Vec<Piece>,
        inbox: Vec<Piece>,
        files: Vec<Piece>,
        bundles: Vec<PathBuf>,
    ) -> Result<ArrivedLoop, FleetError> {
        let (state_dir, record) = (self.state_dir.clone(), self.record.clone());
        let host = self.shared.options.host.clone();
        let arrived = tokio::task::spawn_blocking(move || {
            let bytes = |pieces: &[Piece]| {
                let mut all = Vec::new();
                for piece in pieces {
                    piece.apply_to(&mut all);
                }
                all
            };
            let inbox = inbox.iter().flat_map(|piece| piece.bytes.clone());
            let files = LoopFiles {
                journal: &bytes(&journal),
                inbox: &inbox.collect::<Vec<u8>>(),
                files: &files,
                bundles: &bundles,
            };
            arrive(&state_dir, &record, &files, &host)
        });
        arrived
            .await
            .map_err(|error| broken(&error))?
            .map_err(FleetError::Other)
    }

    async fn launch(&self, arrived: &ArrivedLoop) -> Result<Child, FleetError> {
        let (state_dir, dir) = (self.state_dir.clone(), arrived.dir.clone());
        let plan = arrived.state.plan.clone();
        let failed = |error: &CommandError| FleetError::Other(error.message().to_owned());
        // This can take long on a busy machine, and the leases of other loops must be kept meanwhile.
        let launched = tokio::task::spawn_blocking(move || {
            let _mark = mark_as_starting(&dir, &plan).map_err(|error| failed(&error))?;
            launch(&state_dir, &dir, None, &[]).map_err(|error| failed(&error))
        });
        let launched = launched.await.map_err(|error| broken(&error))??;
        launched.ok_or_else(|| FleetError::Other("the supervisor did not start".to_owned()))
    }

    /// Appends what people send to the loop's own inbox.
    async fn follow_inbox(&self, dir: &LoopDir, after: u64) -> Result<(), FleetError> {
        let receive = |piece: Piece| inbox::append_bytes(dir, &piece.bytes).is_ok();
        let (exchange, id) = (&self.shared.exchange, &self.record.id);
        exchange.follow(id, StreamKind::Inbox, after, receive).await
    }

    /// Publishes what the supervisor writes until it exits, or until the worker stops. Returns whether
    /// the worker stops.
    async fn relay_until_exit(
        &self,
        relay: &mut Relay<'_, E>,
        supervisor: &mut Child,
        dir: &LoopDir,
    ) -> Result<bool, FleetError> {
        let changed = Arc::new(Notify::new());
        let _watch = WatchThread::start(dir, Arc::clone(&changed));
        let mut stopping = self.shared.stopping.clone();
        loop {
            let exited = supervisor
                .try_wait()
                .map_err(|error| broken(&error))?
                .is_some();
            relay.publish().await?;
            self.shared
                .set_running(&self.record.name, Some(relay.lag()));
            if exited {
                return Ok(false);
            }
            tokio::select! {
                () = changed.notified() => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = until_true(&mut stopping) => {
                    stop_supervisor(supervisor).await;
                    relay.publish().await?;
                    return Ok(true);
                }
            }
        }
    }

    /// Publishes the end of the claim.
    async fn finish(
        &self,
        relay: &mut Relay<'_, E>,
        arrived: &ArrivedLoop,
        is_stopping: bool,
    ) -> Result<ClaimEnd, FleetError> {
        let view = cache::read(&arrived.dir).map_err(|error| broken(&error))?;
        let state = view.state;
        if state.outcome().is_some() || state.phase == Phase::Paused {
            let outcome = state.outcome_summary().map(|outcome| outcome.kind);
            return Ok(ClaimEnd::Over(
                outcome.unwrap_or_else(|| "paused".to_owned()),
            ));
        }
        // What the interrupted iteration has done so far goes with the loop.
        let (workspace, scratch) = (relay.worktree().path.clone(), arrived.dir.git_scratch());
        let (id, name) = (
            self.record.id.clone(),
            handover_checkpoint(self.record.epoch),
        );
        let taken = tokio::task::spawn_blocking(move || {
            TreeContent::find(&workspace, &scratch)?
                .map(|content| content.take_checkpoint(&id, &name))
                .transpose()
        });
        let _ = taken.await;
        relay.publish_handover().await?;
        let why = if is_stopping {
            "the worker stops"
        } else {
            "its supervisor exited without an ending"
        };
        Ok(ClaimEnd::HandedBack(why.to_owned()))
    }

    /// Gives the loop up, and tidies.
    async fn leave(&mut self, ended: Result<ClaimEnd, FleetError>) -> String {
        let is_stopping = *self.shared.stopping.borrow();
        self.record.owner = None;
        let (why, delay, is_clean) = match ended {
            Ok(ClaimEnd::Over(why)) => {
                self.record.wanted = false;
                (why, None, true)
            }
            Ok(ClaimEnd::HandedBack(why)) => {
                let delay = if is_stopping {
                    Duration::ZERO
                } else {
                    CRASHED_DELAY
                };
                (why, Some(delay), true)
            }
            Ok(ClaimEnd::Lost) => return "another worker has it".to_owned(),
            Err(error) => {
                self.record.refused = Some(format!("{}: {error}", self.shared.options.host));
                (error.to_string(), Some(REFUSED_DELAY), false)
            }
        };
        let exchange = &self.shared.exchange;
        match exchange.update_record(&self.record, self.revision).await {
            Ok(_) => {}
            Err(FleetError::Fenced) => return "another worker has it".to_owned(),
            Err(error) => return format!("{why}; the fleet was not told: {error}"),
        }
        let _ = match delay {
            Some(delay) => self.job.release(delay).await,
            None => self.job.finish().await,
        };
        if is_clean {
            let _ = std::fs::remove_dir_all(self.state_dir.root());
        }
        why
    }
}

/// Waits until the worker stops.
async fn until_true(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Makes a supervisor kill its tree and exit without an ending, and waits for it.
async fn stop_supervisor(supervisor: &mut Child) {
    let deadline = tokio::time::Instant::now() + HANDBACK_TIME;
    let pid = Pid::from_raw(supervisor.id() as i32);
    let send = |signal| pid.map(|pid| kill_process(pid, signal));
    send(Signal::HUP);
    while supervisor.try_wait().is_ok_and(|exit| exit.is_none()) {
        if tokio::time::Instant::now() > deadline {
            send(Signal::KILL);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A thread that reports changes of a loop's files.
struct WatchThread {
    is_over: Arc<AtomicBool>,
}

impl WatchThread {
    fn start(dir: &LoopDir, changed: Arc<Notify>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (journal, over) = (dir.journal(), Arc::clone(&is_over));
        let watch = move || {
            let mut watcher = FileWatcher::open();
            while !over.load(Ordering::Relaxed) {
                watcher.reset();
                watcher.watch(&journal);
                watcher.wait(LOOK_INTERVAL);
                changed.notify_one();
            }
        };
        // Without the thread, the files are looked at now and then.
        let _ = std::thread::Builder::new()
            .stack_size(STACK_SIZE)
            .spawn(watch);
        Self { is_over }
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn broken(error: &dyn std::fmt::Display) -> FleetError {
    FleetError::Other(error.to_string())
}
