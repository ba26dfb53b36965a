//! How much room a directory takes on its disk.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bytes that everything below a path takes, each file once. What cannot be read counts as nothing.
pub fn usage(path: &Path) -> u64 {
    let (mut sum, mut seen, mut left) = (0, HashSet::new(), vec![path.to_owned()]);
    while let Some(path) = left.pop() {
        let Ok(data) = fs::symlink_metadata(&path) else {
            continue;
        };
        if data.nlink() > 1 && !data.is_dir() && !seen.insert((data.dev(), data.ino())) {
            continue;
        }
        sum += data.blocks() * 512;
        if data.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once_and_links_are_not_followed() {
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
