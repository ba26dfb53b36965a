//! Reads the monitoring port of a NATS server, which shows settings that clients cannot see.

use super::error::FleetError;
use serde::Deserialize;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes of an answer.
const ANSWER_MAX: u64 = 1 << 20;

/// The settings of JetStream on one server.
#[derive(Debug, Deserialize)]
pub(crate) struct StorageSettings {
    /// Whether a message is on the disk before it is confirmed.
    #[serde(default)]
    pub(crate) sync_always: bool,
    /// How often messages are written to the disk, in nanoseconds.
    #[serde(default)]
    pub(crate) sync_interval: u64,
}

/// Asks the monitoring port at `address`, as `HOST:PORT`, for the settings of JetStream.
pub(crate) async fn storage_settings(address: &str) -> Result<StorageSettings, FleetError> {
    #[derive(Deserialize)]
    struct JetStreamReport {
        config: StorageSettings,
    }
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let failed = |why: String| FleetError::Unreachable(format!("monitoring at {address}: {why}"));
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /jsz HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = timeout(TIMEOUT, answer).await;
    let answer = answer
        .map_err(|_| failed("no answer in time".into()))?
        .map_err(|error| failed(error.to_string()))?;
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = body.map_or(&[][..], |end| &answer[end + 4..]);
    let report: JetStreamReport =
        serde_json::from_slice(body).map_err(|error| failed(error.to_string()))?;
    Ok(report.config)
}
