//! Opens files in directories that an agent can write to. The agent may have replaced a file with a
//! FIFO, which would block the open, or with a symbolic link to anywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading. `follow` permits a symbolic link; pass it only for paths that
/// the user named.
pub(crate) fn open(path: &Path, follow: bool) -> io::Result<File> {
    let link = if follow { 0 } else { libc::O_NOFOLLOW };
    require_regular(
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | link)
            .open(path)?,
    )
}

/// Reads at most `max` bytes of a regular file. Returns them, and whether the file is longer.
/// `follow` is as in [`open`].
pub(crate) fn read(path: &Path, max: u64, follow: bool) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    open(path, follow)?.take(max + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() as u64 > max;
    bytes.truncate(max as usize);
    Ok((bytes, more))
}

/// Opens a regular file for reading and writing without truncating it. A new file gets mode 0600.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags);
    require_regular(options.open(path)?)
}

/// Returns `file` if it is a regular file, and an error otherwise.
pub(crate) fn require_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
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
        assert!(create(&path("link")).is_err());
        assert!(create(&path("pipe")).is_err());
        assert!(create(&path("new")).is_ok());
    }
}
