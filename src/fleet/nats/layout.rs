//! Names and settings of the streams and buckets of a pool.
//!
//! Every pool has streams of its own, because NATS grants access to JetStream by the names of
//! streams. The buckets are laid out as NATS's own tools do, so that `nats kv` and `nats object` can
//! read them.

use super::super::exchange::StreamKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use std::time::Duration;

/// How long an announcement of a worker is valid.
const ANNOUNCEMENT_TTL: Duration = Duration::from_secs(30);

/// How long a server recognizes a message that was sent again.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// How long a server recognizes a job that is put into the queue again.
const JOB_WINDOW: Duration = Duration::from_secs(3600);

/// How long pieces of files other than the journal and the inbox are kept.
const FILES_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The names of a pool's streams and subjects.
#[derive(Clone, Debug)]
pub(super) struct PoolLayout {
    pool: String,
}

impl PoolLayout {
    pub(super) fn new(pool: &str) -> Self {
        Self { pool: pool.into() }
    }

    /// Returns the prefix of the subjects to which servers reply. It differs between pools, so that
    /// permissions can keep a user from reading replies to the users of another pool.
    pub(super) fn inbox_prefix(&self) -> String {
        format!("_INBOX.ralph-{}", self.pool)
    }

    pub(super) fn jobs_stream(&self) -> String {
        format!("ralph-{}-jobs", self.pool)
    }

    pub(super) fn job_subject(&self, name: &str) -> String {
        format!("ralph.{}.job.{name}", self.pool)
    }

    pub(super) fn loops_stream(&self) -> String {
        format!("KV_ralph-{}-loops", self.pool)
    }

    pub(super) fn loop_subject(&self, name: &str) -> String {
        format!("$KV.ralph-{}-loops.{name}", self.pool)
    }

    pub(super) fn workers_stream(&self) -> String {
        format!("KV_ralph-{}-workers", self.pool)
    }

    pub(super) fn worker_subject(&self, id: &str) -> String {
        format!("$KV.ralph-{}-workers.{id}", self.pool)
    }

    pub(super) fn blobs_bucket(&self) -> String {
        format!("ralph-{}-code", self.pool)
    }

    pub(super) fn blobs_stream(&self) -> String {
        format!("OBJ_ralph-{}-code", self.pool)
    }

    /// Returns the subject of a blob's bytes. `part` is unique to one upload.
    pub(super) fn chunk_subject(&self, part: &str) -> String {
        format!("$O.ralph-{}-code.C.{part}", self.pool)
    }

    /// Returns the subject of a blob's description. `name` is encoded.
    pub(super) fn blob_subject(&self, name: &str) -> String {
        format!("$O.ralph-{}-code.M.{name}", self.pool)
    }

    pub(super) fn pieces_stream(&self, kind: StreamKind) -> String {
        format!("ralph-{}-{}", self.pool, stream_name(kind))
    }

    pub(super) fn pieces_subject(&self, kind: StreamKind, id: &str) -> String {
        format!("ralph.{}.{}.{id}", self.pool, stream_name(kind))
    }

    /// Returns the settings of all streams, for a number of replicas.
    pub(super) fn streams(&self, replicas: usize) -> Vec<Config> {
        let base = || Config {
            storage: StorageType::File,
            num_replicas: replicas,
            max_bytes: -1,
            max_messages: -1,
            max_messages_per_subject: -1,
            duplicate_window: DUPLICATE_WINDOW,
            // A replica that answers reads may lag behind the leader.
            allow_direct: false,
            ..Config::default()
        };
        let bucket = |stream: String, subject: String| Config {
            name: stream,
            subjects: vec![subject],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            ..base()
        };
        let pieces = |kind: StreamKind| Config {
            name: self.pieces_stream(kind),
            subjects: vec![self.pieces_subject(kind, "*")],
            max_age: if kind == StreamKind::Files {
                FILES_MAX_AGE
            } else {
                Duration::ZERO
            },
            ..base()
        };
        vec![
            Config {
                name: self.jobs_stream(),
                subjects: vec![self.job_subject("*")],
                retention: RetentionPolicy::WorkQueue,
                duplicate_window: JOB_WINDOW,
                ..base()
            },
            bucket(self.loops_stream(), self.loop_subject(">")),
            Config {
                max_age: ANNOUNCEMENT_TTL,
                duplicate_window: ANNOUNCEMENT_TTL,
                ..bucket(self.workers_stream(), self.worker_subject(">"))
            },
            pieces(StreamKind::Journal),
            pieces(StreamKind::Inbox),
            pieces(StreamKind::Files),
            Config {
                name: self.blobs_stream(),
                subjects: vec![self.chunk_subject(">"), self.blob_subject(">")],
                discard: DiscardPolicy::New,
                allow_rollup: true,
                ..base()
            },
        ]
    }
}

/// Returns the name of a kind of stream, in names of streams and in headers.
pub(super) fn stream_name(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Journal => "journal",
        StreamKind::Inbox => "inbox",
        StreamKind::Files => "files",
    }
}
