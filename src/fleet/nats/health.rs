//! What a client can see of the servers' health, and what it may do.

use super::super::error::FleetError;
use super::NatsExchange;
use super::api::{EXPECTED_LAST, PublishError, STREAM_NOT_FOUND, api_error};
use crate::fleet::exchange::StreamKind;
use async_nats::HeaderMap;
use async_nats::jetstream::account::Account;
use async_nats::jetstream::stream::{ClusterInfo, Config};
use serde::Deserialize;
use serde_json::Value;

/// A name that no loop, worker or blob has.
const PROBE: &str = "ralph-probe";

/// What the servers report.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) server_name: String,
    pub(crate) version: String,
    pub(crate) cluster: Option<String>,
    /// The nodes that the server announces to clients.
    pub(crate) nodes: usize,
    pub(crate) max_payload: usize,
    /// Whether the connection is encrypted.
    pub(crate) is_encrypted: bool,
    pub(crate) account: Result<Account, FleetError>,
    pub(crate) streams: Vec<Result<StreamHealth, FleetError>>,
}

/// The state of one stream.
#[derive(Debug)]
pub(crate) struct StreamHealth {
    pub(crate) name: String,
    /// `None` if the stream does not exist.
    pub(crate) found: Option<FoundStream>,
}

/// A stream that exists.
#[derive(Debug, Deserialize)]
pub(crate) struct FoundStream {
    pub(crate) config: Config,
    pub(crate) state: StreamTotals,
    #[serde(default)]
    pub(crate) cluster: Option<ClusterInfo>,
}

/// How much a stream contains.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamTotals {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// A role that permissions can grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Watch,
    Submit,
    Work,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Watch, Self::Submit, Self::Work];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Submit => "submit",
            Self::Work => "work",
        }
    }
}

impl NatsExchange {
    pub(crate) async fn health(&self) -> Health {
        let info = self.api.client().server_info();
        let mut streams = Vec::new();
        for config in self.layout.streams(1) {
            streams.push(self.stream_health(config.name).await);
        }
        Health {
            server_name: info.server_name,
            version: info.version,
            cluster: info.cluster.filter(|name| !name.is_empty()),
            nodes: info.connect_urls.len().max(1),
            max_payload: info.max_payload,
            is_encrypted: info.tls_required,
            account: self.account().await,
            streams,
        }
    }

    async fn account(&self) -> Result<Account, FleetError> {
        let account = self.api.call::<Account>("INFO", &Value::Null).await?;
        account.map_err(|error| api_error(&error))
    }

    async fn stream_health(&self, name: String) -> Result<StreamHealth, FleetError> {
        let info = format!("STREAM.INFO.{name}");
        let found = match self.api.call::<FoundStream>(&info, &Value::Null).await? {
            Ok(found) => Some(found),
            Err(error) if error.error_code().0 == STREAM_NOT_FOUND => None,
            Err(error) => return Err(api_error(&error)),
        };
        Ok(StreamHealth { name, found })
    }

    /// Tries what a role needs, without changing anything. Returns what is refused.
    pub(crate) async fn try_role(&self, role: Role) -> Result<Vec<String>, FleetError> {
        let layout = &self.layout;
        let mut refused = Vec::new();
        match role {
            Role::Watch => {
                let mut streams = vec![layout.loops_stream(), layout.workers_stream()];
                let kinds = [StreamKind::Journal, StreamKind::Inbox, StreamKind::Files];
                streams.extend(kinds.map(|kind| layout.pieces_stream(kind)));
                for stream in streams {
                    match self.api.last(&stream, PROBE).await {
                        Err(FleetError::Denied(_)) => refused.push(format!("read {stream}")),
                        other => drop(other?),
                    }
                }
            }
            Role::Submit => {
                let subjects = [
                    layout.loop_subject(PROBE),
                    layout.job_subject(PROBE),
                    layout.pieces_subject(StreamKind::Inbox, PROBE),
                    layout.chunk_subject(PROBE),
                ];
                self.try_publish(&subjects, &mut refused).await?;
            }
            Role::Work => {
                let subjects = [
                    layout.loop_subject(PROBE),
                    layout.worker_subject(PROBE),
                    layout.pieces_subject(StreamKind::Journal, PROBE),
                    layout.pieces_subject(StreamKind::Files, PROBE),
                    layout.chunk_subject(PROBE),
                ];
                self.try_publish(&subjects, &mut refused).await?;
            }
        }
        Ok(refused)
    }

    /// Publishes messages that follow a message that does not exist, so that none is stored.
    async fn try_publish(
        &self,
        subjects: &[String],
        refused: &mut Vec<String>,
    ) -> Result<(), FleetError> {
        for subject in subjects {
            let mut headers = HeaderMap::new();
            headers.insert(EXPECTED_LAST, (u64::MAX >> 1).to_string());
            match self.api.publish(subject, headers, &[]).await {
                Err(PublishError::WrongLast { .. }) => {}
                Err(PublishError::Failed(FleetError::Denied(_))) => {
                    refused.push(format!("write to {subject}"));
                }
                Err(PublishError::Failed(error)) => return Err(error),
                Ok(_) => {
                    return Err(FleetError::Other(format!(
                        "the server ignores that a message to {subject} follows no other"
                    )));
                }
            }
        }
        Ok(())
    }
}
