//! The error type of the library.

use crate::lifecycle::error::CommandError;
use crate::{config, runner, store};
use std::{fmt, io};

/// Why a loop could not run at all. A loop that ran returns a [`Report`](crate::Report) instead,
/// which describes how it ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The loop's configuration is invalid. Nothing was started or changed.
    Usage {
        /// The problem, with the name of the setting, file or program.
        what: String,
        /// The way to fix the problem.
        hint: String,
    },
    /// The system failed, for example because the journal could not be written.
    Broken {
        /// The problem.
        what: String,
        /// The way to fix the problem. May be empty.
        hint: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { what, hint } | Self::Broken { what, hint } if !hint.is_empty() => {
                write!(f, "{what} ({hint})")
            }
            Self::Usage { what, .. } | Self::Broken { what, .. } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        let what = error.message().to_owned();
        let hint = error.hint().unwrap_or_default().to_owned();
        if error.is_usage() {
            Self::Usage { what, hint }
        } else {
            Self::Broken { what, hint }
        }
    }
}

impl From<config::ConfigError> for Error {
    fn from(error: config::ConfigError) -> Self {
        CommandError::from(error).into()
    }
}

impl From<store::StoreError> for Error {
    fn from(error: store::StoreError) -> Self {
        CommandError::from(error).into()
    }
}

impl From<runner::RunnerError> for Error {
    fn from(error: runner::RunnerError) -> Self {
        CommandError::from(error).into()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        CommandError::broken(error).into()
    }
}
