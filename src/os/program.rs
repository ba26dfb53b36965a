//! Finds programs by path or in `PATH`, and checks access rights.

use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// Finds a program's file; `None` if it does not exist. A name without a slash is looked up in
/// `PATH` and must be executable. A path is resolved against `dir` and only has to exist.
pub(crate) fn find(program: &str, dir: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(dir.join(program)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|entry| dir.join(entry).join(program))
        .find(|path| path.is_file() && is_executable(path))
}

/// Returns whether this user may execute the file.
pub(crate) fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Returns whether this user may write to the file, or change the directory's entries.
pub(crate) fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}
