//! Seals the journal: a small file contains the length and the checksum of what ralph has written.
//! The next runner uses it to notice lines that another process has added, cut or changed.
//!
//! The seal is written before each line, so after a crash the journal may lack its last line but
//! never has more than the seal says. After a power failure that is not certain, so a seal is valid
//! only until the system restarts. A process that knows this format can forge a seal.

use super::LoopDir;
use crate::engine::fnv;
use crate::os::{boot, regular_file};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A prefix of a journal: its length, and the FNV-1a hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) len: u64,
    hash: u64,
}

impl Prefix {
    /// The empty prefix.
    pub(super) const EMPTY: Self = Self {
        len: 0,
        hash: fnv::EMPTY,
    };

    /// Returns this prefix with `bytes` appended.
    pub(super) fn with(self, bytes: &[u8]) -> Self {
        Self {
            len: self.len + bytes.len() as u64,
            hash: fnv::extend(self.hash, bytes),
        }
    }

    /// Returns the prefix of `file` with `len` bytes. It is shorter if the file is.
    pub(super) fn read(file: &File, len: u64) -> io::Result<Self> {
        Self::EMPTY.read_on(file, len)
    }

    /// Extends this prefix of `file` to `len` bytes.
    pub(super) fn read_on(self, mut file: &File, len: u64) -> io::Result<Self> {
        let mut prefix = self;
        file.seek(SeekFrom::Start(self.len))?;
        let mut rest = file.take(len.saturating_sub(self.len));
        let mut buffer = vec![0; 64 << 10];
        loop {
            match rest.read(&mut buffer) {
                Ok(0) => return Ok(prefix),
                Ok(count) => prefix = prefix.with(&buffer[..count]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// What ralph has written to a journal: everything up to `complete`, and possibly one more line,
/// up to `next`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seal {
    pub(super) complete: Prefix,
    pub(super) next: Prefix,
}

/// The open seal file of a loop.
#[derive(Debug)]
pub(super) struct SealFile {
    file: File,
    boot: String,
}

impl SealFile {
    /// Opens the file, and creates it if it is missing. Returns `None` if the system has no boot ID
    /// or the file cannot be written: the journal is then not sealed.
    pub(super) fn open(dir: &LoopDir) -> Option<Self> {
        let boot = boot::boot_id()?;
        let file = regular_file::create(&path(dir)).ok()?;
        Some(Self { file, boot })
    }

    /// Replaces the seal. Errors are ignored: an outdated seal is removed instead, because it would
    /// make ralph's own lines look like those of another process.
    pub(super) fn write(&self, dir: &LoopDir, seal: &Seal) {
        let Seal { complete, next } = seal;
        let text = format!(
            "{} {:020} {:016x} {:020} {:016x}\n",
            self.boot, complete.len, complete.hash, next.len, next.hash
        );
        if self.file.write_all_at(text.as_bytes(), 0).is_err() {
            let _ = fs::remove_file(path(dir));
        }
    }
}

/// Returns the seal of a loop's journal; `None` if there is none that was written since the system
/// booted.
pub(super) fn read(dir: &LoopDir) -> Option<Seal> {
    let text = regular_file::read_text(&path(dir), false).ok()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [boot, len, hash, next_len, next_hash] = words[..] else {
        return None;
    };
    let prefix = |len: &str, hash: &str| {
        Some(Prefix {
            len: len.parse().ok()?,
            hash: u64::from_str_radix(hash, 16).ok()?,
        })
    };
    let seal = Seal {
        complete: prefix(len, hash)?,
        next: prefix(next_len, next_hash)?,
    };
    (boot::boot_id().as_deref() == Some(boot)).then_some(seal)
}

/// Returns the path of the seal.
pub(super) fn path(dir: &LoopDir) -> PathBuf {
    dir.path().join("seal")
}
