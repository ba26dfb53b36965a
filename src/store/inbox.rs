//! A loop's inbox: any process may append messages to the file, and the holder of the loop's lock
//! reads them.

use super::dir::append_file;
use super::error::IoContext;
use super::{LoopDir, Result, lock_holder};
use crate::engine::LimitChange;
use crate::engine::event::Request;
use crate::os::regular_file;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

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
    /// A request to end a rest early.
    Hurried,
    /// A message that this version does not understand, or a line that cannot be parsed.
    #[serde(other)]
    Unknown,
}

/// Appends a message to a loop's inbox.
pub(crate) fn append(dir: &LoopDir, message: &InboxMessage) -> Result<()> {
    let path = dir.inbox();
    write(&path, message).context("write", &path)?;
    // With many loops, the system may run out of file watches, and a runner without a watch polls
    // slowly.
    if let Some(holder) = lock_holder(&dir.lock()).filter(|holder| holder.background) {
        wake_runner(holder.pid);
    }
    Ok(())
}

/// Makes the runner with this process ID check its inbox, by sending SIGWINCH. The signal is
/// harmless to a process that does not handle it.
fn wake_runner(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, Signal::WINCH);
    }
}

fn write(path: &Path, message: &InboxMessage) -> io::Result<()> {
    let mut line = serde_json::to_string(message)? + "\n";
    let mut file = append_file(path)?;
    // Start a new line after one that a crash or a full disk cut short. An empty line is harmless.
    if ends_in_mid_line(path)? {
        line.insert(0, '\n');
    }
    loop {
        return match file.write(line.as_bytes()) {
            Ok(written) if written == line.len() => Ok(()),
            // The partial line cannot be removed, because other lines may already follow it.
            Ok(_) => Err(io::Error::from(ErrorKind::StorageFull)),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
    }
}

fn ends_in_mid_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
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
        Err(e) => return Err(e).context("open", &path),
    };
    read_messages(file, from).context("read", &path)
}

fn read_messages(mut file: File, from: u64) -> io::Result<Vec<(InboxMessage, u64)>> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file);
    let mut messages = Vec::new();
    let mut offset = from;
    let mut raw = Vec::new();
    loop {
        raw.clear();
        offset += reader.read_until(b'\n', &mut raw)? as u64;
        if raw.last() != Some(&b'\n') {
            return Ok(messages);
        }
        messages.push((
            serde_json::from_slice(&raw).unwrap_or(InboxMessage::Unknown),
            offset,
        ));
    }
}
