//! Measures the disk space that a directory takes, and checks that it can be written to.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the disk space used by a path and everything below it, in bytes. Hard-linked files count
/// once, symbolic links are not followed, and unreadable entries count as zero.
pub(crate) fn usage(path: &Path) -> u64 {
    let (mut total, mut seen, mut queue) = (0, HashSet::new(), vec![path.to_owned()]);
    while let Some(path) = queue.pop() {
        let Ok(data) = fs::symlink_metadata(&path) else {
            continue;
        };
        if data.nlink() > 1 && !data.is_dir() && !seen.insert((data.dev(), data.ino())) {
            continue;
        }
        total += data.blocks() * 512;
        if data.is_dir() {
            queue.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    total
}

/// Returns an error if this process may not create files in `dir`: because of its mode, or because
/// its file system is read-only.
pub(crate) fn check_writable(dir: &Path) -> std::io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(dir, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_links_count_once_and_symbolic_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("sub/two"));
        fs::write(&one, vec![1; 100_000]).unwrap();
        let alone = usage(dir.path());
        assert!(alone >= 100_000, "{alone}");
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::hard_link(&one, &two).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("root")).unwrap();
        assert!(usage(dir.path()) < alone + 50_000);
        assert_eq!(usage(&dir.path().join("none")), 0);
    }
}
