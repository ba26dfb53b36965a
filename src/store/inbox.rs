//! How anyone speaks to a loop: lines at the end of a file, read only by who holds the lock.

use super::dir::append_file;
use super::error::Doing;
use super::{LoopDir, Result, holder};
use crate::engine::event::{Change, Wish};
use crate::os::regular;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Something said to a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// Someone wants it to go, pause or stop.
    Asked {
        /// Which of these.
        wish: Wish,
    },
    /// Someone answered a blocked agent, or told it something.
    Answered {
        /// The words.
        text: String,
    },
    /// Someone changed a limit.
    Changed {
        /// Which, and to what.
        limit: Change,
    },
    /// Someone does not want to wait.
    Hurried,
    /// Something that cannot be understood.
    #[serde(other)]
    Unknown,
}

/// Says something to a loop.
pub fn append(dir: &LoopDir, message: &Message) -> Result<()> {
    let path = dir.inbox();
    write(&path, message).doing("write", &path)?;
    // Where many loops live, the system has no ears left for some of them.
    if let Some(holder) = holder(&dir.lock()).filter(|holder| holder.background) {
        knock(holder.pid);
    }
    Ok(())
}

/// Makes a runner look: what a change of a terminal's size says does no harm to anybody, listening or not.
fn knock(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, Signal::WINCH);
    }
}

fn write(path: &Path, message: &Message) -> io::Result<()> {
    let mut line = serde_json::to_string(message)? + "\n";
    let mut file = append_file(path)?;
    // What a crash or a full disk cut short must not swallow this line, too. An empty line does no harm.
    if ends_torn(path)? {
        line.insert(0, '\n');
    }
    loop {
        return match file.write(line.as_bytes()) {
            Ok(written) if written == line.len() => Ok(()),
            // It cannot be taken back: others may have written after it.
            Ok(_) => Err(io::Error::from(ErrorKind::StorageFull)),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
    }
}

fn ends_torn(path: &Path) -> io::Result<bool> {
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

/// Reads what was said after the first `from` bytes, each with the offset after it. A line without an end is
/// left for later; one that cannot be understood is [`Message::Unknown`].
pub fn read(dir: &LoopDir, from: u64) -> Result<Vec<(Message, u64)>> {
    let path = dir.inbox();
    let file = match regular::open(&path, false) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).doing("open", &path),
    };
    messages(file, from).doing("read", &path)
}

fn messages(mut file: File, from: u64) -> io::Result<Vec<(Message, u64)>> {
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
            serde_json::from_slice(&raw).unwrap_or(Message::Unknown),
            offset,
        ));
    }
}
