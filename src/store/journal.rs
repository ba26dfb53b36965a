//! Creates, opens and appends to a journal. A line is written whole or not at all, and only lines
//! that ralph wrote count.

use super::dir::{create_file, remove_if_exists, sync_dir, write_gitignore};
use super::error::IoContext;
use super::fold::FoldRange;
use super::seal::{self, Prefix, Seal, SealFile};
use super::{
    JournalHeader, JournalLine, LoopDir, Result, StoreError, aside, cache, disk_reserve, fold,
};
use crate::engine::State;
use crate::engine::format::bytes;
use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How often a line is written again because another process keeps appending to the journal.
const WRITE_TRIES: u32 = 5;

/// A journal that is open for appending. The process must hold the loop's lock.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    dir: LoopDir,
    path: PathBuf,
    /// All complete lines.
    written: Prefix,
    seal: Option<SealFile>,
    /// Descriptions of foreign bytes that were removed since the last call of
    /// [`Journal::take_warnings`].
    warnings: Vec<String>,
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
        let _ = fs::remove_file(&new);
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
        let journal = Self::open_at(dir, Prefix::EMPTY.with(first_line.as_bytes()))?;
        journal.write_seal(journal.written);
        Ok(journal)
    }

    /// Opens a journal for appending, and replays it to rebuild the state. Moves lines that another
    /// process has added, and a final line left incomplete by a crash, to a file of their own.
    /// Fails if another process has cut or changed ralph's lines.
    pub(crate) fn open(dir: &LoopDir) -> Result<OpenedJournal> {
        let path = dir.journal();
        let mut warnings = Vec::new();
        warnings.extend(remove_foreign_lines(dir)?);
        let mut reader = fold::open_journal(&path)?;
        let raw_header = fold::read_header(&mut reader, &path)?;
        let (header, start) = (raw_header.parse(&path)?, raw_header.len());
        let initial = State::new(header.plan.clone());
        let folded = fold::fold_lines(
            &mut reader,
            &path,
            initial,
            FoldRange {
                start,
                lines_before: 1,
                end: u64::MAX,
            },
            &mut |_, _| {},
        )?;

        // The cache may contain lines that a power failure has removed from the journal. Once new
        // lines replace them, readers could no longer detect that.
        remove_if_exists(&dir.state()).context("remove", &dir.state())?;
        // An earlier runner may have used up the reserve. If a new one does not fit, the loop can
        // still run.
        let _ = disk_reserve::create(&dir.disk_reserve());

        let written = Prefix::read(reader.get_ref(), folded.offset).context("read", &path)?;
        let mut journal = Self::open_at(dir, written)?;
        // An earlier runner may not have synced its last lines, and we are about to act on them.
        journal.unsynced = true;
        if folded.torn > 0 {
            let kept = aside::keep_bytes(&path, &journal.file, folded.offset);
            let kept = kept.context("copy the incomplete last line of", &path)?;
            journal.torn = true;
            journal.cut_torn_line().context("truncate", &path)?;
            warnings.push(format!(
                "{}: cut off an incomplete last line of {} bytes, left by a crash{}",
                path.display(),
                folded.torn,
                kept_in(kept.as_deref())
            ));
        }
        journal.write_seal(journal.written);
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
        let mut reader = fold::open_journal(&path)?;
        fold::read_header(&mut reader, &path)?.parse(&path)
    }

    fn open_at(dir: &LoopDir, written: Prefix) -> Result<Self> {
        let path = dir.journal();
        let file = regular_file::append_existing(&path).context("open", &path)?;
        Ok(Self {
            file,
            path,
            dir: dir.clone(),
            written,
            seal: SealFile::open(dir),
            warnings: Vec::new(),
            unsynced: false,
            torn: false,
        })
    }

    /// Appends a line with one write. If the disk is full, no part of the line remains. Removes
    /// bytes that another process has appended, and fails if another process has cut the journal.
    pub(crate) fn append(&mut self, line: &JournalLine) -> Result<()> {
        let text = line.to_json() + "\n";
        self.cut_torn_line().context("write", &self.path)?;
        self.write_seal(self.written.with(text.as_bytes()));
        for _ in 0..WRITE_TRIES {
            self.check_length()?;
            self.write(text.as_bytes()).context("write", &self.path)?;
            // The file is open for appending, so its position is the end of what was just written.
            let end = self.file.stream_position().context("write", &self.path)?;
            if end == self.written.len + text.len() as u64 {
                self.written = self.written.with(text.as_bytes());
                self.unsynced = true;
                return Ok(());
            }
        }
        Err(self.altered("another process keeps writing to it"))
    }

    /// Compares the length of the file with what was written. Moves bytes that another process has
    /// appended to a file of their own.
    pub(crate) fn check_length(&mut self) -> Result<()> {
        let len = self.file.metadata().context("read", &self.path)?.len();
        let extra = match len.checked_sub(self.written.len) {
            Some(0) => return Ok(()),
            _ if self.torn => return Ok(()),
            Some(extra) => extra,
            None => return Err(self.altered(&missing(len, self.written.len))),
        };
        let kept = aside::keep_bytes(&self.path, &self.file, self.written.len);
        let kept = kept.context("copy the end of", &self.path)?;
        self.file
            .set_len(self.written.len)
            .context("truncate", &self.path)?;
        self.unsynced = true;
        self.warnings
            .push(foreign(&self.path, extra, kept.as_deref()));
        Ok(())
    }

    /// Returns warnings about changes by other processes that were undone, and forgets them.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn altered(&self, detail: &str) -> StoreError {
        StoreError::Altered {
            path: self.path.clone(),
            detail: detail.to_owned(),
        }
    }

    fn write_seal(&self, next: Prefix) {
        if let Some(seal) = &self.seal {
            let complete = self.written;
            seal.write(&self.dir, &Seal { complete, next });
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let error = match self.write_once(line) {
            Ok(written) if written == line.len() => return Ok(()),
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
            self.file.set_len(self.written.len)?;
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
        let reserve = self.dir.disk_reserve();
        remove_if_exists(&reserve).context("remove", &reserve)
    }

    /// Returns whether the loop's directory still contains the open file. If not, the directory was
    /// deleted, moved, replaced or unmounted, and no other process sees what is appended.
    pub(crate) fn is_in_place(&self) -> bool {
        regular_file::is_at(&self.file, &self.path).unwrap_or(false)
    }

    /// Returns the length of all complete lines, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.written.len
    }
}

/// Compares a journal that no runner has open with its seal. Moves lines that were added to a file
/// of their own, and returns a warning about them. Fails if lines were cut or changed.
fn remove_foreign_lines(dir: &LoopDir) -> Result<Option<String>> {
    // Another version of ralph may have appended lines without sealing them.
    let Some(seal) = seal::read(dir).filter(|_| !cache::is_by_other_version(dir)) else {
        return Ok(None);
    };
    let path = dir.journal();
    fold::open_journal(&path)?;
    let file = regular_file::append_existing(&path).context("open", &path)?;
    let len = file.metadata().context("read", &path)?.len();
    // After a crash, the last line may be missing or incomplete.
    let sealed = if len >= seal.next.len {
        seal.next
    } else {
        seal.complete
    };
    let found = Prefix::read(&file, sealed.len).context("read", &path)?;
    if found != sealed {
        let detail = if found.len < sealed.len {
            missing(found.len, sealed.len)
        } else {
            "its content is not what ralph wrote".to_owned()
        };
        return Err(StoreError::Altered { path, detail });
    }
    let rest = seal.complete.len..len.min(seal.next.len);
    let end = if sealed == seal.next {
        seal.next.len
    } else if has_line_end(&file, rest).context("read", &path)? {
        // An incomplete line does not end, so this is not what ralph was writing.
        seal.complete.len
    } else {
        len
    };
    let extra = len - end;
    if extra == 0 {
        return Ok(None);
    }
    let kept = aside::keep_bytes(&path, &file, end);
    let kept = kept.context("copy the end of", &path)?;
    file.set_len(end).context("truncate", &path)?;
    Ok(Some(foreign(&path, extra, kept.as_deref())))
}

fn has_line_end(file: &File, range: Range<u64>) -> io::Result<bool> {
    let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.contains(&b'\n'))
}

fn missing(len: u64, sealed: u64) -> String {
    let (missing, all) = (bytes(sealed - len), bytes(sealed));
    format!("{missing} of {all} are missing")
}

/// Returns the warning about bytes that another process appended.
fn foreign(path: &Path, extra: u64, kept: Option<&Path>) -> String {
    format!(
        "{}: another process appended {extra} bytes; ralph removed them{}",
        path.display(),
        kept_in(kept)
    )
}

fn kept_in(copy: Option<&Path>) -> String {
    copy.map(|copy| format!(" and kept them in {}", copy.display()))
        .unwrap_or_default()
}
