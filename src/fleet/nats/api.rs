//! Requests to JetStream servers: retried while a cluster elects a leader, and with errors that say
//! whether the request may have been carried out.
//!
//! Reads ask the leader of a stream for single messages. This needs no consumer: nothing is left on
//! the server, and a permission to read is no permission to create anything.

use super::super::connection::FleetConnection;
use super::super::error::FleetError;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::RawMessage;
use async_nats::jetstream::{Error as ApiError, ErrorCode};
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, Request, RequestErrorKind,
    ServerError,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep};

/// How long one try may take. The usual 30 s would be as long as a lease.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request is tried again. An election takes up to 6 s.
const PATIENCE: Duration = Duration::from_secs(12);
/// How long to wait before the next try if a server answers that it cannot serve the request now.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Pings find a connection that is cut without being closed.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// The message ID is being processed: the first try is not decided yet.
const DUPLICATE_IN_PROCESS: u64 = 10158;
/// A message that does not exist.
const NO_MESSAGE: u64 = 10037;
/// A stream that does not exist.
pub(super) const STREAM_NOT_FOUND: u64 = 10059;
/// A consumer that does not exist.
pub(super) const CONSUMER_NOT_FOUND: u64 = 10014;
/// A stream of this name exists with other settings.
pub(super) const STREAM_EXISTS: u64 = 10058;
/// The cluster is too small for the replicas.
pub(super) const NO_PEERS: u64 = 10005;
/// The server is in no cluster, so that there can be no replicas.
pub(super) const NO_REPLICAS: u64 = 10074;

/// The value of a subject that a message is expected to follow, as a header.
pub(super) const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";
pub(super) const MESSAGE_ID: &str = "Nats-Msg-Id";
pub(super) const ROLLUP: &str = "Nats-Rollup";

/// Why a message was not stored.
#[derive(Debug)]
pub(super) enum PublishError {
    /// The subject's newest message is not the expected one.
    WrongLast {
        /// Whether an earlier try got no answer, and may be the reason.
        was_retried: bool,
    },
    Failed(FleetError),
}

/// A connection to JetStream.
#[derive(Debug)]
pub(super) struct Api {
    client: Client,
    /// What the server refuses. It does so in a message of its own, not in a reply.
    denials: broadcast::Sender<String>,
    inbox_prefix: String,
}

impl Api {
    pub(super) async fn connect(
        connection: &FleetConnection,
        inbox_prefix: String,
    ) -> Result<Self, FleetError> {
        let (denials, _) = broadcast::channel(64);
        let sender = denials.clone();
        let options = credentials(connection)?
            .name(concat!("ralph ", env!("CARGO_PKG_VERSION")))
            .custom_inbox_prefix(&inbox_prefix)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(PING_INTERVAL)
            .subscription_capacity(1024)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| {
                Duration::from_millis(50 * attempts as u64).min(Duration::from_secs(1))
            })
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(text)) = event {
                    let _ = sender.send(text);
                }
                std::future::ready(())
            });
        let client = options.connect(connection.urls()).await.map_err(|error| {
            let urls = connection.display_urls();
            match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                    FleetError::Denied(format!("{urls} does not accept the user or key"))
                }
                ConnectErrorKind::ServerParse => {
                    FleetError::Other(format!("{urls} is not a valid address"))
                }
                _ => FleetError::Unreachable(format!("{urls}: {error}")),
            }
        })?;
        Ok(Self {
            client,
            denials,
            inbox_prefix,
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns an ID that is unique in the fleet.
    pub(super) fn unique_id(&self) -> String {
        let inbox = self.client.new_inbox();
        inbox.rsplit('.').next().unwrap_or(&inbox).to_owned()
    }

    /// Sends a request once, and waits for one reply.
    pub(super) async fn send(
        &self,
        subject: &str,
        request: Request,
        patience: Duration,
    ) -> Result<Message, FleetError> {
        // Before the request, so that a refusal cannot be missed.
        let denials = self.denials.subscribe();
        let request = request.timeout(Some(patience));
        tokio::select! {
            reply = self.client.send_request(subject.to_owned(), request) => {
                reply.map_err(|error| match error.kind() {
                    RequestErrorKind::TimedOut => {
                        FleetError::Unreachable("no answer in time".into())
                    }
                    RequestErrorKind::NoResponders => FleetError::Unreachable(
                        "no server is responsible for the request now".into(),
                    ),
                    RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                        FleetError::Other(error.to_string())
                    }
                    RequestErrorKind::Other => FleetError::Unreachable(error.to_string()),
                })
            }
            why = self.denial(denials, subject) => Err(FleetError::Denied(why)),
        }
    }

    /// Waits until the server refuses a request to this subject, or the subscription to replies.
    async fn denial(&self, mut denials: broadcast::Receiver<String>, subject: &str) -> String {
        let request = format!("\"{subject}\"");
        let replies = format!("\"{}", self.inbox_prefix);
        loop {
            match denials.recv().await {
                Ok(text) if text.contains(&request) || text.contains(&replies) => return text,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Sends a request that can be repeated to JetStream's API, until there is an answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        name: &str,
        payload: &Value,
    ) -> Result<Result<T, ApiError>, FleetError> {
        let subject = format!("$JS.API.{name}");
        let until = Instant::now() + PATIENCE;
        loop {
            let request = Request::new().payload(json_bytes(payload).into());
            let failure = match self.send(&subject, request, TRY_TIMEOUT).await {
                Ok(reply) => match parse::<T>(&reply.payload)? {
                    Err(error) if is_temporary(&error) => {
                        FleetError::Unreachable(error.to_string())
                    }
                    answer => return Ok(answer),
                },
                Err(failure @ FleetError::Unreachable(_)) => failure,
                Err(failure) => return Err(failure),
            };
            if Instant::now() >= until {
                return Err(failure);
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Stores a message, and waits until it is stored. A message that was sent again because there was
    /// no answer is stored once, by its `Nats-Msg-Id`.
    pub(super) async fn publish(
        &self,
        subject: &str,
        mut headers: HeaderMap,
        payload: &[u8],
    ) -> Result<PublishAck, PublishError> {
        if headers.get(MESSAGE_ID).is_none() {
            headers.insert(MESSAGE_ID, self.unique_id());
        }
        let until = Instant::now() + PATIENCE;
        let mut was_retried = false;
        loop {
            let request = Request::new()
                .headers(headers.clone())
                .payload(payload.to_vec().into());
            let failure = match self.send(subject, request, TRY_TIMEOUT).await {
                Ok(reply) => match parse::<PublishAck>(&reply.payload) {
                    Ok(Ok(ack)) => return Ok(ack),
                    Ok(Err(error)) if is_wrong_last(&error) => {
                        return Err(PublishError::WrongLast { was_retried });
                    }
                    Ok(Err(error)) if is_temporary(&error) => {
                        FleetError::Unreachable(error.to_string())
                    }
                    Ok(Err(error)) => {
                        return Err(PublishError::Failed(api_error(&error)));
                    }
                    Err(failure) => return Err(PublishError::Failed(failure)),
                },
                Err(failure @ FleetError::Unreachable(_)) => failure,
                Err(failure) => return Err(PublishError::Failed(failure)),
            };
            if Instant::now() >= until {
                return Err(PublishError::Failed(failure));
            }
            was_retried = true;
            sleep(RETRY_DELAY).await;
        }
    }

    /// Reads the newest message of a subject from the stream's leader.
    pub(super) async fn last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<StreamMessage>, FleetError> {
        self.message(stream, &json!({ "last_by_subj": subject }))
            .await
    }

    /// Reads the first message of a subject after a position from the stream's leader.
    pub(super) async fn next(
        &self,
        stream: &str,
        subject: &str,
        after: u64,
    ) -> Result<Option<StreamMessage>, FleetError> {
        let request = json!({ "seq": after + 1, "next_by_subj": subject });
        self.message(stream, &request).await
    }

    async fn message(
        &self,
        stream: &str,
        request: &Value,
    ) -> Result<Option<StreamMessage>, FleetError> {
        #[derive(Deserialize)]
        struct GetReply {
            message: RawMessage,
        }
        let name = format!("STREAM.MSG.GET.{stream}");
        match self.call::<GetReply>(&name, request).await? {
            Ok(reply) => StreamMessage::try_from(reply.message)
                .map(Some)
                .map_err(|error| FleetError::Other(format!("a broken message: {error}"))),
            Err(error) if error.error_code().0 == NO_MESSAGE => Ok(None),
            Err(error) => Err(api_error(&error)),
        }
    }

    /// Lists the subjects of a stream that match a filter, as its leader knows them.
    pub(super) async fn subjects(
        &self,
        stream: &str,
        filter: &str,
    ) -> Result<Vec<String>, FleetError> {
        #[derive(Deserialize)]
        struct SubjectPage {
            #[serde(default)]
            total: usize,
            state: SubjectCounts,
        }
        #[derive(Deserialize)]
        struct SubjectCounts {
            #[serde(default)]
            subjects: Option<std::collections::BTreeMap<String, u64>>,
        }
        let name = format!("STREAM.INFO.{stream}");
        let mut found = Vec::new();
        loop {
            let request = json!({ "subjects_filter": filter, "offset": found.len() });
            let page = self.call::<SubjectPage>(&name, &request).await?;
            let page = page.map_err(|error| api_error(&error))?;
            let before = found.len();
            found.extend(page.state.subjects.unwrap_or_default().into_keys());
            if found.len() == before || found.len() >= page.total {
                return Ok(found);
            }
        }
    }

    /// Removes all messages of a subject.
    pub(super) async fn purge(&self, stream: &str, subject: &str) -> Result<(), FleetError> {
        let name = format!("STREAM.PURGE.{stream}");
        let request = json!({ "filter": subject });
        let done = self.call::<Value>(&name, &request).await?;
        done.map(drop).map_err(|error| api_error(&error))
    }
}

/// Turns an answer of JetStream's API into an error.
pub(super) fn api_error(error: &ApiError) -> FleetError {
    if is_wrong_last(error) {
        return FleetError::Fenced;
    }
    FleetError::Other(match error.error_code().0 {
        STREAM_NOT_FOUND => "the fleet has no such pool".into(),
        _ => format!("the fleet's server answers: {error}"),
    })
}

/// Returns whether another message was stored first. Servers use a second code if that message is
/// not yet replicated.
fn is_wrong_last(error: &ApiError) -> bool {
    let codes = [
        ErrorCode::STREAM_WRONG_LAST_SEQUENCE,
        ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
    ];
    codes.contains(&error.error_code())
}

fn is_temporary(error: &ApiError) -> bool {
    let permanent = [
        ErrorCode::JETSTREAM_NOT_ENABLED,
        ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT,
    ];
    let code = error.error_code();
    // No leader, or JetStream is starting.
    let is_unavailable = error.code() == 503 && !permanent.contains(&code);
    is_unavailable || code.0 == DUPLICATE_IN_PROCESS
}

fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<Result<T, ApiError>, FleetError> {
    #[derive(Deserialize)]
    struct ErrorReply {
        error: Option<ApiError>,
    }
    let broken = |error| FleetError::Other(format!("cannot read the server's answer: {error}"));
    let reply: ErrorReply = serde_json::from_slice(payload).map_err(broken)?;
    match reply.error {
        Some(error) => Ok(Err(error)),
        None => serde_json::from_slice(payload).map(Ok).map_err(broken),
    }
}

/// Serializes a request. JetStream expects no body rather than `null`.
fn json_bytes(payload: &Value) -> Vec<u8> {
    if payload.is_null() {
        return Vec::new();
    }
    payload.to_string().into_bytes()
}

/// Returns the options that log in: by file, or by the user and password in an address.
fn credentials(connection: &FleetConnection) -> Result<ConnectOptions, FleetError> {
    let unreadable = |path: &std::path::Path, error: std::io::Error| {
        FleetError::Other(format!("cannot read {}: {error}", path.display()))
    };
    let read = |path: &std::path::Path| {
        let text = crate::os::regular_file::read_text(path, true);
        text.map_err(|error| unreadable(path, error))
    };
    let mut options = ConnectOptions::new();
    if let Some(path) = &connection.creds {
        options = options
            .credentials(&read(path)?)
            .map_err(|error| unreadable(path, error))?;
    } else if let Some(path) = &connection.nkey {
        options = options.nkey(read(path)?.trim().to_owned());
    } else if let Some(user) = connection.user() {
        options = match user.password {
            Some(password) => options.user_and_password(user.name, password),
            None => options.token(user.name),
        };
    }
    if let Some(ca) = &connection.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let (Some(cert), Some(key)) = (&connection.cert, &connection.key) {
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    Ok(options)
}
