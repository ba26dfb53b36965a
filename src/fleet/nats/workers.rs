//! The announcements of workers: a bucket whose entries expire.

use super::super::error::FleetError;
use super::super::exchange::WorkerRecord;
use super::records::done;
use super::{NatsExchange, check_token};
use async_nats::HeaderMap;

impl NatsExchange {
    pub(super) async fn put_worker(&self, worker: &WorkerRecord) -> Result<(), FleetError> {
        check_token(&worker.id)?;
        let payload =
            serde_json::to_vec(worker).map_err(|error| FleetError::Other(error.to_string()))?;
        let subject = self.layout.worker_subject(&worker.id);
        done(self.api.publish(&subject, HeaderMap::new(), &payload).await).map(drop)
    }

    pub(super) async fn remove_worker(&self, id: &str) -> Result<(), FleetError> {
        check_token(id)?;
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        let subject = self.layout.worker_subject(id);
        done(self.api.publish(&subject, headers, &[]).await).map(drop)
    }

    pub(super) async fn read_workers(&self) -> Result<Vec<WorkerRecord>, FleetError> {
        let stream = self.layout.workers_stream();
        let filter = self.layout.worker_subject(">");
        let all = self.read_bucket(&stream, &filter).await?;
        let parse = |payload: &[u8]| serde_json::from_slice::<WorkerRecord>(payload).ok();
        let mut workers: Vec<_> = all.iter().filter_map(|one| parse(&one.payload)).collect();
        workers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(workers)
    }
}
