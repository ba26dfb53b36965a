//! What went wrong at the door: an error, a hint, and the exit code.

use crate::{config, runner, store, ui};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::Write;

/// An error as a person sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: i32,
    error: String,
    hint: Option<String>,
}

impl Failure {
    /// Bad words: nothing was started, nothing is lost.
    pub(crate) fn usage(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: 2,
            error: error.into(),
            hint: Some(hint.into()),
        }
    }

    /// Something broke.
    pub(crate) fn broken(error: impl Display) -> Self {
        Self {
            code: 1,
            error: error.to_string(),
            hint: None,
        }
    }

    /// Something broke, and this may help.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the words were bad, what is wrong, and what may help.
    pub(crate) fn into_parts(self) -> (bool, String, Option<String>) {
        (self.code == 2, self.error, self.hint)
    }

    /// As text that another process can pass on.
    pub(crate) fn to_pass_on(&self) -> String {
        json!({ "code": self.code, "error": self.error, "hint": self.hint }).to_string()
    }

    /// What another process failed with.
    pub(crate) fn passed_on(text: &str) -> Self {
        let told: Value = serde_json::from_str(text).unwrap_or_default();
        let code = told["code"]
            .as_i64()
            .and_then(|code| i32::try_from(code).ok())
            .unwrap_or(1);
        let error = told["error"]
            .as_str()
            .unwrap_or("the supervisor could not begin")
            .to_owned();
        Self {
            code,
            error,
            hint: told["hint"].as_str().map(str::to_owned),
        }
    }

    /// In one line, where there is no room for two.
    pub(crate) fn in_words(&self) -> String {
        let hint = self
            .hint
            .as_ref()
            .map(|hint| format!(" ({hint})"))
            .unwrap_or_default();
        format!("{}{hint}", self.error)
    }

    /// What is wrong.
    pub(crate) fn error(&self) -> &str {
        &self.error
    }

    /// Prints it, and says what to exit with.
    pub(crate) fn report(self) -> i32 {
        let hint = self
            .hint
            .map(|hint| format!("\n  hint: {hint}"))
            .unwrap_or_default();
        complain(&format!("ralph: error: {}{hint}", self.error));
        self.code
    }
}

impl From<config::Wrong> for Failure {
    fn from(wrong: config::Wrong) -> Self {
        Self::usage(wrong.error, wrong.hint)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let usage = error.is_refused() || !matches!(error, store::Error::Io { .. });
        Self {
            code: if usage { 2 } else { 1 },
            hint: error.hint(),
            error: error.to_string(),
        }
    }
}

impl From<runner::Error> for Failure {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Store(error) => Self {
                code: 1,
                ..error.into()
            },
            runner::Error::World(error) => Self::broken(error),
        }
    }
}

/// Prints what was asked for; an answer that cannot be written is a failure.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    ui::answer(text).map_err(|error| Failure::broken(format!("cannot write the answer: {error}")))
}

/// Says something that is not an error.
pub(crate) fn warn(words: impl Display) {
    complain(&format!("ralph: warning: {words}"));
}

/// A standard error that cannot be written must not take anything with it.
fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}
