//! A loop's inbox: any process may append messages to the file, and the holder of the loop's lock
//! reads them.

use super::error::IoContext;
use super::lines::read_line;
use super::{LoopDir, Result, aside, cache, loop_holder};
use crate::engine::LimitChange;
use crate::engine::event::Request;
use crate::os::regular_file;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A message to a loop. The variants are named after the events that they become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum InboxMessage {
    /// A request to resume, pause or stop the loop.
    Asked {
        /// The request to the loop.
        #[serde(rename = "wish")]
        request: Request,
    },
    /// The parent loop has ended and no longer waits: stop now.
    ParentEnded,
    /// A message for the next prompt, such as the answer to a blocked agent.
    Answered {
        /// The text for the next prompt.
        text: String,
    },
    /// A change of a limit.
    Changed {
        /// The limit and its new value.
        limit: LimitChange,
    },
    /// Consent to changes of tests or settings.
    Accepted {
        /// Globs of the files' paths.
        globs: Vec<String>,
    },
    /// The files were put back to a checkpoint.
    Rewound {
        /// The checkpoint: its number, or `undo`.
        to: String,
    },
    /// A request to end a rest early.
    Hurried,
    /// A message that this version does not understand, or a line that cannot be parsed.
    #[serde(other)]
    Unknown,
}

/// At most this many unread bytes are read. A runner moves an inbox with more of them away.
const UNREAD_MAX: u64 = 16 << 20;
/// How often a message is written again because another process replaces the inbox meanwhile.
const WRITE_TRIES: u32 = 5;

/// Appends a message to a loop's inbox, and returns the offset at which it ends.
pub(crate) fn append(dir: &LoopDir, message: &InboxMessage) -> Result<u64> {
    let path = dir.inbox();
    // The runner reads from this offset on, even if the inbox was cut or deleted meanwhile.
    let consumed = cache::read(dir).map_or(0, |view| view.state.inbox_offset);
    let end = write(&path, message, consumed).context("write", &path)?;
    // With many loops, the system may run out of file watches, and a runner without a watch polls
    // slowly.
    if let Some(holder) = loop_holder(dir).filter(|holder| holder.background) {
        wake_runner(holder.pid);
    }
    Ok(end)
}

/// Returns whether the inbox still has the message that ends at the offset `end`.
pub(crate) fn still_has(dir: &LoopDir, end: u64) -> bool {
    regular_file::open(&dir.inbox(), false)
        .and_then(|file| file.metadata())
        .is_ok_and(|data| data.len() >= end)
}

/// Makes the runner with this process ID check its inbox, by sending SIGWINCH. The signal is
/// harmless to a process that does not handle it.
fn wake_runner(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, Signal::WINCH);
    }
}

fn write(path: &Path, message: &InboxMessage, consumed: u64) -> io::Result<u64> {
    let line = serde_json::to_string(message)? + "\n";
    for _ in 0..WRITE_TRIES {
        let mut file = open_for_append(path)?.0;
        pad(&mut file, consumed)?;
        // Start a new line after one that a crash or a full disk cut short. An empty line is
        // harmless.
        let start = if ends_in_mid_line(&mut file)? {
            "\n"
        } else {
            ""
        };
        write_once(&mut file, format!("{start}{line}").as_bytes())?;
        // The file is open for appending, so its position is the end of what was just written.
        let end = file.stream_position()?;
        if end - line.len() as u64 >= consumed && regular_file::is_at(&file, path)? {
            return Ok(end);
        }
    }
    Err(io::Error::other("another process keeps replacing it"))
}

/// Opens the inbox, and creates it if it is missing. Moves anything else in its place away, and
/// returns the new path.
fn open_for_append(path: &Path) -> io::Result<(File, Option<PathBuf>)> {
    match regular_file::append(path) {
        Err(error) if regular_file::is_not_regular(&error) => {
            let away = aside::move_away(path)?;
            Ok((regular_file::append(path)?, Some(away)))
        }
        file => Ok((file?, None)),
    }
}

/// Extends the file with newlines to `len` bytes. An appended newline, unlike a new length, cannot
/// overwrite a message that another process appends meanwhile.
fn pad(file: &mut File, len: u64) -> io::Result<()> {
    let missing = len.saturating_sub(file.metadata()?.len());
    if missing > 0 {
        write_once(file, &vec![b'\n'; missing as usize])?;
    }
    Ok(())
}

fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    loop {
        return match file.write(bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            // The partial line cannot be removed, because other lines may already follow it.
            Ok(_) => Err(io::Error::from(ErrorKind::StorageFull)),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
    }
}

/// Makes sure that the inbox exists and has at least the `consumed` bytes that the runner has read,
/// so that the next message arrives. Returns a warning if it was deleted, cut or replaced. The
/// process must hold the loop's lock.
pub(crate) fn restore(dir: &LoopDir, consumed: u64) -> Result<Option<String>> {
    let path = dir.inbox();
    // Closing a file that was opened for writing wakes the runner, which watches the inbox.
    let is_intact = std::fs::symlink_metadata(&path).is_ok_and(|data| {
        data.is_file() && (consumed..=consumed.saturating_add(UNREAD_MAX)).contains(&data.len())
    });
    if is_intact {
        return Ok(None);
    }
    let restored = || -> io::Result<Option<String>> {
        let (mut file, mut away) = open_for_append(&path)?;
        let mut len = file.metadata()?.len();
        if len.saturating_sub(consumed) > UNREAD_MAX {
            away = Some(aside::move_away(&path)?);
            (file, len) = (regular_file::append(&path)?, 0);
        }
        pad(&mut file, consumed)?;
        let what = match away {
            Some(away) => format!("was no inbox and is now {}", away.display()),
            None if len < consumed => "was deleted or cut by another process".to_owned(),
            None => return Ok(None),
        };
        let path = path.display();
        Ok(Some(format!(
            "{path} {what}; requests that were sent meanwhile may be lost"
        )))
    };
    restored().context("write", &path)
}

fn ends_in_mid_line(file: &mut File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Reads the messages after the first `from` bytes, each with the offset where it ends. Skips an
/// incomplete last line. A line that cannot be parsed becomes [`InboxMessage::Unknown`].
pub(crate) fn read(dir: &LoopDir, from: u64) -> Result<Vec<(InboxMessage, u64)>> {
    let path = dir.inbox();
    let file = match regular_file::open(&path, false) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        // The next writer or runner moves it away.
        Err(e) if regular_file::is_not_regular(&e) => return Ok(Vec::new()),
        Err(e) => return Err(e).context("open", &path),
    };
    read_messages(file, from).context("read", &path)
}

fn read_messages(mut file: File, from: u64) -> io::Result<Vec<(InboxMessage, u64)>> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(UNREAD_MAX));
    let mut messages = Vec::new();
    let mut offset = from;
    let mut raw = Vec::new();
    loop {
        let line = read_line(&mut reader, &mut raw)?;
        offset += line.len;
        if !line.is_complete {
            return Ok(messages);
        }
        messages.push((
            serde_json::from_slice(&raw).unwrap_or(InboxMessage::Unknown),
            offset,
        ));
    }
}

/// Appends lines that come from the inbox of the same loop on another machine, byte for byte, so that
/// offsets agree, and wakes the runner.
#[cfg(feature = "fleet")]
pub(crate) fn append_bytes(dir: &LoopDir, bytes: &[u8]) -> Result<()> {
    let path = dir.inbox();
    open_for_append(&path)
        .and_then(|(mut file, _)| write_once(&mut file, bytes))
        .context("write", &path)?;
    if let Some(holder) = loop_holder(dir).filter(|holder| holder.background) {
        wake_runner(holder.pid);
    }
    Ok(())
}
