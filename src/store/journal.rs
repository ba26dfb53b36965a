//! Creates, opens and appends to a journal. A line is written whole or not at all.

use super::dir::{create_file, remove_if_exists, sync_dir, write_gitignore};
use super::error::IoContext;
use super::{JournalHeader, JournalLine, LoopDir, Result, disk_reserve, fold};
use crate::engine::State;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A journal that is open for appending. The process must hold the loop's lock.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    disk_reserve: PathBuf,
    /// The byte offset at which the last complete line ends.
    len: u64,
    /// Whether a power failure could lose appended lines.
    unsynced: bool,
    /// Whether the file may contain bytes after `len` that still have to be cut off.
    torn: bool,
}

/// An open journal and its content.
#[derive(Debug)]
pub(crate) struct OpenedJournal {
    pub(crate) journal: Journal,
    pub(crate) header: JournalHeader,
    /// The state after all lines of the journal.
    pub(crate) state: State,
    /// Descriptions of repairs made to the journal, for display.
    pub(crate) warnings: Vec<String>,
}

impl Journal {
    /// Creates a journal in a directory that has none.
    ///
    /// The file gets its name only once the header is complete and durable, so a crash leaves
    /// either no loop or one that can be opened.
    pub(crate) fn create(dir: &LoopDir, header: &JournalHeader) -> Result<Self> {
        let path = dir.journal();
        if fs::symlink_metadata(&path).is_ok() {
            return Err(io::Error::from(ErrorKind::AlreadyExists)).context("create", &path);
        }
        disk_reserve::create(&dir.disk_reserve()).context("write", &dir.disk_reserve())?;
        write_gitignore(dir.path());

        let new = path.with_extension("jsonl.new");
        let first_line = header.to_json() + "\n";
        let mut file = create_file(&new).context("create", &new)?;
        file.write_all(first_line.as_bytes())
            .and_then(|()| file.sync_all())
            .context("write", &new)?;
        fs::rename(&new, &path).context("create", &path)?;
        for directory in [Some(dir.path()), dir.path().parent()]
            .into_iter()
            .flatten()
        {
            sync_dir(directory).context("sync", directory)?;
        }
        Self::open_at(dir, first_line.len() as u64)
    }

    /// Opens a journal for appending, replays it to rebuild the state, and truncates a final line
    /// left incomplete by a crash.
    pub(crate) fn open(dir: &LoopDir) -> Result<OpenedJournal> {
        let path = dir.journal();
        let mut reader = BufReader::new(File::open(&path).context("open", &path)?);
        let raw_header = fold::read_header(&mut reader, &path)?;
        let (header, start) = (raw_header.parse(&path)?, raw_header.len());
        let initial = State::new(header.plan.clone());
        let folded = fold::fold_lines(&mut reader, &path, initial, start, 1)?;

        // The cache may contain lines that a power failure has removed from the journal. Once new
        // lines replace them, readers could no longer detect that.
        remove_if_exists(&dir.state()).context("remove", &dir.state())?;
        // An earlier runner may have used up the reserve. If a new one does not fit, the loop can
        // still run.
        let _ = disk_reserve::create(&dir.disk_reserve());

        let mut journal = Self::open_at(dir, folded.offset)?;
        // An earlier runner may not have synced its last lines, and we are about to act on them.
        journal.unsynced = true;
        let mut warnings = Vec::new();
        if folded.torn > 0 {
            journal.torn = true;
            journal.cut_torn_line().context("truncate", &path)?;
            warnings.push(format!(
                "{}: cut off an incomplete last line of {} bytes, left by a crash",
                path.display(),
                folded.torn
            ));
        }
        Ok(OpenedJournal {
            journal,
            header,
            state: folded.state,
            warnings,
        })
    }

    /// Reads only the header of a loop's journal.
    pub(crate) fn read_header(dir: &LoopDir) -> Result<JournalHeader> {
        let path = dir.journal();
        let mut reader = BufReader::new(File::open(&path).context("open", &path)?);
        fold::read_header(&mut reader, &path)?.parse(&path)
    }

    fn open_at(dir: &LoopDir, len: u64) -> Result<Self> {
        let path = dir.journal();
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .context("open", &path)?;
        Ok(Self {
            file,
            path,
            disk_reserve: dir.disk_reserve(),
            len,
            unsynced: false,
            torn: false,
        })
    }

    /// Appends a line with one write. If the disk is full, no part of the line remains.
    pub(crate) fn append(&mut self, line: &JournalLine) -> Result<()> {
        let text = line.to_json() + "\n";
        self.write(text.as_bytes()).context("write", &self.path)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.cut_torn_line()?;
        let error = match self.write_once(line) {
            Ok(written) if written == line.len() => {
                self.len += written as u64;
                self.unsynced = true;
                return Ok(());
            }
            // Only a lack of space causes a short write. Writing the rest to get the actual error
            // could raise SIGXFSZ.
            Ok(_) => io::Error::from(ErrorKind::StorageFull),
            Err(error) => error,
        };
        self.torn = true;
        // Report the write error, not an error of the cut. The next call repeats the cut.
        let _ = self.cut_torn_line();
        Err(error)
    }

    fn write_once(&mut self, line: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(line) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn cut_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.len)?;
            self.torn = false;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Makes all appended lines durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync_data().context("sync", &self.path)?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Frees the reserved disk space. The final events then fit on a full disk.
    pub(crate) fn release_disk_reserve(&mut self) -> Result<()> {
        remove_if_exists(&self.disk_reserve).context("remove", &self.disk_reserve)
    }

    /// Returns whether the open file has been deleted. Lines appended to a deleted file are lost.
    pub(crate) fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.nlink() == 0)
    }

    /// Returns the length of all complete lines, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}
