//! The queue of loops to run: a work queue, whose jobs are leased to workers.

use super::super::error::FleetError;
use super::super::exchange::LeasedJob;
use super::api::{Api, CONSUMER_NOT_FOUND, MESSAGE_ID, api_error};
use super::records::done;
use super::{NatsExchange, check_token};
use crate::store::boot_clock_ms;
use async_nats::jetstream::AckKind;
use async_nats::{HeaderMap, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The name of the consumer that all workers of a pool share.
const CONSUMER: &str = "workers";
/// How long a confirmation may take.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a confirmation is tried again. An election takes up to 6 s.
const CONFIRM_PATIENCE: Duration = Duration::from_secs(8);
/// How long to wait before the next try if no server is responsible for the queue now.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// How much longer to wait for an answer than the server waits for a job.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// A job that this process leases from the queue.
#[derive(Debug)]
pub(crate) struct NatsJob {
    api: Arc<Api>,
    /// The subject that confirms, extends or returns the job.
    ack_subject: String,
    loop_name: String,
    ack_wait: Duration,
    /// Until when no other worker can have the job, on the boot clock.
    leased_until_ms: AtomicU64,
}

impl NatsJob {
    /// Sends an acknowledgment, and waits for the server to confirm it.
    async fn acknowledge(&self, kind: AckKind) -> Result<(), FleetError> {
        let until = Instant::now() + CONFIRM_PATIENCE;
        loop {
            // After the lease, the same subject acknowledges another worker's lease.
            if boot_clock_ms() >= self.leased_until_ms.load(Ordering::Relaxed) {
                return Err(FleetError::Fenced);
            }
            let request = Request::new().payload(kind.into());
            let sent = self.api.send(&self.ack_subject, request, CONFIRM_TIMEOUT);
            match sent.await {
                Err(FleetError::Unreachable(_)) if Instant::now() < until => {
                    sleep(RETRY_DELAY).await;
                }
                result => return result.map(drop),
            }
        }
    }
}

impl LeasedJob for NatsJob {
    fn loop_name(&self) -> &str {
        &self.loop_name
    }

    async fn extend(&self) -> Result<(), FleetError> {
        // From before the request: the server may have received it at any time since.
        let sent_ms = boot_clock_ms();
        self.acknowledge(AckKind::Progress).await?;
        let until_ms = sent_ms + self.ack_wait.as_millis() as u64;
        self.leased_until_ms.fetch_max(until_ms, Ordering::Relaxed);
        Ok(())
    }

    async fn release(&self, delay: Duration) -> Result<(), FleetError> {
        let delay = (!delay.is_zero()).then_some(delay);
        self.acknowledge(AckKind::Nak(delay)).await
    }

    async fn finish(&self) -> Result<(), FleetError> {
        self.acknowledge(AckKind::Ack).await
    }
}

impl NatsExchange {
    pub(super) async fn put_job(&self, name: &str, key: &str) -> Result<(), FleetError> {
        check_token(name)?;
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, format!("{name}/{key}"));
        let subject = self.layout.job_subject(name);
        done(self.api.publish(&subject, headers, &[]).await).map(drop)
    }

    /// Creates the consumer of the queue, or gives it the lease of this process.
    async fn create_consumer(&self) -> Result<(), FleetError> {
        let stream = self.layout.jobs_stream();
        let request = json!({
            "stream_name": stream,
            "config": {
                "durable_name": CONSUMER,
                "name": CONSUMER,
                "ack_policy": "explicit",
                "ack_wait": self.ack_wait.as_nanos() as u64,
                "deliver_policy": "all",
                "replay_policy": "instant",
                "max_deliver": -1,
                // One for each loop that runs.
                "max_ack_pending": -1,
                "max_waiting": 16384,
            },
        });
        let name = format!("CONSUMER.CREATE.{stream}.{CONSUMER}");
        let created = self.api.call::<Value>(&name, &request).await?;
        created.map(drop).map_err(|error| api_error(&error))
    }

    pub(super) async fn take_job(&self, wait: Duration) -> Result<Option<NatsJob>, FleetError> {
        self.has_consumer
            .get_or_try_init(|| self.create_consumer())
            .await?;
        let until = Instant::now() + wait;
        loop {
            // The lease begins when the server sends the job, some time after it is asked. Asking for
            // a short time keeps most of the lease although it is counted from the question.
            let left = until.saturating_duration_since(Instant::now());
            let part = left.min(self.ack_wait / 3);
            match self.ask_for_job(part).await {
                Ok(None) if part < left => {}
                // The queue may be without a leader for a moment.
                Err(FleetError::Unreachable(_)) if left > RETRY_DELAY => sleep(RETRY_DELAY).await,
                result => return result,
            }
        }
    }

    async fn ask_for_job(&self, wait: Duration) -> Result<Option<NatsJob>, FleetError> {
        let stream = self.layout.jobs_stream();
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{CONSUMER}");
        let request = if wait.is_zero() {
            json!({ "batch": 1, "no_wait": true })
        } else {
            json!({ "batch": 1, "expires": wait.as_nanos() as u64 })
        };
        let asked_ms = boot_clock_ms();
        // A job arrives with the subject of the queue, which only a subscription of its own can receive.
        let request = Request::new()
            .payload(request.to_string().into())
            .inbox(self.api.client().new_inbox());
        let reply = self
            .api
            .send(&subject, request, wait + ANSWER_MARGIN)
            .await?;
        if let Some(status) = reply.status {
            let why = reply.description.unwrap_or_default();
            return match status {
                StatusCode::NOT_FOUND | StatusCode::TIMEOUT => Ok(None),
                // Such as a change of the consumer's leader.
                _ => Err(FleetError::Unreachable(format!("{status} {why}"))),
            };
        }
        let Some(ack_subject) = reply.reply else {
            return Err(FleetError::Other("a job that cannot be confirmed".into()));
        };
        let loop_name = reply.subject.rsplit('.').next().unwrap_or_default();
        Ok(Some(NatsJob {
            api: Arc::clone(&self.api),
            ack_subject: ack_subject.to_string(),
            loop_name: loop_name.to_owned(),
            ack_wait: self.ack_wait,
            leased_until_ms: AtomicU64::new(asked_ms + self.ack_wait.as_millis() as u64),
        }))
    }

    pub(super) async fn count_jobs(&self) -> Result<u64, FleetError> {
        #[derive(Deserialize)]
        struct ConsumerCounts {
            #[serde(default)]
            num_pending: u64,
        }
        #[derive(Deserialize)]
        struct StreamCounts {
            state: MessageCount,
        }
        #[derive(Deserialize)]
        struct MessageCount {
            messages: u64,
        }
        let stream = self.layout.jobs_stream();
        let name = format!("CONSUMER.INFO.{stream}.{CONSUMER}");
        match self.api.call::<ConsumerCounts>(&name, &Value::Null).await? {
            Ok(counts) => return Ok(counts.num_pending),
            Err(error) if error.error_code().0 == CONSUMER_NOT_FOUND => {}
            Err(error) => return Err(api_error(&error)),
        }
        // No worker has ever asked.
        let name = format!("STREAM.INFO.{stream}");
        let counts = self.api.call::<StreamCounts>(&name, &Value::Null).await?;
        let counts = counts.map_err(|error| api_error(&error))?;
        Ok(counts.state.messages)
    }
}
