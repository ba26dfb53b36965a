//! The seam between ralph and the engine that carries its files: queue, leases, records, streams
//! and blobs.
//!
//! Everything belongs to one pool, which is also the unit of permissions.

use super::error::FleetError;
use crate::git::transfer::Identity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the fleet knows about a loop, besides its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopRecord {
    /// The loop's name, which is unique in its pool.
    pub(crate) name: String,
    /// The ID in the header of its journal.
    pub(crate) id: String,
    /// The time at which the loop was submitted, in milliseconds since 1970.
    pub(crate) submitted_ms: i64,
    /// The user and host that submitted it.
    pub(crate) submitted_by: String,
    /// What a worker needs in order to run it.
    #[serde(default)]
    pub(crate) needs: Needs,
    /// Where a worker finds the code that the loop begins with.
    pub(crate) code: CodeSource,
    /// How the code is checked out.
    pub(crate) checkout: Checkout,
    /// How many machines have owned the loop so far. Each claim adds one.
    #[serde(default)]
    pub(crate) epoch: u64,
    /// The worker that owns the loop; `None` if none does.
    #[serde(default)]
    pub(crate) owner: Option<String>,
    /// Whether a worker shall run the loop: it is queued, or a worker owns it.
    #[serde(default)]
    pub(crate) wanted: bool,
    /// Why the last worker that looked at the loop left it to others; `None` if none did.
    #[serde(default)]
    pub(crate) refused: Option<String>,
}

/// What a worker needs in order to run a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Needs {
    /// Programs of the agents, of which one is enough.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// Labels that the worker must have.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Names of environment variables that the worker must have. Values stay on workers.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
}

/// Where a worker finds the code that a loop begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CodeSource {
    /// A commit that can be fetched from a remote.
    Remote {
        url: String,
        commit: String,
        /// The branch that contains the commit, for servers that give out branches only.
        #[serde(default)]
        branch: Option<String>,
    },
    /// A bundle in the exchange's blobs.
    Bundle { blob: String, commit: String },
}

/// How a loop's code is checked out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkout {
    /// The branch that the loop works on.
    pub(crate) branch: String,
    /// The branch that the user was on; `None` if HEAD was detached.
    #[serde(default)]
    pub(crate) base_branch: Option<String>,
    /// The workspace's path in the repository.
    #[serde(default)]
    pub(crate) prefix: PathBuf,
    /// The identity for commits; `None` to use the worker's own.
    #[serde(default)]
    pub(crate) identity: Option<Identity>,
    /// The submitter's home directory, which paths of the plan may name.
    #[serde(default)]
    pub(crate) home: Option<PathBuf>,
    /// The timeout for a commit, including its hooks, in milliseconds.
    pub(crate) commit_timeout_ms: u64,
}

/// A value with the revision that an update must name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored<T> {
    pub(crate) value: T,
    pub(crate) revision: u64,
}

/// One of a loop's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamKind {
    /// The bytes of the journal. Only the owner appends, with the position that it knows.
    Journal,
    /// The bytes of the inbox. Everyone with the right to steer may append.
    Inbox,
    /// Pieces of the other files in the loop's directory, such as activity and logs of checks.
    Files,
}

/// A piece of a file, in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    /// The position in the stream. Positions grow, but are not consecutive. 0 in a new piece.
    pub(crate) position: u64,
    /// The epoch of the owner that wrote it; 0 in the inbox.
    pub(crate) epoch: u64,
    /// In [`StreamKind::Files`]: the file's path in the loop's directory. In the journal: the blob
    /// with the commits that the piece's events name. Empty if there is none, and in the inbox.
    pub(crate) file: String,
    /// Where the bytes begin in the file. What the file had from there on is replaced.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Piece {
    /// Applies the piece to the content of its file.
    pub(crate) fn apply_to(&self, content: &mut Vec<u8>) {
        content.resize(self.offset as usize, 0);
        content.extend_from_slice(&self.bytes);
    }
}

/// The most bytes in one piece. NATS accepts messages of 1 MiB by default.
pub(crate) const PIECE_MAX: usize = 256 << 10;

/// A worker, as it announces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerRecord {
    /// A name that is unique in the pool: the host and a random part.
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) slots: usize,
    /// The names of the loops that it runs.
    pub(crate) loops: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Programs of agents that are installed there.
    pub(crate) agents: Vec<String>,
    /// The worker's wall clock, in milliseconds since 1970, when it announced itself.
    pub(crate) at_ms: i64,
    /// How far the journals of its loops are published behind what is on its disk, in bytes.
    #[serde(default)]
    pub(crate) lag_bytes: u64,
}

/// A job from the queue. As long as it is neither finished nor released, and is extended in time, no
/// other worker gets it.
pub(crate) trait LeasedJob: Send + Sync + 'static {
    /// Returns the name of the loop to run.
    fn loop_name(&self) -> &str;
    /// Keeps the job for another lease. Returns once the exchange has confirmed it.
    fn extend(&self) -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Gives the job back: another worker may take it after the delay.
    fn release(&self, delay: Duration) -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Removes the job from the queue.
    fn finish(&self) -> impl Future<Output = Result<(), FleetError>> + Send;
}

/// Carries the loops of one pool. Every write that returns `Ok` is replicated and durable as far as
/// the exchange is configured to be. Reads see every earlier write.
pub(crate) trait Exchange: Send + Sync + 'static {
    type Job: LeasedJob;

    /// Stores the record of a new loop, and returns its revision.
    fn create_record(
        &self,
        record: &LoopRecord,
    ) -> impl Future<Output = Result<u64, FleetError>> + Send;
    /// Reads the record of a loop.
    fn record(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<Stored<LoopRecord>>, FleetError>> + Send;
    /// Reads all records, sorted by name.
    fn records(&self) -> impl Future<Output = Result<Vec<Stored<LoopRecord>>, FleetError>> + Send;
    /// Replaces a record if it still has this revision, and returns the new revision.
    /// [`FleetError::Fenced`] if it has another.
    fn update_record(
        &self,
        record: &LoopRecord,
        revision: u64,
    ) -> impl Future<Output = Result<u64, FleetError>> + Send;
    /// Deletes a loop's record if it still has this revision, and then its streams and blobs.
    fn delete_loop(
        &self,
        record: &LoopRecord,
        revision: u64,
    ) -> impl Future<Output = Result<(), FleetError>> + Send;

    /// Puts a loop into the queue. Has no effect if it was put there with the same key before.
    fn enqueue(&self, name: &str, key: &str)
    -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Takes the next job from the queue; `None` if there is none within this time.
    fn next_job(
        &self,
        wait: Duration,
    ) -> impl Future<Output = Result<Option<Self::Job>, FleetError>> + Send;
    /// Returns the number of jobs that no worker has taken.
    fn queued(&self) -> impl Future<Output = Result<u64, FleetError>> + Send;

    /// Appends a piece and returns its position. If `last` is given and the newest piece of this
    /// loop's stream has another position (0 if there is none), fails with [`FleetError::Fenced`].
    /// Appending the same piece with the same `last` again, because the first try was not confirmed,
    /// returns the position of the first.
    fn append(
        &self,
        id: &str,
        stream: StreamKind,
        piece: &Piece,
        last: Option<u64>,
    ) -> impl Future<Output = Result<u64, FleetError>> + Send;
    /// Reads the pieces after a position, all that exist now, in order.
    fn read(
        &self,
        id: &str,
        stream: StreamKind,
        after: u64,
    ) -> impl Future<Output = Result<Vec<Piece>, FleetError>> + Send;
    /// Passes the pieces after a position to `receive`, in order, as they arrive, until it returns
    /// `false`. Survives lost connections. Returns an error only if there is no point in waiting.
    fn follow(
        &self,
        id: &str,
        stream: StreamKind,
        after: u64,
        receive: impl FnMut(Piece) -> bool + Send,
    ) -> impl Future<Output = Result<(), FleetError>> + Send;

    /// Stores a file as a blob. A blob of this name is replaced.
    fn put_blob(
        &self,
        name: &str,
        file: &Path,
    ) -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Writes a blob to a file. Returns `false` if there is no such blob.
    fn get_blob(
        &self,
        name: &str,
        file: &Path,
    ) -> impl Future<Output = Result<bool, FleetError>> + Send;

    /// Announces a worker. The announcement expires unless it is repeated every few seconds.
    fn announce(
        &self,
        worker: &WorkerRecord,
    ) -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Removes the announcement of a worker that exits.
    fn withdraw(&self, worker_id: &str) -> impl Future<Output = Result<(), FleetError>> + Send;
    /// Returns the workers whose announcements have not expired.
    fn workers(&self) -> impl Future<Output = Result<Vec<WorkerRecord>, FleetError>> + Send;
}
