//! Finds programs by path or in `PATH`, and checks access rights and interpreters.

use super::regular_file;
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

/// Returns the path of the shell that runs checks. The system's own shell comes before one in
/// `PATH`, to which an agent may add one that always succeeds.
pub(crate) fn shell() -> &'static Path {
    static SHELL: OnceLock<PathBuf> = OnceLock::new();
    SHELL.get_or_init(|| {
        let own = Path::new("/bin/sh");
        if is_executable(own) {
            own.to_owned()
        } else {
            find("sh", Path::new("/")).unwrap_or_else(|| "sh".into())
        }
    })
}

/// Returns the path of git, which is looked up in `PATH` once: a program that an agent adds later
/// is not used. Returns the bare name if git is not installed.
pub(crate) fn git() -> &'static Path {
    static GIT: OnceLock<PathBuf> = OnceLock::new();
    GIT.get_or_init(|| {
        let dir = std::env::current_dir().unwrap_or_default();
        find("git", &dir).unwrap_or_else(|| "git".into())
    })
}

/// Returns the path of bwrap, which is looked up in `PATH` once, like git; `None` if it is not
/// installed.
pub(crate) fn bwrap() -> Option<&'static Path> {
    static BWRAP: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = BWRAP.get_or_init(|| {
        let dir = std::env::current_dir().unwrap_or_default();
        find("bwrap", &dir)
    });
    found.as_deref()
}

/// Returns whether this user may execute the file.
pub(crate) fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Returns whether this user may write to the file, or change the directory's entries.
pub(crate) fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// Maximum length of a `#!` line that the kernel reads, in bytes.
const INTERPRETER_LINE_MAX: u64 = 256;

/// Describes the missing interpreter of a script that would be started in `dir`; `None` if the file
/// is not a script or its interpreter exists. For such a script, the kernel's error is the same as
/// if the script itself were missing.
pub(crate) fn missing_interpreter(script: &Path, dir: &Path) -> Option<String> {
    let (start, _) = regular_file::read(script, INTERPRETER_LINE_MAX, true).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = words.find(|word| !word.is_empty())?;
    let path = dir.join(OsStr::from_bytes(interpreter));
    if !matches!(path.try_exists(), Ok(false)) {
        return None;
    }
    let name = String::from_utf8_lossy(interpreter);
    Some(match name.strip_suffix('\r') {
        Some(name) => format!("its first line ends with a carriage return after {name}"),
        None => format!("its first line names the interpreter {name}, which does not exist"),
    })
}
