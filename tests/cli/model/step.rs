//! One answer of the scripted model: text, a tool call, or an error of the service.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One answer.
#[derive(Clone, Default)]
pub(crate) struct Step {
    pub(super) text: String,
    pub(super) tool: Option<(String, Value)>,
    pub(super) tokens: Tokens,
    pub(super) headers: Vec<(String, String)>,
    /// The status of a refusal, and what it says.
    pub(super) status: Option<u16>,
    pub(super) body: Value,
    /// A file without which it does not come.
    pub(super) gate: Option<PathBuf>,
}

/// What an answer took. No kind is part of another.
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

/// The model says this, and has nothing more to do.
pub(crate) fn say(text: &str) -> Step {
    Step {
        text: text.into(),
        ..Step::default()
    }
}

/// The model uses a tool of its client.
pub(crate) fn use_tool(name: &str, input: Value) -> Step {
    Step {
        tool: Some((name.into(), input)),
        ..Step::default()
    }
}

/// The service refuses, in these words.
pub(crate) fn refuse(status: u16, kind: &str, message: &str) -> Step {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    Step {
        status: Some(status),
        body,
        ..Step::default()
    }
}

impl Step {
    /// Says something before it uses its tool.
    pub(crate) fn with_text(self, text: &str) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// It takes so many tokens.
    pub(crate) fn with_tokens(self, tokens: Tokens) -> Self {
        Self { tokens, ..self }
    }

    /// It comes once this file is there.
    pub(crate) fn when_exists(self, gate: &Path) -> Self {
        Self {
            gate: Some(gate.to_owned()),
            ..self
        }
    }

    /// With one more line in the head of the reply.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With one more word on the error of a refusal.
    pub(crate) fn detail(mut self, name: &str, value: Value) -> Self {
        self.body["error"][name] = value;
        self
    }
}
