//! The copy of one loop in a mirror: its files as the fleet has them, and its locks as if its runner
//! were on this machine.

use super::outbox::RequestOutbox;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{CodeSource, Exchange, LoopRecord, Piece, StreamKind};
use crate::fleet::worker::relative;
use crate::os::regular_file;
use crate::process::tree::start_time;
use crate::store::dir::create_dir;
use crate::store::{
    FleetPlacement, LockHolder, LoopDir, LoopLock, StartMark, StateDir, cache, rfc3339,
};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a worker may take to read a request to continue, while it may be about to leave the loop.
const SETTLE_TIME: Duration = Duration::from_secs(10);
/// How often to look whether it has.
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

/// A copy of a loop.
pub(super) struct LoopCopy<E> {
    exchange: Arc<E>,
    record: LoopRecord,
    dir: LoopDir,
    /// Whether to copy files besides the journal and the inbox.
    with_files: bool,
    /// The positions of the newest pieces of the journal and of files.
    journal: u64,
    files: u64,
    /// The newest epoch of which there are files. Files of earlier owners that arrive later are
    /// ignored.
    files_epoch: u64,
    outbox: RequestOutbox,
    /// The blobs with the loop's commits, in order.
    blobs: Vec<String>,
    /// Held while a worker owns the loop, so that it looks like a running one.
    lock: Option<LoopLock>,
    /// Held while the loop is queued, so that it looks like a starting one.
    mark: Option<StartMark>,
}

impl<E: Exchange> LoopCopy<E> {
    /// Copies a loop into the mirror; `None` if it is still being submitted.
    pub(super) async fn open(
        exchange: Arc<E>,
        mirror: &StateDir,
        record: LoopRecord,
        with_files: bool,
    ) -> Result<Option<Self>, FleetError> {
        let dir = mirror.loop_dir(&record.name);
        let first = match &record.code {
            CodeSource::Bundle { blob, .. } => vec![blob.clone()],
            CodeSource::Remote { .. } => Vec::new(),
        };
        let journal = exchange.read(&record.id, StreamKind::Journal, 0).await?;
        if journal.is_empty() {
            return Ok(None);
        }
        dir.create().map_err(|error| broken(&error))?;
        let mut copy = Self {
            exchange,
            outbox: RequestOutbox::new(dir.clone(), record.id.clone()),
            record,
            dir,
            with_files,
            journal: 0,
            files: 0,
            files_epoch: 0,
            blobs: first,
            lock: None,
            mark: None,
        };
        // A directory with a journal is a loop, so the rest comes first.
        copy.outbox.catch_up(&*copy.exchange).await?;
        if with_files {
            copy.catch_up_files().await?;
        }
        copy.write_placement()?;
        for piece in journal {
            copy.apply(StreamKind::Journal, &piece)?;
        }
        copy.set_locks()?;
        Ok(Some(copy))
    }

    pub(super) fn record(&self) -> &LoopRecord {
        &self.record
    }

    pub(super) fn dir(&self) -> &LoopDir {
        &self.dir
    }

    pub(super) fn blobs(&self) -> &[String] {
        &self.blobs
    }

    pub(super) fn with_files(&self) -> bool {
        self.with_files
    }

    /// Returns the position of the newest piece of a stream that is in the copy.
    pub(super) fn position(&self, stream: StreamKind) -> u64 {
        match stream {
            StreamKind::Journal => self.journal,
            StreamKind::Inbox => self.outbox.position(),
            StreamKind::Files => self.files,
        }
    }

    /// Adds a piece, unless it is in the copy already.
    pub(super) fn apply(&mut self, stream: StreamKind, piece: &Piece) -> Result<(), FleetError> {
        if piece.position <= self.position(stream) {
            return Ok(());
        }
        match stream {
            StreamKind::Journal => {
                write_piece(&self.dir.journal(), piece)?;
                self.journal = piece.position;
                if !piece.file.is_empty() {
                    self.blobs.push(piece.file.clone());
                }
                Ok(())
            }
            StreamKind::Inbox => self.outbox.receive(piece),
            StreamKind::Files => {
                self.files = piece.position;
                if piece.epoch < self.files_epoch || !is_published_name(&piece.file) {
                    return Ok(());
                }
                self.files_epoch = piece.epoch;
                let path = self
                    .dir
                    .path()
                    .join(relative(Path::new(&piece.file)).map_err(FleetError::Other)?);
                if let Some(parent) = path.parent() {
                    create_dir(parent).map_err(|error| broken(&error))?;
                }
                write_piece(&path, piece)
            }
        }
    }

    async fn catch_up_files(&mut self) -> Result<(), FleetError> {
        let (id, files) = (&self.record.id, self.files);
        for piece in self.exchange.read(id, StreamKind::Files, files).await? {
            self.apply(StreamKind::Files, &piece)?;
        }
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<(), FleetError> {
        if self.with_files {
            self.catch_up_files().await?;
        }
        let (id, journal) = (&self.record.id, self.journal);
        let pieces = self.exchange.read(id, StreamKind::Journal, journal).await?;
        // The inbox first: the journal says how much of it was read.
        self.outbox.catch_up(&*self.exchange).await?;
        for piece in pieces {
            self.apply(StreamKind::Journal, &piece)?;
        }
        Ok(())
    }

    /// Takes over a newer record. When a worker has left the loop, everything that it wrote is copied
    /// before the loop looks idle.
    pub(super) async fn update(&mut self, record: LoopRecord) -> Result<(), FleetError> {
        let is_left = self.record.owner.is_some() && record.owner != self.record.owner;
        let is_changed = self.record != record;
        self.record = record;
        if is_left {
            self.catch_up().await?;
        }
        if is_changed {
            self.write_placement()?;
            self.set_locks()?;
        }
        Ok(())
    }

    fn write_placement(&self) -> Result<(), FleetError> {
        let record = &self.record;
        let placement = FleetPlacement {
            owner: record.owner.clone(),
            epoch: record.epoch,
            queued: record.wanted && record.owner.is_none(),
            refused: record.refused.clone(),
        };
        placement.write(&self.dir).map_err(|error| broken(&error))
    }

    /// Makes the loop look as it is: running, starting or idle.
    fn set_locks(&mut self) -> Result<(), FleetError> {
        let holder = self.holder();
        if self.record.owner.is_some() && self.lock.is_none() {
            let taken = LoopLock::acquire(&self.dir, &holder).map_err(|error| broken(&error))?;
            self.lock = taken.ok();
        }
        // A loop that goes to another worker keeps running for those who wait for its end.
        let is_queued = self.record.wanted && self.lock.is_none();
        if is_queued && self.mark.is_none() {
            // A mark without a time does not expire.
            let queued = LockHolder {
                since: String::new(),
                ..holder
            };
            self.mark = StartMark::set(&self.dir, &queued).map_err(|error| broken(&error))?;
        }
        if !is_queued {
            self.mark = None;
        }
        if !self.record.wanted {
            self.lock = None;
        }
        Ok(())
    }

    fn holder(&self) -> LockHolder {
        let pid = std::process::id();
        LockHolder {
            pid,
            start_time: start_time(pid).unwrap_or(0),
            loop_name: self.record.name.clone(),
            workspace: PathBuf::new(),
            since: rfc3339(jiff::Timestamp::now().as_millisecond()),
            background: true,
            host: None,
        }
    }

    /// Publishes the requests that a command has appended to the copy's inbox. If one of them is to
    /// continue the loop, puts it into the queue.
    pub(super) async fn publish(&mut self) -> Result<(), FleetError> {
        if self.outbox.publish(&*self.exchange).await? {
            self.make_wanted().await?;
        }
        Ok(())
    }

    /// Makes sure that a worker reads the request to continue that was just published.
    async fn make_wanted(&mut self) -> Result<(), FleetError> {
        let deadline = Instant::now() + SETTLE_TIME;
        loop {
            let stored = self.exchange.record(&self.record.name).await?;
            let stored = stored.filter(|stored| stored.value.id == self.record.id);
            let Some(stored) = stored else {
                return Err(FleetError::Other(format!(
                    "the loop {:?} was removed",
                    self.record.name
                )));
            };
            if !stored.value.wanted {
                let mut record = stored.value;
                record.wanted = true;
                record.refused = None;
                match self.exchange.update_record(&record, stored.revision).await {
                    Ok(revision) => {
                        let key = format!("{}-{revision}", record.id);
                        self.exchange.enqueue(&record.name, &key).await?;
                        return self.update(record).await;
                    }
                    Err(FleetError::Fenced) => continue,
                    Err(error) => return Err(error),
                }
            }
            if stored.value.owner.is_none() {
                return Ok(());
            }
            // The owner may have stopped to read, because the loop was ending or pausing.
            self.catch_up().await?;
            let end = self.outbox.end();
            let is_read = cache::read(&self.dir).is_ok_and(|view| view.state.inbox_offset >= end);
            if is_read || Instant::now() > deadline {
                return Ok(());
            }
            sleep(SETTLE_INTERVAL).await;
        }
    }
}

/// Returns whether a worker may publish a file of this name. All others belong to the copy.
fn is_published_name(name: &str) -> bool {
    let own = ["iterations.log", "receipt.json", "console.log"];
    own.contains(&name) || name.starts_with("iterations/")
}

/// Writes a piece where it belongs in its file, and cuts what the file had from there on.
fn write_piece(path: &Path, piece: &Piece) -> Result<(), FleetError> {
    let write = || {
        let file = regular_file::create(path)?;
        if file.metadata()?.len() > piece.offset {
            file.set_len(piece.offset)?;
        }
        file.write_all_at(&piece.bytes, piece.offset)
    };
    write().map_err(|error| broken(&format!("cannot write {}: {error}", path.display())))
}

pub(super) fn broken(error: &dyn std::fmt::Display) -> FleetError {
    FleetError::Other(error.to_string())
}
