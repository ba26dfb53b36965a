//! Keeps what does not belong in a loop's directory: bytes that another process wrote to one of
//! ralph's files, and anything in place of such a file. Neither is deleted, so that a person can
//! look at it.

use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// At most this many bytes of a file are kept.
const BYTES_MAX: u64 = 16 << 20;
/// At most this many copies are kept per file. An agent must not fill the disk with them.
const COPIES_MAX: u32 = 20;

/// Copies the bytes of `file` from `offset` to a new file next to `path`, and returns its path.
/// Returns `None` if there are too many copies already.
pub(super) fn keep_bytes(path: &Path, file: &File, offset: u64) -> io::Result<Option<PathBuf>> {
    let Some(copy) = unused_path(path) else {
        return Ok(None);
    };
    let mut from = file;
    from.seek(SeekFrom::Start(offset))?;
    let mut to = regular_file::create_new(&copy)?;
    io::copy(&mut from.take(BYTES_MAX), &mut to)?;
    Ok(Some(copy))
}

/// Renames `path`, which may be anything, and returns its new path.
pub(super) fn move_away(path: &Path) -> io::Result<PathBuf> {
    let new = unused_path(path).ok_or_else(|| io::Error::other("not a regular file"))?;
    fs::rename(path, &new)?;
    Ok(new)
}

/// Returns an unused path for a copy of `path`: its name with `.aside-` and a number.
fn unused_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy();
    let numbered = |n| path.with_file_name(format!("{name}.aside-{n}"));
    (1..=COPIES_MAX)
        .map(numbered)
        .find(|path| fs::symlink_metadata(path).is_err())
}
