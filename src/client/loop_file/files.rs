//! Reads and writes the loop file on disk. Its path may lead to anything: a symbolic link, a FIFO,
//! a huge file.

use super::LoopFile;
use crate::os::regular_file;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Maximum size of a loop file, in bytes. A prompt has at most a few megabytes, so a larger file
/// cannot be a loop file.
const FILE_MAX: u64 = 32 << 20;

/// The result of loading a loop file.
#[derive(Debug, PartialEq, Eq)]
pub enum LoadedLoopFile {
    /// The file does not exist.
    Missing,
    /// The file is valid.
    Valid(LoopFile),
    /// The file cannot be read or parsed. The text is the reason.
    Invalid(String),
}

/// Loads a workspace's loop file.
pub fn load(workspace: &Path) -> LoadedLoopFile {
    let (bytes, more) = match regular_file::read(&LoopFile::path(workspace), FILE_MAX, false) {
        Ok(read) => read,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return LoadedLoopFile::Missing;
        }
        Err(error) => return LoadedLoopFile::Invalid(error.to_string()),
    };
    if more {
        return LoadedLoopFile::Invalid(format!("it is larger than {} MiB", FILE_MAX >> 20));
    }
    match std::str::from_utf8(&bytes)
        .map_err(|_| "it is not valid UTF-8".into())
        .and_then(LoopFile::parse)
    {
        Ok(file) => LoadedLoopFile::Valid(file),
        Err(reason) => LoadedLoopFile::Invalid(reason),
    }
}

/// Replaces the loop file atomically, unless it already has this content.
pub fn save(workspace: &Path, file: &LoopFile) -> io::Result<()> {
    let path = LoopFile::path(workspace);
    let text = file.to_text();
    if regular_file::read(&path, FILE_MAX, false).is_ok_and(|(bytes, _)| bytes == text.as_bytes()) {
        return Ok(());
    }
    let dir = path.parent().unwrap_or(workspace);
    fs::create_dir_all(dir)?;
    let draft = dir.join(format!(".ralph-loop.local.{}.new", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&draft, &path)
    };
    let result = match write() {
        // A process with the same ID left the draft behind. It has exited, because this process has
        // its ID.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&draft).and_then(|()| write())
        }
        other => other,
    };
    if result.is_err() {
        let _ = fs::remove_file(&draft);
    }
    result
}

/// Removes the loop file if it exists.
pub fn remove(workspace: &Path) -> io::Result<()> {
    match fs::remove_file(LoopFile::path(workspace)) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Renames an invalid loop file, which keeps its content and makes room for a new file. Returns the
/// new path.
pub fn move_aside(workspace: &Path) -> io::Result<PathBuf> {
    let path = LoopFile::path(workspace);
    for number in 1_u32.. {
        let number = if number == 1 {
            String::new()
        } else {
            format!(".{number}")
        };
        let aside = path.with_file_name(format!("ralph-loop.local.broken{number}.md"));
        match rename_to_new(&path, &aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return other.map(|()| aside),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Renames a file. Fails if `to` already exists.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag. Checking first leaves a race but is the best
        // alternative.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match fs::symlink_metadata(to) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        other => other.map_err(Into::into),
    }
}
