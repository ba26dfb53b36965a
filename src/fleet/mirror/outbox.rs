//! The inbox of a loop's copy: requests of commands on this machine go to the fleet, and requests of
//! other people come from it.

use super::loop_copy::broken;
use crate::engine::event::Request;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{Exchange, PIECE_MAX, Piece, StreamKind};
use crate::os::regular_file;
use crate::store::dir::append_file;
use crate::store::{InboxMessage, LoopDir};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait before a piece that was not confirmed is sent again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How often to send a piece that is not confirmed.
const TRIES: u32 = 20;

/// The inbox of a loop's copy, and what of it the fleet does not have yet.
pub(super) struct RequestOutbox {
    dir: LoopDir,
    loop_id: String,
    /// The position of the newest piece that is in the file.
    position: u64,
    /// The length of the file, as far as it is known where its lines come from.
    len: u64,
    /// Lines of commands on this machine that are not published.
    unsent: Vec<u8>,
}

impl RequestOutbox {
    pub(super) fn new(dir: LoopDir, loop_id: String) -> Self {
        Self {
            dir,
            loop_id,
            position: 0,
            len: 0,
            unsent: Vec::new(),
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the length of the inbox.
    pub(super) fn end(&self) -> u64 {
        self.len
    }

    /// Appends what others have sent.
    pub(super) fn receive(&mut self, piece: &Piece) -> Result<(), FleetError> {
        if piece.position <= self.position {
            return Ok(());
        }
        self.collect(None)?;
        let append = || {
            let mut file = append_file(&self.dir.inbox())?;
            file.write_all(&piece.bytes)?;
            file.stream_position()
        };
        let end = append().map_err(|error| broken(&error))?;
        // A command may have appended a line in between.
        self.collect(Some(end - piece.bytes.len() as u64))?;
        self.len = end;
        self.position = piece.position;
        Ok(())
    }

    /// Appends everything that others have sent.
    pub(super) async fn catch_up(&mut self, exchange: &impl Exchange) -> Result<(), FleetError> {
        let inbox = exchange.read(&self.loop_id, StreamKind::Inbox, self.position);
        for piece in inbox.await? {
            self.receive(&piece)?;
        }
        Ok(())
    }

    /// Collects the lines that commands have appended, up to an offset or to the last complete line.
    fn collect(&mut self, until: Option<u64>) -> Result<(), FleetError> {
        let read = || {
            let mut file = match regular_file::open(&self.dir.inbox(), false) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                file => file?,
            };
            file.seek(SeekFrom::Start(self.len))?;
            let mut bytes = Vec::new();
            let max = until.map_or(u64::MAX, |until| until.saturating_sub(self.len));
            file.take(max).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        let mut added = read().map_err(|error| broken(&error))?;
        if until.is_none() {
            let end = added.iter().rposition(|byte| *byte == b'\n');
            added.truncate(end.map_or(0, |end| end + 1));
        }
        self.len += added.len() as u64;
        self.unsent.extend(added);
        Ok(())
    }

    /// Publishes the lines of commands. Returns whether one of them asks to continue the loop.
    pub(super) async fn publish(&mut self, exchange: &impl Exchange) -> Result<bool, FleetError> {
        self.collect(None)?;
        let mut continues = false;
        let mut tries = 0;
        while !self.unsent.is_empty() {
            let end = self.unsent.len().min(PIECE_MAX);
            let lines = self.unsent[..end].iter().rposition(|byte| *byte == b'\n');
            // A line that is longer than a piece goes in several.
            let bytes = self.unsent[..lines.map_or(end, |end| end + 1)].to_vec();
            let piece = Piece {
                bytes,
                ..Piece::default()
            };
            let (id, last) = (&self.loop_id, Some(self.position));
            match exchange.append(id, StreamKind::Inbox, &piece, last).await {
                Ok(position) => {
                    self.position = position;
                    self.unsent.drain(..piece.bytes.len());
                    continues |= asks_to_continue(&piece.bytes);
                }
                // Another process was faster.
                Err(FleetError::Fenced) => self.catch_up(exchange).await?,
                Err(FleetError::Unreachable(_)) if tries < TRIES => {
                    tries += 1;
                    sleep(RETRY_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(continues)
    }
}

/// Returns whether one of these lines asks to continue the loop.
fn asks_to_continue(lines: &[u8]) -> bool {
    let messages = lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    let go = InboxMessage::Asked {
        request: Request::Go,
    };
    messages
        .into_iter()
        .any(|message: InboxMessage| message == go)
}
