//! One JSON object a line, in any dialect: lines are put together, read, and what a failure means is looked up.

use super::{Reasons, Tell, claude};
use crate::engine::Act;
use crate::engine::plain::plain;
use crate::engine::plan::Dialect;
use memchr::memchr;
use serde_json::Value;
use std::path::Path;

/// A longer line holds a file or a picture, and nothing that a loop needs to know. It is in the log.
const LINE_MAX: usize = 4 << 20;
/// A line beside the stream is shown up to here.
const NOISE_MAX: usize = 2000;

/// What one agent's events mean.
pub trait Speech {
    /// Takes an event; false if nothing is known of its kind.
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool;

    /// Takes the end of the stream.
    fn finish(&mut self, _tell: &mut Tell<'_>) {}

    /// Whether a tool is at work.
    fn is_busy(&self) -> bool;
}

/// Reads a stream of events.
pub struct Stream {
    line: Vec<u8>,
    too_long: bool,
    speech: Box<dyn Speech>,
    reasons: Reasons,
}

impl Stream {
    /// A reader of this dialect; none for text. Paths in the workspace are told without it.
    pub fn new(dialect: Dialect, reasons: Reasons, workspace: &Path) -> Option<Self> {
        let workspace = workspace.to_string_lossy().into_owned();
        let speech: Box<dyn Speech> = match dialect {
            Dialect::Claude => Box::new(claude::Claude::new(workspace)),
            _ => return None,
        };
        Some(Self { line: Vec::new(), too_long: false, speech, reasons })
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], tell: &mut Tell<'_>) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.line.is_empty() && !self.too_long {
                self.read(&bytes[..end], tell);
            } else {
                self.keep(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.too_long) {
                    tell(Act::Strange);
                } else {
                    self.read(&line, tell);
                }
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    pub(super) fn finish(&mut self, tell: &mut Tell<'_>) {
        if !self.line.is_empty() || self.too_long {
            self.feed(b"\n", tell);
        }
        let reasons = &self.reasons;
        self.speech.finish(&mut |act| tell(reasons.explain(act)));
    }

    pub(super) fn is_busy(&self) -> bool {
        self.speech.is_busy()
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.too_long |= self.line.len() + bytes.len() > LINE_MAX;
        if self.too_long {
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
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
                if !self.speech.event(&event, &mut |act| tell(reasons.explain(act))) {
                    tell(Act::Strange);
                }
            }
            _ if line.starts_with(b"{") => tell(Act::Strange),
            _ => {
                let text = String::from_utf8_lossy(&line[..line.len().min(NOISE_MAX)]);
                tell(Act::Noise(plain(&text).into_owned().into()));
            }
        }
    }
}
