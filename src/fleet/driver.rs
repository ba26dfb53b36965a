//! An exchange for tests outside of the crate: blocking calls with plain types.

use super::connection::FleetConnection;
use super::error::FleetError;
use super::exchange::{
    Checkout, CodeSource, Exchange, LeasedJob, LoopRecord, Needs, Piece, StreamKind, WorkerRecord,
};
use super::nats::{NatsExchange, NatsJob};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A client of one pool. Its runtime has a thread of its own, so that the connection is served
/// between calls too.
#[derive(Clone, Debug)]
pub struct ExchangeDriver {
    exchange: Arc<NatsExchange>,
    runtime: Arc<DriverRuntime>,
}

#[derive(Debug)]
struct DriverRuntime {
    handle: Handle,
    /// Ends the runtime's thread when it is dropped.
    _end: oneshot::Sender<()>,
}

/// The streams of a loop.
#[derive(Clone, Copy, Debug)]
pub enum PieceStream {
    /// The journal.
    Journal,
    /// The inbox.
    Inbox,
    /// Other files.
    Files,
}

impl PieceStream {
    fn kind(self) -> StreamKind {
        match self {
            Self::Journal => StreamKind::Journal,
            Self::Inbox => StreamKind::Inbox,
            Self::Files => StreamKind::Files,
        }
    }
}

/// A job from the queue.
#[derive(Debug)]
pub struct JobDriver {
    job: NatsJob,
    handle: Handle,
}

/// A result whose error is what a user would read.
type DriverResult<T> = Result<T, String>;

fn text<T>(result: Result<T, FleetError>) -> DriverResult<T> {
    result.map_err(|error| error.to_string())
}

impl ExchangeDriver {
    /// Connects to a pool, and creates it if necessary.
    pub fn open(urls: &str, pool: &str, ack_wait: Duration) -> DriverResult<Self> {
        let (send_handle, handle) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let _ = send_handle.send(runtime.handle().clone());
            let _ = runtime.block_on(ended);
        });
        let handle = handle.recv().map_err(|error| error.to_string())?;
        let mut connection = text(FleetConnection::new(urls, pool))?;
        connection.ack_wait = ack_wait;
        let exchange = text(handle.block_on(NatsExchange::open(&connection)))?;
        Ok(Self {
            exchange: Arc::new(exchange),
            runtime: Arc::new(DriverRuntime { handle, _end: end }),
        })
    }

    fn wait<T>(&self, future: impl Future<Output = Result<T, FleetError>>) -> DriverResult<T> {
        text(self.runtime.handle.block_on(future))
    }

    /// Stores the record of a new loop, and returns its revision.
    pub fn create_record(&self, name: &str, id: &str) -> DriverResult<u64> {
        let record = LoopRecord {
            name: name.into(),
            id: id.into(),
            submitted_ms: 0,
            submitted_by: "test".into(),
            needs: Needs::default(),
            code: CodeSource::Bundle {
                blob: format!("{id}/code"),
                commit: "0".into(),
            },
            checkout: Checkout::default(),
            epoch: 0,
            owner: None,
            wanted: true,
            refused: None,
        };
        self.wait(self.exchange.create_record(&record))
    }

    /// Returns the epoch, the owner and the revision of a record.
    pub fn record(&self, name: &str) -> DriverResult<Option<(u64, Option<String>, u64)>> {
        let stored = self.wait(self.exchange.record(name))?;
        Ok(stored.map(|stored| (stored.value.epoch, stored.value.owner, stored.revision)))
    }

    /// Returns the names of all records.
    pub fn record_names(&self) -> DriverResult<Vec<String>> {
        let records = self.wait(self.exchange.records())?;
        Ok(records
            .into_iter()
            .map(|stored| stored.value.name)
            .collect())
    }

    /// Reads a record, sets its owner, adds one to its epoch, and writes it if it is unchanged since
    /// then. Returns the new epoch and revision.
    pub fn claim(&self, name: &str, owner: &str) -> DriverResult<(u64, u64)> {
        let stored = self.wait(self.exchange.record(name))?;
        let stored = stored.ok_or("no such loop")?;
        let mut record = stored.value;
        record.epoch += 1;
        record.owner = Some(owner.into());
        let revision = self.wait(self.exchange.update_record(&record, stored.revision))?;
        Ok((record.epoch, revision))
    }

    /// Deletes a loop.
    pub fn delete_loop(&self, name: &str) -> DriverResult<()> {
        let stored = self.wait(self.exchange.record(name))?;
        let stored = stored.ok_or("no such loop")?;
        self.wait(self.exchange.delete_loop(&stored.value, stored.revision))
    }

    /// Puts a loop into the queue.
    pub fn enqueue(&self, name: &str, key: &str) -> DriverResult<()> {
        self.wait(self.exchange.enqueue(name, key))
    }

    /// Takes the next job.
    pub fn next_job(&self, wait: Duration) -> DriverResult<Option<JobDriver>> {
        let job = self.wait(self.exchange.next_job(wait))?;
        Ok(job.map(|job| JobDriver {
            job,
            handle: self.runtime.handle.clone(),
        }))
    }

    /// Returns the number of jobs that no worker has taken.
    pub fn queued(&self) -> DriverResult<u64> {
        self.wait(self.exchange.queued())
    }

    /// Appends bytes, and returns their position.
    pub fn append(
        &self,
        id: &str,
        stream: PieceStream,
        epoch: u64,
        offset: u64,
        bytes: &[u8],
        last: Option<u64>,
    ) -> DriverResult<u64> {
        let piece = Piece {
            epoch,
            offset,
            bytes: bytes.to_vec(),
            ..Piece::default()
        };
        self.wait(self.exchange.append(id, stream.kind(), &piece, last))
    }

    /// Returns the positions and bytes of the pieces after a position.
    pub fn read(
        &self,
        id: &str,
        stream: PieceStream,
        after: u64,
    ) -> DriverResult<Vec<(u64, Vec<u8>)>> {
        let pieces = self.wait(self.exchange.read(id, stream.kind(), after))?;
        Ok(pieces
            .into_iter()
            .map(|piece| (piece.position, piece.bytes))
            .collect())
    }

    /// Passes pieces to `receive` until it returns `false`.
    pub fn follow(
        &self,
        id: &str,
        stream: PieceStream,
        after: u64,
        mut receive: impl FnMut(u64, Vec<u8>) -> bool + Send,
    ) -> DriverResult<()> {
        let receive = |piece: Piece| receive(piece.position, piece.bytes);
        self.wait(self.exchange.follow(id, stream.kind(), after, receive))
    }

    /// Stores a file as a blob.
    pub fn put_blob(&self, name: &str, file: &Path) -> DriverResult<()> {
        self.wait(self.exchange.put_blob(name, file))
    }

    /// Writes a blob to a file.
    pub fn get_blob(&self, name: &str, file: &Path) -> DriverResult<bool> {
        self.wait(self.exchange.get_blob(name, file))
    }

    /// Announces a worker with this clock.
    pub fn announce(&self, id: &str, at_ms: i64) -> DriverResult<()> {
        let worker = WorkerRecord {
            id: id.into(),
            host: "host".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            slots: 2,
            loops: vec!["shop".into()],
            labels: [("gpu".to_owned(), "yes".to_owned())].into(),
            agents: vec!["claude".into()],
            at_ms,
            lag_bytes: 7,
        };
        self.wait(self.exchange.announce(&worker))
    }

    /// Removes an announcement.
    pub fn withdraw(&self, id: &str) -> DriverResult<()> {
        self.wait(self.exchange.withdraw(id))
    }

    /// Returns the IDs of all workers.
    pub fn workers(&self) -> DriverResult<Vec<String>> {
        let workers = self.wait(self.exchange.workers())?;
        Ok(workers.into_iter().map(|worker| worker.id).collect())
    }
}

impl JobDriver {
    /// Returns the name of the loop to run.
    pub fn loop_name(&self) -> &str {
        self.job.loop_name()
    }

    /// Keeps the job for another lease.
    pub fn extend(&self) -> DriverResult<()> {
        text(self.handle.block_on(self.job.extend()))
    }

    /// Gives the job back.
    pub fn release(&self, delay: Duration) -> DriverResult<()> {
        text(self.handle.block_on(self.job.release(delay)))
    }

    /// Removes the job from the queue.
    pub fn finish(&self) -> DriverResult<()> {
        text(self.handle.block_on(self.job.finish()))
    }
}
