//! The streams of a loop: pieces of its journal, its inbox and its other files.

use super::super::error::FleetError;
use super::super::exchange::{PIECE_MAX, Piece, StreamKind};
use super::api::{EXPECTED_LAST, PublishError};
use super::layout::stream_name;
use super::records::done;
use super::{NatsExchange, check_token};
use async_nats::jetstream::message::StreamMessage;
use async_nats::{HeaderMap, HeaderValue};
use futures_util::{FutureExt as _, StreamExt as _};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The loop and the stream that a piece was written for. A server sends its replies to any subject
/// that a client names, also to one to which the client may not write. What arrives in a stream in
/// this way does not have the right value here, and is ignored.
const ADDRESSEE: &str = "Ralph-For";
const EPOCH: &str = "Ralph-Epoch";
const FILE: &str = "Ralph-File";
const OFFSET: &str = "Ralph-Offset";

/// How often to look for new pieces although none was seen to be sent.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How soon to look after a piece was seen: it is sent a little before it is stored.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// How long to wait before the next try if no server answers.
const RETRY_DELAY: Duration = Duration::from_millis(500);

impl NatsExchange {
    pub(super) async fn append_piece(
        &self,
        id: &str,
        kind: StreamKind,
        piece: &Piece,
        last: Option<u64>,
    ) -> Result<u64, FleetError> {
        check_token(id)?;
        if piece.bytes.len() > PIECE_MAX {
            return Err(FleetError::Other(format!(
                "a piece has {} bytes, more than {PIECE_MAX}",
                piece.bytes.len()
            )));
        }
        if piece.file.contains(['\r', '\n']) {
            return Err(FleetError::Other(format!(
                "{:?} cannot be sent: its name has a line break",
                piece.file
            )));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ADDRESSEE, addressee(id, kind));
        headers.insert(EPOCH, piece.epoch.to_string());
        headers.insert(OFFSET, piece.offset.to_string());
        if !piece.file.is_empty() {
            headers.insert(FILE, piece.file.as_str());
        }
        if let Some(last) = last {
            headers.insert(EXPECTED_LAST, last.to_string());
        }
        let subject = self.layout.pieces_subject(kind, id);
        match self.api.publish(&subject, headers, &piece.bytes).await {
            Err(PublishError::WrongLast { .. }) => {
                // An earlier try, of this call or of one before, may have been stored.
                let stream = self.layout.pieces_stream(kind);
                let newest = self.api.last(&stream, &subject).await?;
                let newest = newest.and_then(|message| parse(&message, id, kind));
                match newest {
                    Some(newest) if is_same(&newest, piece) && Some(newest.position) > last => {
                        Ok(newest.position)
                    }
                    _ => Err(FleetError::Fenced),
                }
            }
            other => done(other).map(|ack| ack.sequence),
        }
    }

    pub(super) async fn read_pieces(
        &self,
        id: &str,
        kind: StreamKind,
        after: u64,
    ) -> Result<Vec<Piece>, FleetError> {
        check_token(id)?;
        let (stream, subject) = self.stream_and_subject(id, kind);
        let mut pieces = Vec::new();
        let mut position = after;
        while let Some(message) = self.api.next(&stream, &subject, position).await? {
            position = message.sequence;
            pieces.extend(parse(&message, id, kind));
        }
        Ok(pieces)
    }

    /// Passes on pieces as they are stored. They are read one after the other from the leader, as in
    /// [`read_pieces`](Self::read_pieces), so that a new leader or connection needs no attention. A
    /// subscription to the subject only says when to look: it also receives what the leader refuses.
    pub(super) async fn follow_pieces(
        &self,
        id: &str,
        kind: StreamKind,
        after: u64,
        mut receive: impl FnMut(Piece) -> bool + Send,
    ) -> Result<(), FleetError> {
        check_token(id)?;
        let (stream, subject) = self.stream_and_subject(id, kind);
        let subscribed = self.api.client().subscribe(subject.clone()).await;
        let mut sent = subscribed.map_err(|error| FleetError::Other(error.to_string()))?;
        let mut position = after;
        let mut delay = FIRST_LOOK;
        loop {
            match self.api.next(&stream, &subject, position).await {
                Ok(Some(message)) => {
                    position = message.sequence;
                    delay = FIRST_LOOK;
                    let piece = parse(&message, id, kind);
                    if piece.is_some_and(|piece| !receive(piece)) {
                        return Ok(());
                    }
                    continue;
                }
                Ok(None) => {}
                Err(FleetError::Unreachable(_)) => {
                    sleep(RETRY_DELAY).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            match timeout(delay, sent.next()).await {
                Ok(Some(_)) => {
                    while let Some(Some(_)) = sent.next().now_or_never() {}
                    delay = FIRST_LOOK;
                }
                // The connection is closed for good.
                Ok(None) => return Err(FleetError::Unreachable("the connection ended".into())),
                Err(_) => delay = (delay * 2).min(POLL_INTERVAL),
            }
        }
    }

    pub(super) async fn purge_pieces(&self, id: &str, kind: StreamKind) -> Result<(), FleetError> {
        check_token(id)?;
        let (stream, subject) = self.stream_and_subject(id, kind);
        self.api.purge(&stream, &subject).await
    }

    fn stream_and_subject(&self, id: &str, kind: StreamKind) -> (String, String) {
        let layout = &self.layout;
        (layout.pieces_stream(kind), layout.pieces_subject(kind, id))
    }
}

fn addressee(id: &str, kind: StreamKind) -> String {
    format!("{} of {id}", stream_name(kind))
}

fn is_same(stored: &Piece, new: &Piece) -> bool {
    let key = |piece: &Piece| (piece.epoch, piece.offset);
    key(stored) == key(new) && stored.file == new.file && stored.bytes == new.bytes
}

/// Returns the piece in a message; `None` if it was not written for this stream.
fn parse(message: &StreamMessage, id: &str, kind: StreamKind) -> Option<Piece> {
    let header = |name: &str| message.headers.get(name).map(HeaderValue::as_str);
    let number = |name: &str| header(name)?.parse().ok();
    if header(ADDRESSEE) != Some(&addressee(id, kind)) {
        return None;
    }
    Some(Piece {
        position: message.sequence,
        epoch: number(EPOCH)?,
        file: header(FILE).unwrap_or_default().to_owned(),
        offset: number(OFFSET)?,
        bytes: message.payload.to_vec(),
    })
}
