//! Why a loop could not be run: what is wrong, and what would be right.

use crate::lifecycle::failure::Failure;
use crate::{config, runner, store};
use std::{fmt, io};

/// Why a loop could not be run at all. How a loop that ran has ended is in its [`Report`](crate::Report).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be done. Nothing was started, nothing is lost.
    Usage {
        /// What is wrong, by the name of the setting, file or program.
        what: String,
        /// What would be right.
        hint: String,
    },
    /// Something broke: a journal that cannot be written, a system that refuses.
    Broken {
        /// What.
        what: String,
        /// What may help; empty if nobody knows.
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

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let (is_usage, what, hint) = failure.into_parts();
        let hint = hint.unwrap_or_default();
        if is_usage {
            Self::Usage { what, hint }
        } else {
            Self::Broken { what, hint }
        }
    }
}

impl From<config::Wrong> for Error {
    fn from(wrong: config::Wrong) -> Self {
        Failure::from(wrong).into()
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<runner::Error> for Error {
    fn from(error: runner::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Failure::broken(error).into()
    }
}
