//! Reads an iteration's activity, even while it is being written.

use super::line::{ActRecord, ActivityLine};
use crate::engine::Act;
use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// An act, or a note about dropped acts, read from an iteration's activity.
#[derive(Debug, PartialEq)]
pub(crate) enum ActivityItem {
    Act {
        /// The time at which the act arrived, in milliseconds since 1970.
        at_ms: i64,
        act: Act<'static>,
    },
    /// A number of acts that were dropped at this point.
    Dropped(u64),
}

/// Reads an activity file from its start. Each further read returns the acts added since the last
/// one.
pub(crate) struct ActivityReader {
    path: PathBuf,
    file: File,
    inode: u64,
    /// An incomplete line. After a crash, it is never completed.
    partial: Vec<u8>,
    /// The number of the last act that was read.
    last: u64,
}

impl ActivityReader {
    /// Opens the file at `path`; `None` if the iteration has no activity file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = regular_file::open(path, false).ok()?;
        Some(Self {
            path: path.to_owned(),
            inode: file.metadata().ok()?.ino(),
            file,
            partial: Vec::new(),
            last: 0,
        })
    }

    /// Returns whether the file has its last line. After a crash or on a full disk, the line may be
    /// missing.
    pub(crate) fn is_complete(&self) -> bool {
        let mut end = [0; 256];
        let len = self.file.metadata().map_or(0, |data| data.len());
        let from = len.saturating_sub(end.len() as u64);
        let read = self.file.read_at(&mut end, from).unwrap_or(0);
        let last = end[..read].trim_ascii_end();
        let last = last.rsplit(|byte| *byte == b'\n').next();
        let line = last.and_then(|line| serde_json::from_slice::<ActivityLine<'_>>(line).ok());
        line.is_some_and(|line| line.act == ActRecord::End)
    }

    /// Passes the items added since the last call to `emit`.
    pub(crate) fn read(&mut self, emit: &mut dyn FnMut(ActivityItem)) -> io::Result<()> {
        loop {
            self.read_file(emit)?;
            // The writer replaces the file when it drops acts. The acts' numbers tell where to
            // continue.
            let inode = match fs::metadata(&self.path) {
                Ok(data) => data.ino(),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            if inode == self.inode {
                return Ok(());
            }
            // The old file may have grown since it was read.
            self.read_file(emit)?;
            self.file = regular_file::open(&self.path, false)?;
            self.inode = self.file.metadata()?.ino();
            self.partial.clear();
        }
    }

    fn read_file(&mut self, emit: &mut dyn FnMut(ActivityItem)) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.partial);
        self.file.read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.read_line(&rest[..end], emit);
            rest = &rest[end + 1..];
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Reads a line. The header and lines that cannot be parsed are skipped.
    fn read_line(&mut self, line: &[u8], emit: &mut dyn FnMut(ActivityItem)) {
        let Ok(line) = serde_json::from_slice::<ActivityLine<'static>>(line) else {
            return;
        };
        if line.n <= self.last {
            return;
        }
        let since = line.n - std::mem::replace(&mut self.last, line.n);
        match line.act {
            ActRecord::Dropped { .. } => emit(ActivityItem::Dropped(since)),
            act => {
                if let Some(act) = act.into_act() {
                    emit(ActivityItem::Act {
                        at_ms: line.at_ms,
                        act,
                    });
                }
            }
        }
    }
}
