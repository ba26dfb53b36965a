//! The message bus: files to which loops and people append messages for each other.
//!
//! Each loop and each project has a bus. Several processes may write to a bus at the same time;
//! lines are never rewritten. A file that has grown too large is rotated to `bus.old.jsonl`,
//! replacing an earlier one.

mod read;

use super::dir::{create_dir, sync_dir, write_gitignore};
use super::error::IoContext;
use super::{LoopDir, Result, rfc3339};
use crate::engine::{Status, fnv};
use crate::os::regular_file;
pub(crate) use read::BusBatch;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VERSION: u64 = 1;
/// Size above which a file is rotated, in bytes.
const ROTATE_AT: u64 = 8 << 20;
/// The last `DUPLICATE_WINDOW` bytes of the file are searched for duplicates. A message whose ID
/// occurs there is not posted again.
const DUPLICATE_WINDOW: u64 = 256 << 10;
/// Maximum length of a message's text, in characters.
pub(crate) const TEXT_MAX: usize = 16_000;
/// Maximum length of a message's type, in characters.
const KIND_MAX: usize = 40;

/// The message bus of a loop or a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bus {
    path: PathBuf,
    owner: BusOwner,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BusOwner {
    Loop(String),
    Project(PathBuf),
}

/// The first line of a bus file.
#[derive(Serialize)]
struct BusHeader<'a> {
    ralph: &'static str,
    version: u64,
    #[serde(rename = "of")]
    owner: &'a BusOwner,
}

/// A message that a loop or a person posted on a bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BusMessage {
    /// A unique ID. A message is posted only once, even if a crash makes a loop post it again.
    pub(crate) id: String,
    /// The time at which the message was posted, in RFC 3339 format and UTC.
    pub(crate) time: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The name of the loop that sent the message; `None` for a person.
    #[serde(rename = "loop")]
    pub(crate) from: Option<String>,
    /// The sender's iteration; `None` for a person.
    pub(crate) iteration: Option<u32>,
    pub(crate) text: String,
}

impl BusMessage {
    /// Creates a message with the current time. `from` is the sending loop's name and iteration;
    /// `None` for a person. Text beyond [`TEXT_MAX`] characters is cut off.
    pub(crate) fn new(id: String, kind: &str, from: Option<(&str, u32)>, text: &str) -> Self {
        let mut shortened: String = text.chars().take(TEXT_MAX).collect();
        if shortened.len() < text.len() {
            shortened.push('…');
        }
        Self {
            id,
            time: rfc3339(jiff::Timestamp::now().as_millisecond()),
            kind: kind.to_owned(),
            from: from.map(|(name, _)| name.to_owned()),
            iteration: from.map(|(_, iteration)| iteration),
            text: shortened,
        }
    }

    /// Returns the sender: `NAME#ITERATION` for a loop, or "a person".
    pub(crate) fn sender(&self) -> String {
        match (&self.from, self.iteration) {
            (Some(name), Some(iteration)) => format!("{name}#{iteration}"),
            (Some(name), None) => name.clone(),
            (None, _) => "a person".into(),
        }
    }
}

/// Types of messages that a loop itself posts when its runner exits. Agents may not use them.
const RESERVED_KINDS: [Status; 6] = [
    Status::Done,
    Status::Failed,
    Status::Blocked,
    Status::Waiting,
    Status::Stopped,
    Status::Paused,
];

/// Returns whether only the loop itself may post messages of the type `kind`.
pub(crate) fn is_reserved_kind(kind: &str) -> bool {
    RESERVED_KINDS.iter().any(|status| status.as_str() == kind)
}

/// Parses a message type: ASCII letters, digits, `_` and `-`. Letters become lower case. Returns
/// `None` if the type is invalid.
pub(crate) fn parse_kind(text: &str) -> Option<String> {
    let kind = text.trim().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!kind.is_empty() && kind.len() <= KIND_MAX && kind.chars().all(plain)).then_some(kind)
}

/// Hashes a text to 16 hex digits. The result names directories and messages, so every
/// version must compute the same hash.
pub(crate) fn stable_hash(text: &str) -> String {
    format!("{:016x}", fnv::hash(text.as_bytes()))
}

impl Bus {
    pub(crate) fn for_loop(dir: &LoopDir) -> Self {
        Self {
            path: dir.path().join("bus.jsonl"),
            owner: BusOwner::Loop(dir.name().to_owned()),
        }
    }

    pub(super) fn for_project(projects: &Path, project: &Path) -> Self {
        let path = projects
            .join(stable_hash(&project.to_string_lossy()))
            .join("bus.jsonl");
        Self {
            path,
            owner: BusOwner::Project(project.to_owned()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Posts the messages that the bus does not contain yet, and makes them durable. Waits up to
    /// `timeout` for other processes that are posting.
    pub(crate) fn post(&self, messages: &[BusMessage], timeout: Duration) -> Result<()> {
        // Do not create a loop's directory here. If it is missing, the loop was removed.
        if let (BusOwner::Project(_), Some(dir)) = (&self.owner, self.path.parent()) {
            create_dir(dir).context("create", dir)?;
            dir.parent().map(write_gitignore);
        }
        self.write(messages, Instant::now() + timeout)
            .context("write", &self.path)
    }

    fn write(&self, messages: &[BusMessage], deadline: Instant) -> io::Result<()> {
        loop {
            let mut file = regular_file::append(&self.path)?;
            lock(&file, deadline)?;
            let length = file.metadata()?.len();
            if !regular_file::is_at(&file, &self.path)? {
                // Another process rotated the file between opening and locking.
                continue;
            }
            if length > ROTATE_AT {
                fs::rename(&self.path, self.rotated_path())?;
                continue;
            }
            let text = self.new_lines(messages, &mut file, length)?;
            let written = if text.is_empty() {
                0
            } else {
                write_once(&mut file, text.as_bytes())?
            };
            // Let other processes write while these lines are being synced.
            let _ = file.unlock();
            if written < text.len() {
                return Err(io::Error::from(ErrorKind::StorageFull));
            }
            file.sync_data()?;
            if let Some(dir) = self.path.parent().filter(|_| length == 0) {
                sync_dir(dir)?;
            }
            return Ok(());
        }
    }

    /// Returns the text to append to a file of `length` bytes: the messages that the file does not
    /// contain yet, and a header if the file is empty.
    fn new_lines(
        &self,
        messages: &[BusMessage],
        file: &mut File,
        length: u64,
    ) -> io::Result<String> {
        let mut recent = Vec::new();
        file.seek(SeekFrom::Start(length.saturating_sub(DUPLICATE_WINDOW)))?;
        file.read_to_end(&mut recent)?;
        let posted = String::from_utf8_lossy(&recent);
        let mut text = String::new();
        for message in messages
            .iter()
            .filter(|message| !posted.contains(&format!("\"id\":\"{}\"", message.id)))
        {
            text += &serde_json::to_string(message)?;
            text.push('\n');
        }
        if length == 0 {
            let header = BusHeader {
                ralph: "bus",
                version: VERSION,
                owner: &self.owner,
            };
            text = format!("{}\n{text}", serde_json::to_string(&header)?);
        } else if recent.last() != Some(&b'\n') && !text.is_empty() {
            // Start a new line after one that a crash or a full disk cut short.
            text.insert(0, '\n');
        }
        Ok(text)
    }

    fn rotated_path(&self) -> PathBuf {
        self.path.with_file_name("bus.old.jsonl")
    }
}

/// Writes `text` with one call, and returns the number of bytes written. Completing a short write
/// with a second call could put the rest after another process's line.
fn write_once(file: &mut File, text: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(text) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn lock(file: &File, deadline: Instant) -> io::Result<()> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "another process holds its lock; try again",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
