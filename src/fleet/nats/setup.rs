//! Creates the streams of a pool.

use super::super::error::FleetError;
use super::NatsExchange;
use super::api::{NO_PEERS, NO_REPLICAS, STREAM_EXISTS, STREAM_NOT_FOUND, api_error};
use async_nats::jetstream::stream::Config;
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The replicas of each stream, if the cluster has as many nodes.
const REPLICAS: usize = 3;
/// How long to wait until all nodes of a cluster that starts are known.
const PEERS_PATIENCE: Duration = Duration::from_secs(10);

impl NatsExchange {
    /// Creates what is missing, and makes reads of existing streams consistent.
    pub(super) async fn create_streams(&self) -> Result<(), FleetError> {
        let streams = self.layout.streams(REPLICAS);
        try_join_all(streams.into_iter().map(|config| self.create_stream(config))).await?;
        Ok(())
    }

    async fn create_stream(&self, mut config: Config) -> Result<(), FleetError> {
        #[derive(Deserialize)]
        struct StreamSettings {
            config: Config,
        }
        let info = format!("STREAM.INFO.{}", config.name);
        match self.api.call::<StreamSettings>(&info, &Value::Null).await? {
            Ok(found) if found.config.allow_direct => {
                let config = Config {
                    allow_direct: false,
                    ..found.config
                };
                return self
                    .change_stream("UPDATE", &config)
                    .await?
                    .map_or_else(|error| Err(api_error(&error)), |_| Ok(()));
            }
            Ok(_) => return Ok(()),
            Err(error) if error.error_code().0 == STREAM_NOT_FOUND => {}
            Err(error) => return Err(api_error(&error)),
        }
        let until = Instant::now() + PEERS_PATIENCE;
        loop {
            let created = self.change_stream("CREATE", &config).await;
            let created = created.map_err(|error| match error {
                FleetError::Denied(_) => FleetError::Denied(
                    "the pool does not exist, and this user may not create it".into(),
                ),
                other => other,
            });
            let Err(error) = created? else {
                return Ok(());
            };
            match error.error_code().0 {
                // Another process created it.
                STREAM_EXISTS => return Ok(()),
                NO_PEERS if self.has_three_nodes() && Instant::now() < until => {
                    sleep(Duration::from_millis(200)).await;
                }
                NO_PEERS | NO_REPLICAS if config.num_replicas > 1 => config.num_replicas = 1,
                _ => return Err(api_error(&error)),
            }
        }
    }

    async fn change_stream(
        &self,
        verb: &str,
        config: &Config,
    ) -> Result<Result<Value, async_nats::jetstream::Error>, FleetError> {
        let name = format!("STREAM.{verb}.{}", config.name);
        self.api.call::<Value>(&name, &json!(config)).await
    }

    /// Returns whether the server knows three nodes, as far as it announces them to clients.
    fn has_three_nodes(&self) -> bool {
        self.api.client().server_info().connect_urls.len() >= REPLICAS
    }
}
