//! One answer of the scripted model: text, a tool call, or an error of the service.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One answer of the model.
#[derive(Clone, Default)]
pub(crate) struct Step {
    pub(super) text: String,
    pub(super) tool: Option<(String, Value)>,
    pub(super) tokens: Tokens,
    pub(super) headers: Vec<(String, String)>,
    /// The HTTP status and the message of an error; `None` for a normal answer.
    pub(super) status: Option<u16>,
    pub(super) body: Value,
    /// The answer is delayed until this file exists.
    pub(super) gate: Option<PathBuf>,
}

/// The tokens an answer uses. The kinds do not overlap.
#[derive(Clone, Copy)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
}

impl Tokens {
    pub(super) const NONE: Self = Self {
        input: 0,
        cache_read: 0,
        cache_write: 0,
        output: 0,
    };
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 1000,
            cache_read: 0,
            cache_write: 0,
            output: 50,
        }
    }
}

/// The model answers with text and is finished.
pub(crate) fn say(text: &str) -> Step {
    Step {
        text: text.into(),
        ..Step::default()
    }
}

/// The model calls one of its client's tools.
pub(crate) fn use_tool(name: &str, input: Value) -> Step {
    Step {
        tool: Some((name.into(), input)),
        ..Step::default()
    }
}

/// The service returns an error.
pub(crate) fn refuse(status: u16, kind: &str, message: &str) -> Step {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    Step {
        status: Some(status),
        body,
        ..Step::default()
    }
}

impl Step {
    /// Adds text before the tool call.
    pub(crate) fn with_text(self, text: &str) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// Sets the tokens that the answer reports.
    pub(crate) fn with_tokens(self, tokens: Tokens) -> Self {
        Self { tokens, ..self }
    }

    /// Delays the answer until this file exists.
    pub(crate) fn when_exists(self, gate: &Path) -> Self {
        Self {
            gate: Some(gate.to_owned()),
            ..self
        }
    }

    /// Adds a header to the reply.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a field to the error object.
    pub(crate) fn detail(mut self, name: &str, value: Value) -> Self {
        self.body["error"][name] = value;
        self
    }
}
