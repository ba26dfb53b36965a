//! Reads a bus: its last messages, and those posted after a position.

use super::{Bus, BusMessage, VERSION};
use crate::os::regular_file;
use crate::store::error::IoContext;
use crate::store::lines::read_line;
use crate::store::{Result, StoreError};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of bytes read at a time when a file is searched backwards.
const PIECE: u64 = 64 << 10;

/// At most this many bytes at the end of a file are searched. ralph rotates the file at 8 MiB, so
/// only another process can make it longer.
const SEARCH_MAX: u64 = 64 << 20;

/// Messages read from a bus, and the position after them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct BusBatch {
    /// The messages, oldest first.
    pub(crate) messages: Vec<BusMessage>,
    /// Byte offsets of lines that cannot be parsed.
    pub(crate) damaged: Vec<u64>,
    /// The position at which the next read continues.
    pub(crate) position: BusPosition,
}

/// A position in a bus. It stays valid when the file is rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BusPosition {
    inode: u64,
    offset: u64,
}

impl Bus {
    /// Reads the last `count` messages, or all messages if there are fewer.
    pub(crate) fn last(&self, count: usize) -> Result<BusBatch> {
        let mut batch = self.read_last(&self.path, count)?;
        if batch.messages.len() < count {
            let mut older = self.read_last(&self.rotated_path(), count - batch.messages.len())?;
            older.messages.append(&mut batch.messages);
            batch.messages = older.messages;
        }
        let surplus = batch.messages.len().saturating_sub(count);
        batch.messages.drain(..surplus);
        Ok(batch)
    }

    /// Reads all messages after `position`.
    pub(crate) fn read_after(&self, position: BusPosition) -> Result<BusBatch> {
        let mut batch = BusBatch::default();
        if let Some(file) =
            open(&self.rotated_path())?.filter(|(_, inode)| *inode == position.inode)
        {
            // The file has been rotated since: read its remaining messages first.
            batch = self.read(file, position.offset)?;
        }
        let Some((file, inode)) = open(&self.path)? else {
            return Ok(BusBatch { position, ..batch });
        };
        let offset = if inode == position.inode {
            position.offset
        } else {
            0
        };
        let newer = self.read((file, inode), offset)?;
        batch.messages.extend(newer.messages);
        batch.damaged.extend(newer.damaged);
        Ok(BusBatch {
            position: newer.position,
            ..batch
        })
    }

    fn read_last(&self, path: &Path, count: usize) -> Result<BusBatch> {
        let Some((mut file, inode)) = open(path)? else {
            return Ok(BusBatch::default());
        };
        let start = start_of_last_lines(&mut file, count).context("read", path)?;
        self.read((file, inode), start)
    }

    fn read(&self, (file, inode): (File, u64), from: u64) -> Result<BusBatch> {
        let mut batch = BusBatch {
            position: BusPosition {
                inode,
                offset: from,
            },
            ..BusBatch::default()
        };
        let mut reader = BufReader::new(file);
        reader
            .seek(SeekFrom::Start(from))
            .context("read", &self.path)?;
        let mut raw = Vec::new();
        loop {
            let line = read_line(&mut reader, &mut raw).context("read", &self.path)?;
            // Leave an incomplete line for the next read: a process may still be writing it.
            if !line.is_complete {
                return Ok(batch);
            }
            let at = batch.position.offset;
            batch.position.offset += line.len;
            match serde_json::from_slice::<BusMessage>(&raw) {
                Ok(message) => batch.messages.push(message),
                Err(_) if at == 0 => self.check_version(&raw)?,
                Err(_) if raw.is_empty() => {}
                Err(_) => batch.damaged.push(at),
            }
        }
    }

    /// Returns an error if the first line names a newer format version.
    fn check_version(&self, raw: &[u8]) -> Result<()> {
        let header: serde_json::Value = serde_json::from_slice(raw).unwrap_or_default();
        match header["version"].as_u64() {
            Some(version) if version > VERSION => Err(StoreError::NewerVersion {
                path: self.path.clone(),
                version,
            }),
            _ => Ok(()),
        }
    }
}

/// Opens the file at `path`, and returns it with its inode number; `None` if the file does not
/// exist.
fn open(path: &Path) -> Result<Option<(File, u64)>> {
    match regular_file::open(path, false).and_then(|file| Ok((file.metadata()?.ino(), file))) {
        Ok((inode, file)) => Ok(Some((file, inode))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).context("open", path),
    }
}

/// Returns the byte offset at which the last `count` lines start.
fn start_of_last_lines(file: &mut File, count: usize) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let (mut end, earliest) = (len, len.saturating_sub(SEARCH_MAX));
    // Count one more newline, which ends the last line.
    let mut wanted = count + 1;
    let mut piece = Vec::new();
    while end > earliest {
        let start = end.saturating_sub(PIECE).max(earliest);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut piece)?;
        for at in memchr::memrchr_iter(b'\n', &piece) {
            wanted -= 1;
            if wanted == 0 {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(earliest)
}
