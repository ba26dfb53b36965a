//! Creates the directories of hooks that a repository lacks, and removes them afterwards. Where one
//! is missing, an agent in a sandbox could create it, with hooks that run outside.

use super::git_dirs;
use crate::os::regular_file;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most bytes of a record that are read.
const RECORD_MAX: u64 = 1 << 20;

/// The directories of hooks of a repository, which exist as long as this does. Those that were
/// created are removed if no other loop's sandbox needs them.
#[derive(Debug)]
pub(crate) struct SandboxHooks {
    record: PathBuf,
    /// The directories, locked so that no other loop removes them.
    locks: Vec<File>,
}

impl SandboxHooks {
    /// Creates what is missing in the repository of a workspace. `record` is a file in the loop's
    /// directory that names what was created, so that it can be removed after a crash.
    pub(crate) fn create(workspace: &Path, record: &Path) -> Self {
        let dirs = git_dirs::hooks_dirs(workspace);
        let mut hooks = Self {
            record: record.to_owned(),
            locks: Vec::new(),
        };
        let missing: Vec<&PathBuf> = dirs.iter().filter(|dir| !dir.exists()).collect();
        // Without a record, a directory that is left is harmless: `git init` creates it too.
        let _ = add_to_record(record, &missing);
        for dir in &dirs {
            hooks.locks.extend(lock(dir));
        }
        hooks
    }
}

impl Drop for SandboxHooks {
    fn drop(&mut self) {
        self.locks.clear();
        remove_created(&self.record);
    }
}

/// Creates a directory if it is missing, and locks it. Another loop may remove it meanwhile.
fn lock(dir: &Path) -> Option<File> {
    loop {
        match fs::create_dir(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let file = File::open(dir).ok()?;
        file.lock_shared().ok()?;
        let inode = |data: fs::Metadata| (data.dev(), data.ino());
        let locked = file.metadata().map(inode).ok()?;
        if fs::metadata(dir).map(inode).is_ok_and(|now| now == locked) {
            return Some(file);
        }
    }
}

fn add_to_record(record: &Path, dirs: &[&PathBuf]) -> std::io::Result<()> {
    if dirs.is_empty() {
        return Ok(());
    }
    let mut file = File::options().create(true).append(true).open(record)?;
    for dir in dirs {
        file.write_all(&[dir.as_os_str().as_bytes(), b"\0"].concat())?;
    }
    Ok(())
}

/// Removes the directories that a record names, if they are empty and no loop needs them.
pub(crate) fn remove_created(record: &Path) {
    let Ok((bytes, _)) = regular_file::read(record, RECORD_MAX, false) else {
        return;
    };
    let names = bytes
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let mut is_done = true;
    for dir in names.map(|name| Path::new(OsStr::from_bytes(name))) {
        let is_used = File::open(dir).is_ok_and(|file| match file.try_lock() {
            // The lock is released after the removal.
            Ok(()) => {
                let _ = fs::remove_dir(dir);
                false
            }
            Err(_) => true,
        });
        is_done &= !is_used;
    }
    if is_done {
        let _ = fs::remove_file(record);
    }
}
