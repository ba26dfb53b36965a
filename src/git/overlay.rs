//! How git is made to work on a copy of the index and to write its objects outside the repository.

use super::command;
use super::command::{Output, Trouble};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers the copies of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A repository with a throw-away index in front of it.
pub(crate) struct Overlay {
    top: PathBuf,
    index: PathBuf,
    objects: PathBuf,
    alternates: OsString,
}

impl Overlay {
    /// Copies the index of the repository at `top` into `scratch`.
    pub(crate) fn new(top: &Path, scratch: &Path) -> Result<Self, String> {
        let cannot = |what: &str| {
            let what = format!("cannot {what} in {}", scratch.display());
            move |error: io::Error| format!("{what}: {error}")
        };
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private
            .create(scratch.join("objects"))
            .map_err(cannot("make a directory"))?;
        // Git runs in another directory: its paths must be absolute.
        let scratch = fs::canonicalize(scratch).map_err(cannot("look"))?;
        let alternates = alternates(&git_path(top, "objects")?);
        let own_index = git_path(top, "index")?;
        // Two readers of one loop may ask at the same time.
        let name = format!(
            "index-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let overlay = Self {
            top: top.into(),
            index: scratch.join(name),
            objects: scratch.join("objects"),
            alternates,
        };
        match copy(&own_index, &overlay.index) {
            // A repository without any file has no index yet.
            Err(error) if error.kind() == ErrorKind::NotFound && !own_index.exists() => {}
            copied => copied.map_err(cannot("copy the index"))?,
        }
        Ok(overlay)
    }

    /// The top of the working tree.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Runs git on the copy, whatever its exit code.
    pub(crate) fn git(&self, args: &[&str], cap: usize) -> Result<Output, String> {
        let mut command = command::git(&self.top);
        command
            .args(args)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.alternates);
        command::run(&mut command, cap, command::PATIENCE).map_err(Trouble::sentence)
    }

    /// Runs git on the copy; a failure is an error, a cut is not.
    pub(crate) fn git_ok(&self, args: &[&str], cap: usize) -> Result<Output, String> {
        let output = self.git(args, cap)?;
        if output.code == Some(0) || output.cut {
            return Ok(output);
        }
        Err(output.complaint(args.first().unwrap_or(&"")))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let mut lock = self.index.clone().into_os_string();
        lock.push(".lock");
        for file in [self.index.as_os_str(), &lock] {
            // Neither needs to be there.
            let _ = fs::remove_file(file);
        }
    }
}

/// Where git keeps `what` of the repository at `top`: linked worktrees have an index of their own.
fn git_path(top: &Path, what: &str) -> Result<PathBuf, String> {
    let mut command = command::git(top);
    command.args(["rev-parse", "--git-path", what]);
    let output =
        command::run(&mut command, 64 << 10, command::PATIENCE).map_err(Trouble::sentence)?;
    if output.code != Some(0) {
        return Err(output.complaint("rev-parse"));
    }
    Ok(top.join(command::path_of(&output.stdout)))
}

/// Copies an index with its time: git trusts an entry only if it is older than the index, so a younger
/// copy would hide a file that changed right after the index was written.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let time = from.metadata()?.modified()?;
    let mut to = File::create(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(time)
}

/// The repository's own objects, and what the user's environment adds. Git follows the alternates that
/// are named inside a repository by itself.
fn alternates(objects: &Path) -> OsString {
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
