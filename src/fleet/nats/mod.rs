//! The exchange on NATS JetStream.

mod api;
mod blobs;
mod health;
mod jobs;
mod layout;
mod pieces;
mod records;
mod setup;
mod workers;

use super::connection::FleetConnection;
use super::error::FleetError;
use super::exchange::{Exchange, LoopRecord, Piece, Stored, StreamKind, WorkerRecord};
use api::Api;
pub(crate) use health::{Health, Role};
pub(crate) use jobs::NatsJob;
use layout::PoolLayout;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How many requests are under way at the same time where many records are read.
const CONCURRENT_READS: usize = 64;

/// One pool on NATS JetStream.
#[derive(Debug)]
pub(crate) struct NatsExchange {
    api: Arc<Api>,
    layout: PoolLayout,
    ack_wait: Duration,
    /// Whether the consumer of the queue has the settings of this process.
    has_consumer: OnceCell<()>,
}

impl NatsExchange {
    /// Connects, and creates the pool's streams if they are missing and the user may create them.
    /// Later, a lost connection is replaced in the background, for ever.
    pub(crate) async fn open(connection: &FleetConnection) -> Result<Self, FleetError> {
        let exchange = Self::connect(connection).await?;
        exchange.create_streams().await?;
        Ok(exchange)
    }

    /// Connects without looking whether the pool exists.
    pub(crate) async fn connect(connection: &FleetConnection) -> Result<Self, FleetError> {
        let layout = PoolLayout::new(&connection.pool);
        let api = Api::connect(connection, layout.inbox_prefix()).await?;
        Ok(Self {
            api: Arc::new(api),
            layout,
            ack_wait: connection.ack_wait,
            has_consumer: OnceCell::new(),
        })
    }
}

impl Exchange for NatsExchange {
    type Job = NatsJob;

    async fn create_record(&self, record: &LoopRecord) -> Result<u64, FleetError> {
        self.store_new_record(record).await
    }

    async fn record(&self, name: &str) -> Result<Option<Stored<LoopRecord>>, FleetError> {
        self.read_record(name).await
    }

    async fn records(&self) -> Result<Vec<Stored<LoopRecord>>, FleetError> {
        self.read_records().await
    }

    async fn update_record(&self, record: &LoopRecord, revision: u64) -> Result<u64, FleetError> {
        self.replace_record(record, revision).await
    }

    async fn delete_loop(&self, record: &LoopRecord, revision: u64) -> Result<(), FleetError> {
        self.delete_record(record, revision).await?;
        for kind in [StreamKind::Journal, StreamKind::Inbox, StreamKind::Files] {
            self.purge_pieces(&record.id, kind).await?;
        }
        self.delete_blobs(&format!("{}/", record.id)).await
    }

    async fn enqueue(&self, name: &str, key: &str) -> Result<(), FleetError> {
        self.put_job(name, key).await
    }

    async fn next_job(&self, wait: Duration) -> Result<Option<NatsJob>, FleetError> {
        self.take_job(wait).await
    }

    async fn queued(&self) -> Result<u64, FleetError> {
        self.count_jobs().await
    }

    async fn append(
        &self,
        id: &str,
        stream: StreamKind,
        piece: &Piece,
        last: Option<u64>,
    ) -> Result<u64, FleetError> {
        self.append_piece(id, stream, piece, last).await
    }

    async fn read(
        &self,
        id: &str,
        stream: StreamKind,
        after: u64,
    ) -> Result<Vec<Piece>, FleetError> {
        self.read_pieces(id, stream, after).await
    }

    async fn follow(
        &self,
        id: &str,
        stream: StreamKind,
        after: u64,
        receive: impl FnMut(Piece) -> bool + Send,
    ) -> Result<(), FleetError> {
        self.follow_pieces(id, stream, after, receive).await
    }

    async fn put_blob(&self, name: &str, file: &Path) -> Result<(), FleetError> {
        self.upload(name, file).await
    }

    async fn get_blob(&self, name: &str, file: &Path) -> Result<bool, FleetError> {
        self.download(name, file).await
    }

    async fn announce(&self, worker: &WorkerRecord) -> Result<(), FleetError> {
        self.put_worker(worker).await
    }

    async fn withdraw(&self, worker_id: &str) -> Result<(), FleetError> {
        self.remove_worker(worker_id).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, FleetError> {
        self.read_workers().await
    }
}

/// Returns an error unless `token` can be part of a subject.
fn check_token(token: &str) -> Result<(), FleetError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if !token.is_empty() && token.bytes().all(is_plain) {
        return Ok(());
    }
    Err(FleetError::Other(format!(
        "{token:?} cannot be a name in the fleet: use only letters, digits, - and _"
    )))
}
