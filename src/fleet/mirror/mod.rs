//! A mirror: copies of loops of the fleet in a private state directory, in which commands work as they
//! do with loops of this machine.

mod code;
mod command;
mod loop_copy;
mod outbox;
mod place;

pub(crate) use code::{download, fill_repository};
pub(crate) use command::run_in_mirror;

use super::error::FleetError;
use super::exchange::{Exchange, LoopRecord, Piece, StreamKind};
use crate::git::TreeContent;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use futures_util::StreamExt as _;
use loop_copy::LoopCopy;
use place::MirrorPlace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How many loops are copied at the same time.
const CONCURRENT_COPIES: usize = 32;
/// How often to look for requests of commands.
const INBOX_INTERVAL: Duration = Duration::from_millis(50);
/// How often to look for requests of commands, and for changed records, in a mirror of all loops.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
/// How often to look for changed records of named loops.
const RECORD_INTERVAL: Duration = Duration::from_millis(250);

/// What a command needs of the fleet.
#[derive(Clone, Debug, Default)]
pub(crate) struct MirrorScope {
    /// The loops; `None` for all.
    pub(crate) names: Option<Vec<String>>,
    /// Whether it reads files besides journals.
    pub(crate) files: bool,
    /// Whether it compares checkpoints.
    pub(crate) code: bool,
    /// Whether it waits for changes or steers loops.
    pub(crate) live: bool,
    /// A repository of the user, which may have the commits that loops began with.
    pub(crate) repository: Option<PathBuf>,
}

/// Copies of loops.
pub(crate) struct Mirror<E> {
    exchange: Arc<E>,
    scope: MirrorScope,
    copies: Vec<LoopCopy<E>>,
    /// Dropped last: removes the directory.
    place: MirrorPlace,
}

/// News for the task that keeps a copy current.
enum CopyUpdate {
    Piece(StreamKind, Piece),
    Record(Box<LoopRecord>),
    /// The command has ended.
    End,
}

/// The task that keeps a copy current.
struct CopyTask {
    updates: UnboundedSender<CopyUpdate>,
    handle: JoinHandle<Result<(), FleetError>>,
}

impl<E: Exchange> Mirror<E> {
    /// Copies the loops. Returns warnings about commits that cannot be had.
    pub(crate) async fn open(
        exchange: Arc<E>,
        state_dir: &StateDir,
        scope: MirrorScope,
    ) -> Result<(Self, Vec<String>), CommandError> {
        let place = MirrorPlace::create(state_dir)?;
        let records = wanted_records(&*exchange, &scope).await?;
        let (mirror, files) = (place.state_dir(), scope.files);
        let mut opening = futures_util::stream::iter(records)
            .map(|record| LoopCopy::open(Arc::clone(&exchange), &mirror, record, files))
            .buffer_unordered(CONCURRENT_COPIES);
        let mut copies = Vec::new();
        while let Some(copy) = opening.next().await {
            copies.extend(copy?);
        }
        drop(opening);
        let mirror = Self {
            exchange,
            scope,
            copies,
            place,
        };
        let mut warnings = Vec::new();
        if mirror.scope.code {
            for copy in &mirror.copies {
                if let Err(error) = mirror.fetch_code(copy).await {
                    warnings.push(format!("{}: {error}", copy.record().name));
                }
            }
        }
        Ok((mirror, warnings))
    }

    /// Returns the state directory for the command.
    pub(crate) fn state_dir(&self) -> StateDir {
        self.place.state_dir()
    }

    /// Fills a repository with the commits of a loop, so that its checkpoints can be compared.
    async fn fetch_code(&self, copy: &LoopCopy<E>) -> Result<(), FleetError> {
        let (record, root) = (copy.record(), self.place.state_dir());
        let root = root.root().join("code").join(&record.name);
        let bundles = download(&*self.exchange, copy.blobs(), &root.join("bundles")).await?;
        let repository = root.join("repository");
        let fill = || -> Result<(), String> {
            fill_repository(
                &repository,
                record,
                &bundles,
                self.scope.repository.as_deref(),
            )?;
            let content = TreeContent::find(&repository, &copy.dir().git_scratch())?;
            let content = content.ok_or("git does not recognize the repository")?;
            // Records where the checkpoints are.
            content.checkpoints(&record.id).map(drop)
        };
        fill().map_err(FleetError::Other)
    }

    /// Keeps the copies current until the command has ended, and publishes its requests.
    pub(crate) async fn serve<T>(
        mut self,
        command: impl Future<Output = T>,
    ) -> Result<T, CommandError> {
        let copies = std::mem::take(&mut self.copies);
        if !self.scope.live {
            let ended = command.await;
            drop(copies);
            return Ok(ended);
        }
        let mut tasks: BTreeMap<String, CopyTask> = BTreeMap::new();
        for copy in copies {
            let name = copy.record().name.clone();
            tasks.insert(name, self.start_task(copy));
        }
        let ended = tokio::select! {
            ended = command => ended,
            never = self.watch_records(&mut tasks) => never,
        };
        let mut result = Ok(());
        for task in tasks.into_values() {
            let _ = task.updates.send(CopyUpdate::End);
            let kept = task.handle.await;
            let kept = kept.unwrap_or_else(|error| Err(FleetError::Other(error.to_string())));
            result = result.and(kept);
        }
        result?;
        Ok(ended)
    }

    fn start_task(&self, copy: LoopCopy<E>) -> CopyTask {
        let (updates, receiver) = unbounded_channel();
        let interval = match self.scope.names {
            Some(_) => INBOX_INTERVAL,
            None => SLOW_INTERVAL,
        };
        let exchange = Arc::clone(&self.exchange);
        let handle = tokio::spawn(keep_current(
            exchange,
            copy,
            (updates.clone(), receiver),
            interval,
        ));
        CopyTask { updates, handle }
    }

    /// Passes changed records on, for ever, and adds new loops to a mirror of all loops.
    async fn watch_records<T>(&self, tasks: &mut BTreeMap<String, CopyTask>) -> T {
        let interval = match self.scope.names {
            Some(_) => RECORD_INTERVAL,
            None => SLOW_INTERVAL,
        };
        loop {
            sleep(interval).await;
            // Without an answer, what is known stays.
            let Ok(records) = wanted_records(&*self.exchange, &self.scope).await else {
                continue;
            };
            for record in records {
                if let Some(task) = tasks.get(&record.name) {
                    let _ = task.updates.send(CopyUpdate::Record(Box::new(record)));
                    continue;
                }
                let (name, mirror) = (record.name.clone(), self.place.state_dir());
                let exchange = Arc::clone(&self.exchange);
                let copy = LoopCopy::open(exchange, &mirror, record, self.scope.files).await;
                if let Ok(Some(copy)) = copy {
                    tasks.insert(name, self.start_task(copy));
                }
            }
        }
    }
}

/// Reads the records of a mirror's loops.
async fn wanted_records<E: Exchange>(
    exchange: &E,
    scope: &MirrorScope,
) -> Result<Vec<LoopRecord>, FleetError> {
    let Some(names) = &scope.names else {
        let records = exchange.records().await?;
        return Ok(records.into_iter().map(|stored| stored.value).collect());
    };
    let mut records: Vec<LoopRecord> = Vec::new();
    for name in names {
        if records.iter().any(|record| record.name == *name) {
            continue;
        }
        // A name that no loop can have is reported by the command.
        if crate::store::is_valid_name(name)
            && let Some(stored) = exchange.record(name).await?
        {
            records.push(stored.value);
        }
    }
    Ok(records)
}

/// Keeps a copy current until the command has ended.
async fn keep_current<E: Exchange>(
    exchange: Arc<E>,
    mut copy: LoopCopy<E>,
    (sender, mut updates): (UnboundedSender<CopyUpdate>, UnboundedReceiver<CopyUpdate>),
    interval: Duration,
) -> Result<(), FleetError> {
    let mut followers = None;
    loop {
        // Only an owner appends to a journal.
        if copy.record().owner.is_none() {
            followers = None;
        } else if followers.is_none() {
            followers = Some(Followers::start(&exchange, &copy, &sender));
        }
        tokio::select! {
            update = updates.recv() => match update {
                Some(CopyUpdate::Piece(stream, piece)) => copy.apply(stream, &piece)?,
                Some(CopyUpdate::Record(record)) => copy.update(*record).await?,
                Some(CopyUpdate::End) | None => break,
            },
            () = sleep(interval) => copy.publish().await?,
        }
    }
    copy.publish().await
}

/// Tasks that receive the pieces of a loop's streams, ended on drop.
struct Followers(Vec<JoinHandle<()>>);

impl Followers {
    fn start<E: Exchange>(
        exchange: &Arc<E>,
        copy: &LoopCopy<E>,
        sender: &UnboundedSender<CopyUpdate>,
    ) -> Self {
        let files = copy.with_files().then_some(StreamKind::Files);
        let streams = [StreamKind::Inbox, StreamKind::Journal].into_iter();
        let start = |stream: StreamKind| {
            let (exchange, sender) = (Arc::clone(exchange), sender.clone());
            let (id, after) = (copy.record().id.clone(), copy.position(stream));
            tokio::spawn(async move {
                let receive =
                    move |piece: Piece| sender.send(CopyUpdate::Piece(stream, piece)).is_ok();
                let _ = exchange.follow(&id, stream, after, receive).await;
            })
        };
        Self(streams.chain(files).map(start).collect())
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the commits of a loop's copy, for a command that needs no more of it.
pub(crate) async fn loop_blobs<E: Exchange>(
    exchange: &E,
    record: &LoopRecord,
) -> Result<Vec<String>, FleetError> {
    let journal = exchange.read(&record.id, StreamKind::Journal, 0).await?;
    let first = match &record.code {
        super::exchange::CodeSource::Bundle { blob, .. } => Some(blob.clone()),
        super::exchange::CodeSource::Remote { .. } => None,
    };
    let named = journal.into_iter().map(|piece| piece.file);
    let all = first.into_iter().chain(named);
    Ok(all.filter(|blob| !blob.is_empty()).collect())
}

/// A directory for the commits of one loop, removed on drop.
pub(crate) struct LoopScratch(MirrorPlace);

impl LoopScratch {
    pub(crate) fn create(state_dir: &StateDir) -> Result<Self, CommandError> {
        MirrorPlace::create(state_dir).map(Self)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.state_dir().root().to_owned()
    }
}

/// Fills a repository with a loop's branch and checkpoints, and returns its path.
pub(crate) async fn fetch_repository<E: Exchange>(
    exchange: &E,
    record: &LoopRecord,
    scratch: &LoopScratch,
    users: Option<&Path>,
) -> Result<PathBuf, FleetError> {
    let root = scratch.path();
    let blobs = loop_blobs(exchange, record).await?;
    let bundles = download(exchange, &blobs, &root.join("bundles")).await?;
    let repository = root.join("repository");
    fill_repository(&repository, record, &bundles, users).map_err(FleetError::Other)?;
    Ok(repository)
}
