//! The records of loops: a bucket of key and value pairs, in which every change names the revision
//! that it replaces.

use super::super::error::FleetError;
use super::super::exchange::{LoopRecord, Stored};
use super::api::{EXPECTED_LAST, PublishError, ROLLUP};
use super::{CONCURRENT_READS, NatsExchange, check_token};
use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

/// The header that says what was done to a key.
const OPERATION: &str = "KV-Operation";

impl NatsExchange {
    pub(super) async fn store_new_record(&self, record: &LoopRecord) -> Result<u64, FleetError> {
        match self.write_record(record, 0).await {
            Err(PublishError::WrongLast { .. }) => {}
            other => return done(other),
        }
        // A key that was deleted has a revision too.
        let Some(current) = self.current(&record.name).await? else {
            return Err(FleetError::Fenced);
        };
        if !is_deleted(&current) {
            // The first try may have got no answer.
            return match parse(&current) {
                Ok(stored) if stored.value == *record => Ok(stored.revision),
                _ => Err(FleetError::NameTaken),
            };
        }
        match self.write_record(record, current.sequence).await {
            Err(PublishError::WrongLast { .. }) => Err(FleetError::NameTaken),
            other => done(other),
        }
    }

    pub(super) async fn replace_record(
        &self,
        record: &LoopRecord,
        revision: u64,
    ) -> Result<u64, FleetError> {
        match self.write_record(record, revision).await {
            // It may be the first try of this call that was stored.
            Err(PublishError::WrongLast { was_retried: true }) => {
                match self.read_record(&record.name).await? {
                    Some(stored) if stored.value == *record => Ok(stored.revision),
                    _ => Err(FleetError::Fenced),
                }
            }
            other => done(other),
        }
    }

    async fn write_record(&self, record: &LoopRecord, revision: u64) -> Result<u64, PublishError> {
        check_token(&record.name).map_err(PublishError::Failed)?;
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_LAST, revision.to_string());
        let payload = serde_json::to_vec(record)
            .map_err(|error| PublishError::Failed(FleetError::Other(error.to_string())))?;
        let subject = self.layout.loop_subject(&record.name);
        let ack = self.api.publish(&subject, headers, &payload).await?;
        Ok(ack.sequence)
    }

    /// Deletes a record if it still has this revision.
    pub(super) async fn delete_record(
        &self,
        record: &LoopRecord,
        revision: u64,
    ) -> Result<(), FleetError> {
        check_token(&record.name)?;
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_LAST, revision.to_string());
        headers.insert(OPERATION, "PURGE");
        headers.insert(ROLLUP, "sub");
        let subject = self.layout.loop_subject(&record.name);
        match self.api.publish(&subject, headers, &[]).await {
            Err(PublishError::WrongLast { was_retried: true }) => {
                let current = self.current(&record.name).await?;
                if current.is_none_or(|current| is_deleted(&current)) {
                    return Ok(());
                }
                Err(FleetError::Fenced)
            }
            other => done(other.map(drop)),
        }
    }

    async fn current(&self, name: &str) -> Result<Option<StreamMessage>, FleetError> {
        check_token(name)?;
        let stream = self.layout.loops_stream();
        self.api
            .last(&stream, &self.layout.loop_subject(name))
            .await
    }

    pub(super) async fn read_record(
        &self,
        name: &str,
    ) -> Result<Option<Stored<LoopRecord>>, FleetError> {
        let current = self.current(name).await?;
        let current = current.filter(|message| !is_deleted(message));
        current.as_ref().map(parse).transpose()
    }

    /// Reads all records, sorted by name. Leaves out those that only a newer version can read: one of
    /// them must not hide all others.
    pub(super) async fn read_records(&self) -> Result<Vec<Stored<LoopRecord>>, FleetError> {
        let stream = self.layout.loops_stream();
        let all = self
            .read_bucket(&stream, &self.layout.loop_subject(">"))
            .await?;
        let mut records: Vec<_> = all
            .iter()
            .filter_map(|message| parse(message).ok())
            .collect();
        records.sort_by(|a, b| a.value.name.cmp(&b.value.name));
        Ok(records)
    }

    /// Reads the newest message of every subject that is not deleted.
    pub(super) async fn read_bucket(
        &self,
        stream: &str,
        filter: &str,
    ) -> Result<Vec<StreamMessage>, FleetError> {
        let subjects = self.api.subjects(stream, filter).await?;
        let messages = stream::iter(subjects)
            .map(|subject| async move { self.api.last(stream, &subject).await })
            .buffer_unordered(CONCURRENT_READS);
        // A subject may have expired in between.
        let messages = messages.try_filter_map(|message| async move {
            Ok(message.filter(|message| !is_deleted(message)))
        });
        messages.try_collect().await
    }
}

fn is_deleted(message: &StreamMessage) -> bool {
    message.headers.get(OPERATION).is_some()
}

fn parse(message: &StreamMessage) -> Result<Stored<LoopRecord>, FleetError> {
    let value = serde_json::from_slice(&message.payload).map_err(|error| {
        let subject = message.subject.as_str();
        let name = subject.rsplit('.').next().unwrap_or(subject);
        FleetError::Other(format!(
            "cannot read the fleet's record of {name}; a newer ralph may have written it: {error}"
        ))
    })?;
    Ok(Stored {
        value,
        revision: message.sequence,
    })
}

/// Turns a refused change into [`FleetError::Fenced`].
pub(super) fn done<T>(result: Result<T, PublishError>) -> Result<T, FleetError> {
    result.map_err(|error| match error {
        PublishError::WrongLast { .. } => FleetError::Fenced,
        PublishError::Failed(error) => error,
    })
}
