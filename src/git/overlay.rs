//! Runs git on a copy of the index, with new objects written outside the repository.

use super::command::{GitError, GitOutput};
use super::look::Programs;
use super::project::git_dirs;
use super::worktree::redirecting_variable;
use super::{command, look};
use memchr::memmem;
use rustix::process::{Pid, test_kill_process};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The number for the next copy that this process makes.
static NEXT_COPY: AtomicU32 = AtomicU32::new(0);

/// A repository with a temporary copy of its index. Dropping the overlay removes the copy.
pub(super) struct IndexOverlay {
    top: PathBuf,
    index: PathBuf,
    objects: PathBuf,
    alternates: OsString,
    programs: Programs,
}

/// The files of a repository that a private index is derived from.
#[derive(Clone, Debug)]
pub(super) struct RepositoryFiles {
    pub(super) index: PathBuf,
    pub(super) objects: PathBuf,
    /// The repository's own list of ignored files.
    pub(super) exclude: PathBuf,
    /// The git directory that all worktrees of the repository share.
    pub(super) common: PathBuf,
}

impl RepositoryFiles {
    /// Finds the files of the repository whose top is `top`. Git is asked only if the user's
    /// environment selects other files.
    pub(super) fn find(top: &Path) -> Result<Self, String> {
        let is_plain =
            redirecting_variable().is_none() && std::env::var_os("GIT_OBJECT_DIRECTORY").is_none();
        if let Some(dirs) = git_dirs(top).filter(|_| is_plain) {
            return Ok(Self {
                index: dirs.own.join("index"),
                objects: dirs.common.join("objects"),
                exclude: dirs.common.join("info/exclude"),
                common: dirs.common,
            });
        }
        Ok(Self {
            index: git_path(top, &["--git-path", "index"])?,
            objects: git_path(top, &["--git-path", "objects"])?,
            exclude: git_path(top, &["--git-path", "info/exclude"])?,
            common: git_path(top, &["--git-common-dir"])?,
        })
    }
}

impl IndexOverlay {
    /// Copies the index of the repository at `top` into `scratch`.
    pub(super) fn new(top: &Path, scratch: &Path) -> Result<Self, String> {
        let cannot = |what: &str| {
            let what = format!("cannot {what} in {}", scratch.display());
            move |error: io::Error| format!("{what}: {error}")
        };
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private
            .create(scratch.join("objects"))
            .map_err(cannot("create a directory"))?;
        // Git runs in another directory, so its paths must be absolute.
        let scratch = fs::canonicalize(scratch).map_err(cannot("resolve paths"))?;
        let files = RepositoryFiles::find(top)?;
        let own_index = files.index;
        remove_left_copies(&scratch);
        // Several processes and threads may use the same scratch directory at a time.
        let name = format!(
            "index-{}-{}",
            std::process::id(),
            NEXT_COPY.fetch_add(1, Ordering::Relaxed)
        );
        let overlay = Self {
            top: top.into(),
            index: scratch.join(name),
            objects: scratch.join("objects"),
            alternates: alternates(&files.objects),
            programs: Programs::find(top),
        };
        match copy_with_mtime(&own_index, &overlay.index) {
            // A repository without files has no index yet.
            Err(error) if error.kind() == ErrorKind::NotFound && !own_index.exists() => {}
            copied => copied.map_err(cannot("copy the index"))?,
        }
        Ok(overlay)
    }

    /// Returns whether the index may have entries whose path contains one of `parts`.
    pub(super) fn may_track(&self, parts: &[&str]) -> bool {
        let Ok(bytes) = fs::read(&self.index) else {
            return false;
        };
        // Version 4 of the format stores only the end of a path that begins like the one before.
        bytes.get(4..8) == Some(&[0, 0, 0, 4])
            || parts
                .iter()
                .any(|part| memmem::find(&bytes, part.as_bytes()).is_some())
    }

    /// Returns the top directory of the working tree.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Runs git on the copy, and reads at most `max_bytes` of its output. Any exit code counts as
    /// success.
    pub(super) fn git(&self, args: &[&str], max_bytes: usize) -> Result<GitOutput, String> {
        let mut command = look::git_without(&self.programs, &self.top, args);
        command
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.alternates);
        command::run(&mut command, max_bytes, command::TIMEOUT).map_err(GitError::message)
    }

    /// Runs git on the copy, and reads at most `max_bytes` of its output. A non-zero exit code is
    /// an error; truncated output is not.
    pub(super) fn git_ok(&self, args: &[&str], max_bytes: usize) -> Result<GitOutput, String> {
        let output = self.git(args, max_bytes)?;
        if output.code == Some(0) || output.truncated {
            return Ok(output);
        }
        Err(output.error_message(args.first().unwrap_or(&"")))
    }
}

impl Drop for IndexOverlay {
    fn drop(&mut self) {
        let mut lock = self.index.clone().into_os_string();
        lock.push(".lock");
        for file in [self.index.as_os_str(), &lock] {
            // Either file may be missing.
            let _ = fs::remove_file(file);
        }
    }
}

/// Removes copies, and locks on them, of processes that no longer exist.
fn remove_left_copies(scratch: &Path) {
    let entries = fs::read_dir(scratch).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("index-"));
        let pid = pid.and_then(|rest| rest.split('-').next()?.parse().ok());
        if pid
            .and_then(Pid::from_raw)
            .is_some_and(|pid| matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the path that `git rev-parse` prints with these options.
fn git_path(top: &Path, options: &[&str]) -> Result<PathBuf, String> {
    let mut command = look::git(top, &[&["rev-parse"], options].concat());
    let output =
        command::run(&mut command, 64 << 10, command::TIMEOUT).map_err(GitError::message)?;
    if output.code != Some(0) {
        return Err(output.error_message("rev-parse"));
    }
    Ok(top.join(command::parse_path(&output.stdout)))
}

/// Creates a file that only the owner can read, or truncates it.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// Copies an index with its modification time. Git trusts an entry only if it is older than the
/// index, so a newer time would hide files that changed right after the index was written.
pub(super) fn copy_with_mtime(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let time = from.metadata()?.modified()?;
    let mut to = create_private(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(time)
}

/// Returns the repository's object directory and those that the user's environment adds, as a value
/// for `GIT_ALTERNATE_OBJECT_DIRECTORIES`. Git itself follows the alternates configured in a
/// repository.
pub(super) fn alternates(objects: &Path) -> OsString {
    let mut list = Vec::new();
    let bytes = objects.as_os_str().as_bytes();
    if bytes.contains(&b':') {
        list.push(b'"');
        for byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                list.push(b'\\');
            }
            list.push(*byte);
        }
        list.push(b'"');
    } else {
        list.extend_from_slice(bytes);
    }
    if let Some(more) =
        std::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES").filter(|more| !more.is_empty())
    {
        list.push(b':');
        list.extend_from_slice(more.as_bytes());
    }
    OsString::from_vec(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_path_with_a_colon_is_quoted() {
        assert_eq!(
            alternates(Path::new("/a b/objects")),
            OsStr::new("/a b/objects")
        );
        assert_eq!(
            alternates(Path::new("/a:\"b/objects")),
            OsStr::new(r#""/a:\"b/objects""#)
        );
    }
}
