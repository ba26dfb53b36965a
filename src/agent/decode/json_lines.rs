//! Decodes streams of one JSON object per line: assembles lines, parses them, and passes each event
//! to the decoder for the agent's dialect.

use super::ActSink;
use super::dialect::Dialect;
use super::failure_classifier::FailureClassifier;
use super::tools::ToolTracker;
use crate::engine::Act;
use crate::engine::plain_text::plain;
use crate::engine::plan::DialectName;
use crate::engine::usage::SessionUsage;
use memchr::memchr;
use regex::{Regex, RegexSet};
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

/// Maximum length of a line that is parsed, in bytes. A longer line contains a file or an image and
/// nothing that a loop needs; the log still has it in full.
const LINE_MAX: usize = 16 << 20;
/// Only the first `LONG_LINE_PREFIX` bytes of a longer line are kept, and searched for the ID of
/// the tool whose result the line is.
const LONG_LINE_PREFIX: usize = 64 << 10;
/// Only the first `SIDE_OUTPUT_MAX` bytes of a non-JSON line are shown.
const SIDE_OUTPUT_MAX: usize = 2000;

/// Matches lines outside the JSON stream in which agents announce a retry.
static RETRYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^attempt \d+ failed|\bretrying (after|in)\b|^reconnecting")
        .expect("the pattern is valid")
});

/// Decodes the events of one dialect into acts.
pub(super) trait EventDecoder {
    /// Decodes an event and emits its acts. Returns `false` if the event type is unknown.
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool;

    /// Emits the remaining acts at the end of the stream.
    fn finish(&mut self, _emit: &mut ActSink<'_>) {}

    fn tools(&mut self) -> &mut ToolTracker;

    /// Returns whether a tool is running.
    fn is_busy(&self) -> bool;
}

pub(crate) struct JsonLinesDecoder {
    line: Vec<u8>,
    line_too_long: bool,
    events: Box<dyn EventDecoder>,
    failures: FailureClassifier,
    /// Finds denials in lines that are not JSON.
    side_output: ToolTracker,
}

impl JsonLinesDecoder {
    /// Creates a decoder for a dialect; `None` for plain text. The parameters are those of
    /// [`AgentProfile::decoder`](super::AgentProfile::decoder).
    pub(super) fn new(
        dialect: &DialectName,
        failures: FailureClassifier,
        denials: Option<RegexSet>,
        workspace: &Path,
        sessions: &[SessionUsage],
    ) -> Option<Self> {
        let side_output = ToolTracker::new(String::new(), denials.clone());
        let tools = ToolTracker::new(workspace.to_string_lossy().into_owned(), denials);
        let dialect = Dialect::find(dialect)?;
        let events = (dialect.decoder)(tools, sessions);
        Some(Self {
            line: Vec::new(),
            line_too_long: false,
            events,
            failures,
            side_output,
        })
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], emit: &mut ActSink<'_>) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.line.is_empty() && !self.line_too_long {
                self.decode_line(&bytes[..end], emit);
            } else {
                self.buffer(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.line_too_long) {
                    self.events
                        .tools()
                        .finish_unread(&String::from_utf8_lossy(&line), emit);
                    emit(Act::Unparsed);
                } else {
                    self.decode_line(&line, emit);
                }
            }
            bytes = &bytes[end + 1..];
        }
        self.buffer(bytes);
    }

    pub(super) fn finish(&mut self, emit: &mut ActSink<'_>) {
        if !self.line.is_empty() || self.line_too_long {
            self.feed(b"\n", emit);
        }
        let failures = &self.failures;
        self.events.finish(&mut |act| emit(failures.complete(act)));
    }

    pub(super) fn is_busy(&self) -> bool {
        self.events.is_busy()
    }

    fn buffer(&mut self, bytes: &[u8]) {
        if self.line_too_long {
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LINE_MAX {
            self.line_too_long = true;
            self.line.truncate(LONG_LINE_PREFIX);
            self.line.shrink_to_fit();
        }
    }

    fn decode_line(&mut self, line: &[u8], emit: &mut ActSink<'_>) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let failures = &self.failures;
        match serde_json::from_slice::<Value>(line) {
            Ok(event) if event.is_object() => {
                let mut has_acts = false;
                let is_known = self.events.decode(&event, &mut |act| {
                    has_acts = true;
                    emit(failures.complete(act));
                });
                if !is_known {
                    emit(Act::Unparsed);
                } else if !has_acts {
                    emit(Act::OtherEvent);
                }
            }
            _ if line.starts_with(b"{") => emit(Act::Unparsed),
            _ => {
                let text = String::from_utf8_lossy(&line[..line.len().min(SIDE_OUTPUT_MAX)]);
                let text = plain(&text);
                if RETRYING.is_match(&text) {
                    emit(Act::Retrying(text.as_ref().into()));
                } else if !self.side_output.report_denial(&text, emit) {
                    emit(Act::SideOutput(text.as_ref().into()));
                }
            }
        }
    }
}
