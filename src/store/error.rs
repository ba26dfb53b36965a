//! Errors of this module, with a hint for the user where there is one.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// Why a loop's directory could not be read or written.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// A system call failed.
    Io {
        /// A verb and a path: `open /home/…/journal.jsonl`.
        action: String,
        source: io::Error,
    },
    /// A newer ralph wrote this file. It was left unchanged.
    NewerVersion {
        path: PathBuf,
        /// The file's format version.
        version: u64,
    },
    /// A line other than the last one cannot be parsed.
    Damaged {
        path: PathBuf,
        /// The line number, counted from 1.
        line: usize,
        detail: String,
    },
    /// The file's first line is not a journal header.
    NotAJournal { path: PathBuf },
    /// The name breaks the rules for loop names.
    InvalidName { name: String },
    /// There is no loop of this name.
    NoSuchLoop {
        name: String,
        /// An existing loop whose name differs by a typo.
        nearest: Option<String>,
    },
}

impl StoreError {
    /// Suggests what the user can do about the error.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } if self.is_disk_full() => {
                Some("free some disk space, then try again".to_owned())
            }
            Self::Io { .. } if self.is_inaccessible() => Some(
                "ralph needs write access to its state directory; RALPH_STATE_DIR sets another one"
                    .to_owned(),
            ),
            Self::Io { .. } => None,
            Self::NewerVersion { .. } => Some("a newer ralph wrote it: upgrade this one".to_owned()),
            Self::Damaged { .. } | Self::NotAJournal { .. } => Some(
                "nothing was changed; inspect that line, or move the loop's directory away"
                    .to_owned(),
            ),
            Self::InvalidName { .. } => Some(
                "use at most 63 characters of a-z, 0-9, `_` and `-`, starting with a letter or digit"
                    .to_owned(),
            ),
            Self::NoSuchLoop {
                nearest: Some(nearest),
                ..
            } => Some(format!("did you mean `{nearest}`?")),
            Self::NoSuchLoop { nearest: None, .. } => {
                Some("`ralph ls` lists all loops".to_owned())
            }
        }
    }

    /// Whether a disk, quota or file size limit was reached.
    pub(crate) fn is_disk_full(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        )
    }

    /// Whether the location is at fault: it is not writable, or not the kind of file it should be.
    pub(crate) fn is_inaccessible(&self) -> bool {
        use ErrorKind::{IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            PermissionDenied | ReadOnlyFilesystem | NotADirectory | IsADirectory
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::NewerVersion { path, version } => {
                write!(
                    f,
                    "{} has format version {version}, but this ralph reads version 1",
                    path.display()
                )
            }
            Self::Damaged { path, line, detail } => {
                write!(f, "{} is damaged at line {line}: {detail}", path.display())
            }
            Self::NotAJournal { path } => write!(f, "{} is not a journal", path.display()),
            Self::InvalidName { name } => {
                write!(f, "`{}` is not a valid loop name", name.escape_debug())
            }
            Self::NoSuchLoop { name, .. } => write!(f, "no loop is named `{name}`"),
        }
    }
}

impl error::Error for StoreError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Adds to an I/O error what was being done.
pub(super) trait IoContext<T> {
    /// The error then reads "cannot `verb` `path`: …".
    fn context(self, verb: &str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, verb: &str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io {
            action: format!("{verb} {}", path.display()),
            source,
        })
    }
}
