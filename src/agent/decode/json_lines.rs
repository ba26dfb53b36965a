//! One JSON object a line, in any dialect: lines are put together, read, and what a failure means is looked up.

use super::tools::Tools;
use super::{Reasons, Tell};
use super::{claude, codex, copilot, cursor, droid, gemini, goose, opencode, pi};
use crate::engine::Act;
use crate::engine::plain_text::plain;
use crate::engine::plan::Dialect;
use crate::engine::usage::Session;
use memchr::memchr;
use regex::{Regex, RegexSet};
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

/// A longer line holds a file or a picture, and nothing that a loop needs to know. It is in the log.
const LINE_MAX: usize = 16 << 20;
/// Which tool such a line is about stands near its beginning.
const HEAD: usize = 64 << 10;
/// A line beside the stream is shown up to here.
const NOISE_MAX: usize = 2000;

/// How agents say beside their stream that they try again.
static RETRYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^attempt \d+ failed|\bretrying (after|in)\b|^reconnecting")
        .expect("a constant pattern")
});

/// What one agent's events mean.
pub trait Speech {
    /// Takes an event; false if nothing is known of its kind.
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool;

    /// Takes the end of the stream.
    fn finish(&mut self, _tell: &mut Tell<'_>) {}

    /// The tools at work.
    fn tools(&mut self) -> &mut Tools;

    /// Whether a tool is at work.
    fn is_busy(&self) -> bool;
}

/// Reads a stream of events.
pub struct Stream {
    line: Vec<u8>,
    too_long: bool,
    speech: Box<dyn Speech>,
    reasons: Reasons,
    /// For the lines beside the stream.
    beside: Tools,
}

impl Stream {
    /// A reader of this dialect; none for text. Paths in the workspace are told without it; denials look like this; what
    /// these sessions have taken is known.
    pub fn new(
        dialect: Dialect,
        reasons: Reasons,
        denials: Option<RegexSet>,
        workspace: &Path,
        sessions: &[Session],
    ) -> Option<Self> {
        let beside = Tools::of(String::new(), denials.clone());
        let tools = Tools::of(workspace.to_string_lossy().into_owned(), denials);
        let speech: Box<dyn Speech> = match dialect {
            Dialect::Text => return None,
            Dialect::Claude => Box::new(claude::Claude::after(tools, sessions)),
            Dialect::Qwen => Box::new(claude::Claude::qwen(tools)),
            Dialect::Amp => Box::new(claude::Claude::amp(tools)),
            Dialect::Codex => Box::new(codex::Codex::after(tools, sessions)),
            Dialect::Gemini => Box::new(gemini::Gemini::new(tools)),
            Dialect::Opencode => Box::new(opencode::Opencode::new(tools)),
            Dialect::Copilot => Box::new(copilot::Copilot::new(tools)),
            Dialect::Droid => Box::new(droid::Droid::new(tools)),
            Dialect::Pi => Box::new(pi::Pi::new(tools)),
            Dialect::Cursor => Box::new(cursor::Cursor::new(tools)),
            Dialect::Goose => Box::new(goose::Goose::new(tools)),
        };
        Some(Self {
            line: Vec::new(),
            too_long: false,
            speech,
            reasons,
            beside,
        })
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8], tell: &mut Tell<'_>) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.line.is_empty() && !self.too_long {
                self.read(&bytes[..end], tell);
            } else {
                self.keep(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.too_long) {
                    self.speech
                        .tools()
                        .end_unread(&String::from_utf8_lossy(&line), tell);
                    tell(Act::Strange);
                } else {
                    self.read(&line, tell);
                }
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    pub(crate) fn finish(&mut self, tell: &mut Tell<'_>) {
        if !self.line.is_empty() || self.too_long {
            self.feed(b"\n", tell);
        }
        let reasons = &self.reasons;
        self.speech.finish(&mut |act| tell(reasons.explain(act)));
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.speech.is_busy()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_long {
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LINE_MAX {
            self.too_long = true;
            self.line.truncate(HEAD);
            self.line.shrink_to_fit();
        }
    }

    fn read(&mut self, line: &[u8], tell: &mut Tell<'_>) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let reasons = &self.reasons;
        match serde_json::from_slice::<Value>(line) {
            Ok(event) if event.is_object() => {
                if !self
                    .speech
                    .event(&event, &mut |act| tell(reasons.explain(act)))
                {
                    tell(Act::Strange);
                }
            }
            _ if line.starts_with(b"{") => tell(Act::Strange),
            _ => {
                let text = String::from_utf8_lossy(&line[..line.len().min(NOISE_MAX)]);
                let text = plain(&text);
                if RETRYING.is_match(&text) {
                    tell(Act::Retrying(text.as_ref().into()));
                } else if !self.beside.denied(&text, tell) {
                    tell(Act::Noise(text.as_ref().into()));
                }
            }
        }
    }
}
