//! Opens files in directories that an agent can write to. The agent may have replaced a file with a
//! FIFO, which would block the open, with a device, with a symbolic link to anywhere, or with a file
//! that does not fit into memory. `tests/it/house.rs` keeps other ways to open a file out of the
//! modules that work in such directories.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. `follow` permits a symbolic link; pass it only for paths that
/// the user named.
pub(crate) fn open(path: &Path, follow: bool) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, follow)
}

/// Reads at most `max` bytes of a regular file. Returns them, and whether the file is longer.
/// `follow` is as in [`open`].
pub(crate) fn read(path: &Path, max: u64, follow: bool) -> io::Result<(Vec<u8>, bool)> {
    let file = open(path, follow)?;
    // One byte more than the file has: the read that finds the end then needs no larger buffer.
    let len = file.metadata()?.len().min(max) as usize;
    let mut bytes = Vec::with_capacity(len + 1);
    file.take(max + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() as u64 > max;
    bytes.truncate(max as usize);
    Ok((bytes, more))
}

/// The longest text that [`read_text`] reads, in bytes.
const TEXT_MAX: u64 = 64 << 20;

/// Reads a regular file that must be valid UTF-8 and have at most [`TEXT_MAX`] bytes. `follow` is
/// as in [`open`].
pub(crate) fn read_text(path: &Path, follow: bool) -> io::Result<String> {
    let (bytes, more) = read(path, TEXT_MAX, follow)?;
    if more {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))
}

/// Opens a regular file for reading and writing without truncating it. A new file gets mode 0600.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_with(&mut options, path, false)
}

/// Opens an empty regular file for reading and writing. A new file gets mode 0600, and an existing
/// one is truncated.
pub(crate) fn truncate(path: &Path) -> io::Result<File> {
    let file = create(path)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a regular file for reading and appending. A new file gets mode 0600.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    open_with(&mut options, path, false)
}

/// Opens an existing regular file for reading and appending.
pub(crate) fn append_existing(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).append(true), path, false)
}

/// Creates a file with mode 0600, and fails if the path exists.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    open_with(&mut options, path, false)
}

fn open_with(options: &mut OpenOptions, path: &Path, follow: bool) -> io::Result<File> {
    let link = if follow { 0 } else { libc::O_NOFOLLOW };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | link;
    let opened = options.mode(0o600).custom_flags(flags).open(path);
    require_regular(opened.map_err(|error| match error.raw_os_error() {
        // A symbolic link; a FIFO without a reader, or a socket; a directory opened for writing.
        Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => not_regular(),
        _ => error,
    })?)
}

/// Returns `file` if it is a regular file, and an error otherwise.
pub(crate) fn require_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_regular())
    }
}

/// Returns whether `error` means that a path names something other than a regular file.
pub(crate) fn is_not_regular(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotRegular>)
}

fn not_regular() -> io::Error {
    io::Error::other(NotRegular)
}

#[derive(Debug)]
struct NotRegular;

impl std::error::Error for NotRegular {}

impl std::fmt::Display for NotRegular {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a regular file")
    }
}

/// Returns whether `path` still names this open file.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(current) => Ok((opened.dev(), opened.ino()) == (current.dev(), current.ino())),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

/// Returns whether `name` in `dir` is a link, or lies behind one, that leads out of `dir`.
pub(crate) fn leads_outside(dir: &Path, name: &str) -> bool {
    let path = dir.join(name);
    let real = |path: &Path| path.canonicalize().ok();
    match (real(dir), real(&path)) {
        (Some(dir), Some(path)) => !path.starts_with(dir),
        // It does not exist yet, or is a link to nothing.
        _ => path.is_symlink(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "words").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path("pipe"))
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(
            read(&path("file"), 5, false).unwrap(),
            (b"words".to_vec(), false)
        );
        assert_eq!(
            read(&path("file"), 4, false).unwrap(),
            (b"word".to_vec(), true)
        );
        assert_eq!(read(&path("link"), 9, true).unwrap().0, b"words");
        assert!(read(&path("link"), 9, false).is_err());
        assert!(read(&path("pipe"), 9, true).is_err());
        assert!(read(dir.path(), 9, true).is_err());
        for open in [create, truncate, append, append_existing] {
            for name in ["link", "pipe", "."] {
                let error = open(&path(name)).unwrap_err();
                assert!(is_not_regular(&error), "{name}: {error}");
            }
        }
        assert_eq!(read_text(&path("file"), false).unwrap(), "words");
        File::create(path("long"))
            .unwrap()
            .set_len(TEXT_MAX + 1)
            .unwrap();
        assert!(read_text(&path("long"), false).is_err());
        assert!(append_existing(&path("new")).is_err());
        assert!(create_new(&path("file")).is_err());
        assert!(create(&path("new")).is_ok());
        assert_eq!(
            truncate(&path("file")).unwrap().metadata().unwrap().len(),
            0
        );
    }

    #[test]
    fn a_file_is_known_by_its_inode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = create(&path).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        create(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        assert!(!is_at(&file, &path.join("below")).unwrap());
    }
}
