//! How a new file comes to lie in the user's directory: whole or not at all, never through a link, and never
//! over something that was not meant.

use crate::lifecycle::failure::Failure;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Puts a text at this path, which is shown as `name`. True means that it took the place of another.
pub(crate) fn put(path: &Path, name: &str, text: &str, force: bool) -> Result<bool, Failure> {
    let old = match fs::symlink_metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(cannot_write(name, &error)),
    };
    match &old {
        Some(_) if !force => return Err(exists(name)),
        Some(old) if !old.is_file() => {
            let kind = match old.file_type() {
                kind if kind.is_symlink() => "a symbolic link",
                kind if kind.is_dir() => "a directory",
                _ => "no regular file",
            };
            return Err(Failure::usage(
                format!("{name} is {kind}"),
                "it is left as it is: move it away, then say it again",
            ));
        }
        _ => {}
    }
    match write(path, text, old.as_ref()) {
        Ok(()) => Ok(old.is_some()),
        // Another was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(name)),
        Err(error) => Err(cannot_write(name, &error)),
    }
}

fn exists(name: &str) -> Failure {
    Failure::usage(
        format!("{name} already exists (use --force to overwrite)"),
        "nothing was written; move it away if you want to keep both",
    )
}

fn cannot_write(name: &str, error: &io::Error) -> Failure {
    Failure::broken(format!("cannot write {name}: {error}"))
}

/// A draft beside it takes its place at once when it is complete.
fn write(path: &Path, text: &str, old: Option<&fs::Metadata>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)?;
    let done = file
        .write_all(text.as_bytes())
        .and_then(|()| old.map_or(Ok(()), |old| file.set_permissions(old.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            if old.is_some() {
                fs::rename(&draft, path)
            } else {
                rename_to_new(&draft, path)
            }
        });
    if done.is_err() {
        let _ = fs::remove_file(&draft);
    }
    done
}

fn rename_to_new(draft: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        // Not every file system can; that nothing was there a moment ago has to do.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(draft, path),
        other => other.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_that_came_in_between_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("PROMPT.md");
        fs::write(&path, "mine").unwrap();
        assert_eq!(
            write(&path, "new", None).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no draft is left"
        );
    }

    #[test]
    fn neither_links_nor_directories_are_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "theirs").unwrap();
        for (name, target) in [
            ("link", outside.as_path()),
            ("dangling", Path::new("nowhere")),
        ] {
            let link = dir.path().join(name);
            symlink(target, &link).unwrap();
            for force in [false, true] {
                assert!(put(&link, name, "new", force).is_err());
            }
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert!(put(dir.path(), "here", "new", true).is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
        assert!(!dir.path().join("nowhere").exists());
    }

    #[test]
    fn who_may_read_a_file_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("PROMPT.md");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(put(&path, "PROMPT.md", "new", true).unwrap());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
