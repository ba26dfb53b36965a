//! How the only truth is written: one whole line at a time, or nothing.

use super::dir::{create_file, keep_from_git, remove, sync_dir};
use super::error::Doing;
use super::{LoopDir, Result, disk_reserve, fold};
use crate::engine::State;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub use super::line::{Header, Line};

/// A journal that is open for writing. Only who holds the loop's lock may have one.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    reserve: PathBuf,
    /// Where the last whole line ends.
    len: u64,
    /// Whether something was written that a power cut may take back.
    unsynced: bool,
    /// Whether bytes may stand after `len` that could not be taken back.
    torn: bool,
}

/// A journal, and all that it says.
#[derive(Debug)]
pub struct Opened {
    /// To write on.
    pub journal: Journal,
    /// Its first line.
    pub header: Header,
    /// The fold of all others.
    pub state: State,
    /// What had to be mended, for people.
    pub warnings: Vec<String>,
}

impl Journal {
    /// Begins a journal in a directory that has none.
    ///
    /// It appears under its name only when its first line is whole and durable: a crash leaves either no loop
    /// or one that can be opened.
    pub fn create(dir: &LoopDir, header: &Header) -> Result<Self> {
        let path = dir.journal();
        if fs::symlink_metadata(&path).is_ok() {
            return Err(io::Error::from(ErrorKind::AlreadyExists)).doing("create", &path);
        }
        disk_reserve::fill(&dir.reserve()).doing("write", &dir.reserve())?;
        keep_from_git(dir.path());

        let new = path.with_extension("jsonl.new");
        let first = header.to_json() + "\n";
        let mut file = create_file(&new).doing("create", &new)?;
        file.write_all(first.as_bytes())
            .and_then(|()| file.sync_all())
            .doing("write", &new)?;
        fs::rename(&new, &path).doing("create", &path)?;
        for directory in [Some(dir.path()), dir.path().parent()]
            .into_iter()
            .flatten()
        {
            sync_dir(directory).doing("sync", directory)?;
        }
        Self::at(dir, first.len() as u64)
    }

    /// Opens a journal to go on with it: folds all of it, and cuts off a last line that a crash tore.
    pub fn open(dir: &LoopDir) -> Result<Opened> {
        let path = dir.journal();
        let mut reader = BufReader::new(File::open(&path).doing("open", &path)?);
        let first = fold::first(&mut reader, &path)?;
        let (header, start) = (first.header(&path)?, first.end());
        let fresh = State::new(header.plan.clone());
        let folded = fold::tail(&mut reader, &path, fresh, start, 1)?;

        // A cache may have folded lines that a power cut took back; new lines would hide that from its readers.
        remove(&dir.state()).doing("remove", &dir.state())?;
        // Spent by an earlier runner, perhaps. Where it does not fit, the loop can still be tried.
        let _ = disk_reserve::fill(&dir.reserve());

        let mut journal = Self::at(dir, folded.offset)?;
        // What an earlier runner wrote and did not sync is judged now.
        journal.unsynced = true;
        let mut warnings = Vec::new();
        if folded.torn > 0 {
            journal.torn = true;
            journal.cut().doing("cut", &path)?;
            let what = format!(
                "cut off a last line of {} bytes, torn by a crash",
                folded.torn
            );
            warnings.push(format!("{}: {what}", path.display()));
        }
        Ok(Opened {
            journal,
            header,
            state: folded.state,
            warnings,
        })
    }

    fn at(dir: &LoopDir, len: u64) -> Result<Self> {
        let path = dir.journal();
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .doing("open", &path)?;
        Ok(Self {
            file,
            path,
            reserve: dir.reserve(),
            len,
            unsynced: false,
            torn: false,
        })
    }

    /// Writes one line with one call; if not all of it fits, none of it stays.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let text = line.to_json() + "\n";
        self.write(text.as_bytes()).doing("write", &self.path)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.cut()?;
        let error = match self.write_once(line) {
            Ok(written) if written == line.len() => {
                self.len += written as u64;
                self.unsynced = true;
                return Ok(());
            }
            // To a file, only a lack of space cuts a write short; asking for the reason could raise SIGXFSZ.
            Ok(_) => io::Error::from(ErrorKind::StorageFull),
            Err(error) => error,
        };
        self.torn = true;
        // The first error says more; where the cut fails, it is tried again before the next line.
        let _ = self.cut();
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

    fn cut(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.len)?;
            self.torn = false;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Makes everything appended durable.
    pub fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync_data().doing("sync", &self.path)?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Gives back the space put aside at the start, so that last words fit on a full disk.
    pub fn spend_reserve(&mut self) -> Result<()> {
        remove(&self.reserve).doing("remove", &self.reserve)
    }

    /// Whether somebody deleted it: what is written then, nobody will ever read.
    pub fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.nlink() == 0)
    }

    /// The bytes of all whole lines.
    pub fn len(&self) -> u64 {
        self.len
    }
}
