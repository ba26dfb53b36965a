//! Writes a file in the user's directories atomically: never through a link, and over an existing
//! file only if asked.

use crate::lifecycle::error::CommandError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `text` to a file that messages call `name`. Returns whether an existing file was
/// replaced. Without `force`, an existing file is an error.
pub(crate) fn write_atomically(
    path: &Path,
    name: &str,
    text: &str,
    force: bool,
) -> Result<bool, CommandError> {
    let old = match fs::symlink_metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(cannot_write(name, &error)),
    };
    match &old {
        Some(_) if !force => return Err(already_exists(name)),
        Some(old) if !old.is_file() => {
            let kind = match old.file_type() {
                kind if kind.is_symlink() => "it is a symbolic link",
                kind if kind.is_dir() => "it is a directory",
                _ => "it is not a regular file",
            };
            return Err(CommandError::usage(
                format!("cannot write {name}: {kind}"),
                format!("move {name} away and try again"),
            ));
        }
        _ => {}
    }
    match write_and_rename(path, text, old.as_ref()) {
        Ok(()) => Ok(old.is_some()),
        // Another process created the file in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(name)),
        Err(error) => Err(cannot_write(name, &error)),
    }
}

fn already_exists(name: &str) -> CommandError {
    CommandError::usage(
        format!("{name} already exists (use --force to overwrite)"),
        "to keep the existing file, rename it first",
    )
}

fn cannot_write(name: &str, error: &io::Error) -> CommandError {
    CommandError::broken(format!("cannot write {name}: {error}"))
}

/// Writes a draft next to the file and renames the draft once it is complete.
fn write_and_rename(path: &Path, text: &str, old: Option<&fs::Metadata>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)?;
    let result = file
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
    if result.is_err() {
        let _ = fs::remove_file(&draft);
    }
    result
}

fn rename_to_new(draft: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag. There, the earlier check for an existing file
        // has to suffice.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(draft, path),
        other => other.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_created_in_the_meantime_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("PROMPT.md");
        fs::write(&path, "mine").unwrap();
        assert_eq!(
            write_and_rename(&path, "new", None).unwrap_err().kind(),
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
    fn links_and_directories_are_not_replaced() {
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
                assert!(write_atomically(&link, name, "new", force).is_err());
            }
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert!(write_atomically(dir.path(), "here", "new", true).is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
        assert!(!dir.path().join("nowhere").exists());
    }

    #[test]
    fn replacing_a_file_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("PROMPT.md");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(write_atomically(&path, "PROMPT.md", "new", true).unwrap());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
