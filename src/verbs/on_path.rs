//! Whether a program can be called by its name alone.

use rustix::fs::{Access, access};
use std::env;

pub(super) fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|dir| dir.join(program))
        .any(|file| !program.is_empty() && file.is_file() && access(&file, Access::EXEC_OK).is_ok())
}
