//! What can go wrong with a loop's files, and what a person can do about it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// Why a loop's directory could not be read or written.
#[derive(Debug)]
pub enum Error {
    /// The system refused.
    Io {
        /// A verb and a path: `open /home/…/journal.jsonl`.
        what: String,
        /// Its reason.
        source: io::Error,
    },
    /// A later ralph wrote this journal. It was left as it is.
    Newer {
        /// The journal.
        path: PathBuf,
        /// The version of its format.
        version: u64,
    },
    /// A line that is not the last one cannot be read.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        detail: String,
    },
    /// The first line is not a journal's.
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// No loop can be called this.
    BadName {
        /// What was asked for.
        name: String,
    },
    /// No loop is called this.
    NoSuchLoop {
        /// What was asked for.
        name: String,
        /// A loop whose name differs by a slip of the finger.
        nearest: Option<String>,
    },
}

impl Error {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } if self.is_disk_full() => Some("free some disk space, then try again".to_owned()),
            Self::Io { .. } if self.is_refused() => Some(
                "ralph's own files must be yours to write; RALPH_STATE_DIR chooses another place for them"
                    .to_owned(),
            ),
            Self::Io { .. } => None,
            Self::Newer { .. } => Some("a later ralph wrote it: upgrade this one".to_owned()),
            Self::Damaged { .. } | Self::NotAJournal { .. } => {
                Some("nothing was changed; look at that line, or put the loop's directory away".to_owned())
            }
            Self::BadName { .. } => Some(
                "a name has up to 63 of a-z, 0-9, `_` and `-`, and begins with a letter or a digit"
                    .to_owned(),
            ),
            Self::NoSuchLoop { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::NoSuchLoop { nearest: None, .. } => {
                Some("`ralph ls` shows the loops that exist".to_owned())
            }
        }
    }

    /// Whether no more bytes fit: the disk, a quota or a file size limit.
    pub fn is_disk_full(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        )
    }

    /// Whether it is the place that is wrong: not to be written, or something else in a directory's stead.
    pub fn is_refused(&self) -> bool {
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, source } => write!(f, "cannot {what}: {source}"),
            Self::Newer { path, version } => {
                write!(
                    f,
                    "{} has version {version}, this ralph reads version 1",
                    path.display()
                )
            }
            Self::Damaged { path, line, detail } => {
                write!(f, "{} is damaged at line {line}: {detail}", path.display())
            }
            Self::NotAJournal { path } => write!(f, "{} is not a journal", path.display()),
            Self::BadName { name } => {
                write!(f, "`{}` cannot be a loop's name", name.escape_debug())
            }
            Self::NoSuchLoop { name, .. } => write!(f, "no loop is called `{name}`"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Says what was being done when the system refused.
pub(super) trait Doing<T> {
    /// `verb` with `path` is what was being done.
    fn doing(self, verb: &str, path: &Path) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, verb: &str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            what: format!("{verb} {}", path.display()),
            source,
        })
    }
}
