//! Decodes an agent's output into [`Act`]s.
//!
//! Each vendor format has one decoder file, named after the program. The file's documentation names
//! the program, version and flags that produce the format. Output without a structured format goes
//! through [`plain_text`].

mod claude;
pub(crate) mod codex;
mod copilot;
mod cursor;
pub(crate) mod dialect;
mod droid;
mod failure_classifier;
mod gemini;
mod goose;
mod json_lines;
mod json_path;
mod line_counts;
mod message;
mod opencode;
mod pi;
mod plain_text;
pub(crate) mod reset_time;
mod tools;
mod usage;

use crate::engine::Act;
use crate::engine::failure::AgentFailure;
use crate::engine::plan::{Agent, DialectName};
use crate::engine::usage::SessionUsage;
use failure_classifier::FailureClassifier;
use json_lines::JsonLinesDecoder;
use plain_text::TextDecoder;
use regex::RegexSet;
use std::path::Path;

/// An agent's output format and its patterns, from which decoders are created. A loop builds it
/// once, because compiling patterns is slow.
#[derive(Clone)]
pub(crate) struct AgentProfile {
    dialect: DialectName,
    denials: Option<RegexSet>,
    errors: Option<RegexSet>,
    successes: Option<RegexSet>,
    failures: FailureClassifier,
}

impl AgentProfile {
    pub(crate) fn new(agent: &Agent) -> Self {
        Self {
            dialect: agent.dialect.clone(),
            denials: plain_text::pattern_set(&agent.denied),
            errors: plain_text::pattern_set(&agent.error_lines),
            successes: plain_text::pattern_set(&agent.success_lines),
            failures: FailureClassifier::new(&agent.failure_patterns),
        }
    }

    /// Creates a decoder for the output of one run.
    ///
    /// Paths inside `workspace` are shortened. Usage already counted in `sessions` is not counted
    /// again. `prompt` is called only if the decoder must recognize an echoed prompt.
    pub(crate) fn decoder(
        &self,
        workspace: &Path,
        sessions: &[SessionUsage],
        prompt: impl FnOnce() -> String,
    ) -> OutputDecoder {
        match JsonLinesDecoder::new(
            &self.dialect,
            self.failures.clone(),
            self.denials.clone(),
            workspace,
            sessions,
        ) {
            Some(decoder) => OutputDecoder::JsonLines(decoder),
            None => OutputDecoder::Text(TextDecoder::new(self.denials.clone(), prompt)),
        }
    }

    /// Returns whether a line of the agent's screen reports a denied permission.
    pub(crate) fn is_denial(&self, line: &str) -> bool {
        self.denials
            .as_ref()
            .is_some_and(|denials| denials.is_match(line))
    }

    /// Returns the last line of plain text that reports an error; `None` if there is none, or if a
    /// later line shows that the error has passed.
    pub(crate) fn reported_error<'t>(&self, text: &'t str) -> Option<&'t str> {
        let errors = self.errors.as_ref()?;
        let is_success = |line: &str| {
            let successes = self.successes.as_ref();
            successes.is_some_and(|successes| successes.is_match(line))
        };
        let mut since_success = text.lines().rev().take_while(|line| !is_success(line));
        since_success.find(|line| errors.is_match(line))
    }

    /// Returns the failure that a failed agent's last output describes; `None` if no pattern
    /// matches.
    pub(crate) fn failure_reason(&self, message: &str) -> Option<AgentFailure> {
        self.failures.classify(message)
    }
}

/// A function that receives an agent's acts as they are decoded.
pub(crate) type ActSink<'a> = dyn FnMut(Act<'_>) + 'a;

/// Decodes the output of one run, in pieces of any size.
pub(crate) enum OutputDecoder {
    /// Plain text: everything printed is the agent's message.
    Text(TextDecoder),
    /// Terminal output, which is passed on undecoded: only the terminal emulator understands it.
    Screen,
    /// One JSON object per line.
    JsonLines(JsonLinesDecoder),
}

impl OutputDecoder {
    /// Decodes the next bytes and emits their acts.
    pub(crate) fn feed(&mut self, bytes: &[u8], emit: &mut ActSink<'_>) {
        match self {
            Self::Text(decoder) => decoder.feed(bytes, emit),
            Self::Screen => emit(Act::TerminalOutput(bytes.into())),
            Self::JsonLines(decoder) => {
                emit(Act::RawOutput(bytes.into()));
                decoder.feed(bytes, emit);
            }
        }
    }

    /// Emits the remaining acts at the end of the output.
    pub(crate) fn finish(&mut self, emit: &mut ActSink<'_>) {
        match self {
            Self::Text(decoder) => decoder.finish(emit),
            Self::Screen => {}
            Self::JsonLines(decoder) => decoder.finish(emit),
        }
    }

    /// Returns whether a tool is known to be running. Silence then does not mean inactivity.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::JsonLines(decoder) if decoder.is_busy())
    }
}
