//! Reads the activity of an iteration, also while it is being written.

use super::line::{ActRecord, ActivityLine};
use crate::engine::Act;
use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is read from an iteration's activity.
#[derive(Debug, PartialEq)]
pub(crate) enum ActivityItem {
    Act(Act<'static>),
    /// So many acts were dropped here.
    Dropped(u64),
}

/// Reads the file from its start, and later what was added.
pub(crate) struct ActivityReader {
    path: PathBuf,
    file: File,
    inode: u64,
    /// The beginning of a line whose end is not there yet. After a crash it never comes.
    partial: Vec<u8>,
    /// The number of the last act that was read.
    last: u64,
}

impl ActivityReader {
    /// Opens the file. `None` if the iteration has none.
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

    /// Reads what was added since the last call.
    pub(crate) fn read(&mut self, emit: &mut dyn FnMut(ActivityItem)) -> io::Result<()> {
        loop {
            self.read_file(emit)?;
            // A file that loses acts is replaced. The numbers say where to continue.
            let inode = match fs::metadata(&self.path) {
                Ok(data) => data.ino(),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            if inode == self.inode {
                return Ok(());
            }
            // The old file may have grown between reading and looking.
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
                    emit(ActivityItem::Act(act));
                }
            }
        }
    }
}
