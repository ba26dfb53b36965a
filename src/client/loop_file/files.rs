//! The sheet on disk: in a directory where anybody may have put anything under its name.

use super::Sheet;
use crate::os::regular;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A prompt is at most a few megabytes; a larger file is something else.
const SHEET_MAX: u64 = 32 << 20;

/// What lies where the sheet should.
#[derive(Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Nothing.
    None,
    /// A sheet.
    Some(Sheet),
    /// Something else; what is wrong with it.
    Broken(String),
}

/// Reads the sheet.
pub fn load(workspace: &Path) -> Loaded {
    let (bytes, more) = match regular::read(&Sheet::path(workspace), SHEET_MAX, false) {
        Ok(read) => read,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Loaded::None;
        }
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Loaded::Broken("it is a link".into());
        }
        Err(error) => return Loaded::Broken(error.to_string()),
    };
    if more {
        return Loaded::Broken(format!("it is larger than {} MiB", SHEET_MAX >> 20));
    }
    match std::str::from_utf8(&bytes)
        .map_err(|_| "it is not UTF-8 text".into())
        .and_then(Sheet::read)
    {
        Ok(sheet) => Loaded::Some(sheet),
        Err(wrong) => Loaded::Broken(wrong),
    }
}

/// Writes the sheet, all of it at once; one that says the same already is left alone.
pub fn save(workspace: &Path, sheet: &Sheet) -> io::Result<()> {
    let path = Sheet::path(workspace);
    let text = sheet.text();
    if regular::read(&path, SHEET_MAX, false).is_ok_and(|(bytes, _)| bytes == text.as_bytes()) {
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
    let done = match write() {
        // Left by a process of the same number, which cannot live any more.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&draft).and_then(|()| write())
        }
        other => other,
    };
    if done.is_err() {
        let _ = fs::remove_file(&draft);
    }
    done
}

/// Takes the sheet away, if it is there.
pub fn remove(workspace: &Path) -> io::Result<()> {
    match fs::remove_file(Sheet::path(workspace)) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Gives a broken sheet another name, and says which: nothing is lost, and nothing stands in the way.
pub fn set_aside(workspace: &Path) -> io::Result<PathBuf> {
    let path = Sheet::path(workspace);
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

fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can; that nothing is there at this moment has to do.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match fs::symlink_metadata(to) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        other => other.map_err(Into::into),
    }
}
