//! The worker: takes loops from the queue, runs each with a supervisor of its own, and hands them back.

mod arrival;
mod claim;
mod lease;
mod relay;
mod setup;

pub(crate) use arrival::relative;
pub(crate) use lease::LeaseTimes;

use super::error::FleetError;
use super::exchange::{Exchange, Needs, WorkerRecord};
use super::signals::stop_at_signal;
use crate::os::program;
use claim::run_claim;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How long one request for a job waits.
const QUEUE_WAIT: Duration = Duration::from_secs(5);
/// How long to wait before the exchange is asked again after an error.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// How long the directory of a loop that was lost to another worker is kept, for people.
const KEEP_LOST: Duration = Duration::from_secs(7 * 24 * 3600);

/// How a worker runs loops.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOptions {
    /// A name that is unique in the pool.
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) slots: usize,
    pub(crate) labels: BTreeMap<String, String>,
    /// Programs of agents that are installed here.
    pub(crate) agents: Vec<String>,
    /// The directory in which each claimed loop gets a state directory.
    pub(crate) root: PathBuf,
    pub(crate) times: LeaseTimes,
}

/// What a worker reports to its caller.
#[derive(Clone, Debug)]
pub(crate) enum WorkerNews {
    /// The worker has claimed a loop, for the `epoch`th time.
    Claimed { name: String, epoch: u64 },
    /// The worker no longer runs a loop.
    Left { name: String, why: String },
    /// Something went wrong that the worker tries again.
    Problem(String),
}

/// The parts that all claims of a worker share.
struct WorkerShared<E> {
    exchange: E,
    options: WorkerOptions,
    /// The names of the loops that run here.
    running: Mutex<BTreeMap<String, u64>>,
    /// Whether the worker hands its loops back and exits.
    stopping: watch::Receiver<bool>,
    report: Box<dyn Fn(WorkerNews) + Send + Sync>,
}

impl<E: Exchange> WorkerShared<E> {
    fn set_running(&self, name: &str, lag: Option<u64>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match lag {
            Some(lag) => running.insert(name.to_owned(), lag),
            None => running.remove(name),
        };
    }

    fn record(&self) -> WorkerRecord {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let options = &self.options;
        WorkerRecord {
            id: options.id.clone(),
            host: options.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: options.slots,
            loops: running.keys().cloned().collect(),
            labels: options.labels.clone(),
            agents: options.agents.clone(),
            at_ms: jiff::Timestamp::now().as_millisecond(),
            lag_bytes: running.values().sum(),
        }
    }
}

/// Runs loops until a signal arrives, and then hands back those that are running.
pub(crate) async fn work_until_signal<E: Exchange>(
    exchange: E,
    options: WorkerOptions,
    report: Box<dyn Fn(WorkerNews) + Send + Sync>,
) -> Result<(), FleetError> {
    work(exchange, options, stop_at_signal()?, report).await
}

async fn work<E: Exchange>(
    exchange: E,
    options: WorkerOptions,
    mut stopping: watch::Receiver<bool>,
    report: Box<dyn Fn(WorkerNews) + Send + Sync>,
) -> Result<(), FleetError> {
    remove_old_claims(&options.root);
    let slots = Arc::new(Semaphore::new(options.slots));
    let shared = Arc::new(WorkerShared {
        exchange,
        options,
        running: Mutex::default(),
        stopping: stopping.clone(),
        report,
    });
    let mut claims = JoinSet::new();
    let announcing = tokio::spawn(announce(Arc::clone(&shared)));
    loop {
        let next = async {
            let permit = Arc::clone(&slots).acquire_owned().await.ok()?;
            let job = shared.exchange.next_job(QUEUE_WAIT).await;
            Some((permit, job))
        };
        let next = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            next = next => next,
            Some(_) = claims.join_next(), if !claims.is_empty() => continue,
        };
        let Some((permit, job)) = next else { break };
        match job {
            Ok(Some(job)) => {
                let shared = Arc::clone(&shared);
                claims.spawn(async move {
                    run_claim(&shared, job).await;
                    drop(permit);
                });
            }
            Ok(None) => {}
            Err(error) => {
                (shared.report)(WorkerNews::Problem(error.to_string()));
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
    while claims.join_next().await.is_some() {}
    announcing.abort();
    let _ = shared.exchange.withdraw(&shared.options.id).await;
    Ok(())
}

/// Announces the worker again and again, so that its announcement does not expire.
async fn announce<E: Exchange>(shared: Arc<WorkerShared<E>>) {
    loop {
        let _ = shared.exchange.announce(&shared.record()).await;
        tokio::time::sleep(shared.options.times.heartbeat.min(Duration::from_secs(5))).await;
    }
}

/// Returns what this machine lacks to run a loop; `None` if it lacks nothing.
fn missing(needs: &Needs, options: &WorkerOptions) -> Option<String> {
    let has_agent = needs.agents.is_empty()
        || needs
            .agents
            .iter()
            .any(|agent| agent.contains('/') || program::find(agent, Path::new("/")).is_some());
    if !has_agent {
        return Some(format!(
            "it needs one of the agents {}",
            needs.agents.join(", ")
        ));
    }
    let label = needs
        .labels
        .iter()
        .find(|(key, value)| options.labels.get(*key) != Some(value));
    if let Some((key, value)) = label {
        return Some(format!("it needs the label {key}={value}"));
    }
    let set: BTreeSet<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    let secret = needs.secrets.iter().find(|name| !set.contains(*name));
    secret.map(|name| format!("it needs the environment variable {name}"))
}

/// Removes the directories of loops that were lost long ago.
fn remove_old_claims(root: &Path) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        let age = entry
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        if age.is_some_and(|age| age > KEEP_LOST) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
