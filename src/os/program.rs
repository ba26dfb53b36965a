//! Where a program is that somebody names: as a path, or by a name that is looked up in `PATH`.

use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// The program's file, seen from a directory. One named as a path need not be executable.
pub fn find(program: &str, dir: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(dir.join(program)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|place| dir.join(place).join(program));
    all.find(|path| path.is_file() && may_run(path))
}

/// Whether a file may be run.
pub fn may_run(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Whether a directory's entries, or a file, may be changed.
pub fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}
