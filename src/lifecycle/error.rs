//! The error of commands and library calls: a message, a hint and an exit code.

#[cfg(feature = "cli")]
use crate::agent::redact::Redactor;
use crate::engine::ExitCode;
use crate::{config, runner, store};
use serde_json::{Value, json};
use std::fmt::Display;

/// Redacts a message for people. An argument, a path or a setting in it may contain a secret, and
/// messages end up in logs of CI systems.
#[cfg(feature = "cli")]
pub(crate) fn redact_message(message: &str) -> String {
    Redactor::from_env().redact_text(message).into_owned()
}

/// An error to show to the user.
#[derive(Debug)]
pub(crate) struct CommandError {
    exit_code: ExitCode,
    message: String,
    hint: Option<String>,
}

impl CommandError {
    /// Returns an error for an invalid request. Nothing was started or changed.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit_code: ExitCode::Usage,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Returns an error for a failure of the system or of ralph itself.
    pub(crate) fn broken(message: impl Display) -> Self {
        Self {
            exit_code: ExitCode::Failure,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Creates the error for a wait that ran out of time.
    pub(crate) fn timed_out(message: impl Display) -> Self {
        Self {
            exit_code: ExitCode::TimedOut,
            ..Self::broken(message)
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn is_usage(&self) -> bool {
        self.exit_code == ExitCode::Usage
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        self.exit_code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the message and the hint on one line.
    pub(crate) fn one_line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    /// Serializes the error as JSON, so that a supervisor can pass it to the command that launched
    /// it.
    pub(crate) fn to_json(&self) -> String {
        json!({ "code": self.exit_code.code(), "error": self.message, "hint": self.hint })
            .to_string()
    }

    /// Parses an error that [`CommandError::to_json`] wrote. Returns a generic error if `text` is
    /// invalid.
    pub(crate) fn from_json(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let exit_code = value["code"]
            .as_i64()
            .and_then(|code| i32::try_from(code).ok())
            .map_or(ExitCode::Failure, ExitCode::from_code);
        let message = value["error"]
            .as_str()
            .unwrap_or("the background supervisor could not start")
            .to_owned();
        Self {
            exit_code,
            message,
            hint: value["hint"].as_str().map(str::to_owned),
        }
    }
}

impl From<config::ConfigError> for CommandError {
    fn from(error: config::ConfigError) -> Self {
        Self::usage(error.message, error.hint)
    }
}

impl From<store::StoreError> for CommandError {
    fn from(error: store::StoreError) -> Self {
        let usage = error.is_inaccessible() || !matches!(error, store::StoreError::Io { .. });
        Self {
            exit_code: if usage {
                ExitCode::Usage
            } else {
                ExitCode::Failure
            },
            hint: error.hint(),
            message: error.to_string(),
        }
    }
}

impl From<runner::RunnerError> for CommandError {
    fn from(error: runner::RunnerError) -> Self {
        match error {
            runner::RunnerError::Store(error) => Self {
                exit_code: ExitCode::Failure,
                ..error.into()
            },
            runner::RunnerError::Io(error) => Self::broken(error),
            runner::RunnerError::LeaseExpired => Self::broken(
                "the lease of this loop has expired, so another machine may be running it",
            )
            .with_hint("`ralph fleet status` shows where it runs"),
        }
    }
}
