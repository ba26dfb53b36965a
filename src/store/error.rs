//! Defines the store's errors, and hints for users.

use super::fold;
use crate::engine::display::{one_line, truncate_to_width};
use crate::os::regular_file;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// Maximum width of a parser's message, in columns.
const DETAIL_WIDTH: usize = 300;

/// An error in reading or writing a loop's directory.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// A system call on a file or directory failed.
    Io {
        /// The failed action as a verb and a path, such as `open /home/…/journal.jsonl`.
        action: String,
        source: io::Error,
    },
    /// A newer version of ralph wrote the file. The file was left unchanged.
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
    /// Another process has changed a journal, and ralph cannot undo the change.
    Altered {
        path: PathBuf,
        /// What is wrong with the file.
        detail: String,
    },
    /// The file's first line is not a journal header.
    NotAJournal { path: PathBuf },
    /// The name breaks the rules for loop names.
    InvalidName { name: String },
    /// No loop has this name.
    NoSuchLoop {
        name: String,
        /// An existing loop with a similar name; `None` if there is none.
        nearest: Option<String>,
    },
}

impl StoreError {
    /// Returns a hint for the user; `None` if there is nothing to suggest.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } if self.is_disk_full() => {
                Some("free some disk space, then try again".to_owned())
            }
            Self::Io { .. } if self.is_inaccessible() => Some(
                "make ralph's state directory writable, or set RALPH_STATE_DIR to another one"
                    .to_owned(),
            ),
            Self::Io { .. } => None,
            Self::NewerVersion { .. } => {
                Some("a newer ralph wrote this file: upgrade ralph".to_owned())
            }
            Self::Damaged { path, line, .. } => Some(format!(
                "ralph changed nothing; repair line {line}, or {}",
                removal(path)
            )),
            Self::NotAJournal { path } => Some(format!("ralph changed nothing; {}", removal(path))),
            Self::Altered { path, .. } if !is_readable(path) => {
                Some(format!("restore the file, or {}", removal(path)))
            }
            Self::Altered { path, .. } => Some(format!(
                "restore the file, or remove the loop: ralph rm {name}; to continue from what is left, delete {} and run `ralph resume {name}`",
                path.with_file_name("seal").display(),
                name = loop_name(path)
            )),
            Self::InvalidName { .. } => Some(
                "use at most 63 characters: a-z, 0-9, `_` and `-`, with a letter or digit first"
                    .to_owned(),
            ),
            Self::NoSuchLoop {
                nearest: Some(nearest),
                ..
            } => Some(format!("did you mean `{nearest}`?")),
            Self::NoSuchLoop { nearest: None, .. } => Some("`ralph ls` lists all loops".to_owned()),
        }
    }

    /// Returns whether the journal's content is unusable, however often it is read.
    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::NotAJournal { .. })
    }

    /// Returns whether the disk is full, or a quota or file size limit was reached.
    pub(crate) fn is_disk_full(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        )
    }

    /// Returns whether the path is the cause of the error: it is not writable, or not the expected
    /// kind of file.
    pub(crate) fn is_inaccessible(&self) -> bool {
        use ErrorKind::{IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let Self::Io { source, .. } = self else {
            return false;
        };
        regular_file::is_not_regular(source)
            || matches!(
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
                // The detail may quote the line, which can be of any length.
                let detail = truncate_to_width(&one_line(detail), DETAIL_WIDTH);
                write!(f, "{} is damaged at line {line}: {detail}", path.display())
            }
            Self::NotAJournal { path } => write!(f, "{} is not a journal", path.display()),
            Self::Altered { path, detail } => write!(
                f,
                "{} was changed by another process: {detail}",
                path.display()
            ),
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

/// Adds the failed action to an I/O error.
pub(super) trait IoContext<T> {
    /// Converts the error into a [`StoreError`] that reads "cannot `verb` `path`: …".
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

/// Returns whether the journal's first line is still there.
fn is_readable(journal: &Path) -> bool {
    let reader = fold::open_journal(journal);
    reader.is_ok_and(|mut reader| fold::read_header(&mut reader, journal).is_ok())
}

/// Returns the command that removes a loop whose journal is damaged.
fn removal(journal: &Path) -> String {
    let is_archived = journal
        .parent()
        .and_then(Path::parent)
        .is_some_and(|dir| dir.ends_with("archive"));
    if is_archived {
        "remove it: ralph rm --ended --force".into()
    } else {
        format!("remove the loop: ralph rm {} --force", loop_name(journal))
    }
}

/// Returns the name of the loop whose journal is at this path.
fn loop_name(journal: &Path) -> String {
    let dir = journal.parent().and_then(Path::file_name);
    dir.unwrap_or_default().to_string_lossy().into_owned()
}
