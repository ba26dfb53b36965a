//! Reads session transcripts from their end: the agent's last message, its use of tools, and
//! service errors.
//!
//! Transcripts grow without bound, and only their end matters. A client may write a message shortly
//! after it runs the hook, so reading the last message waits for it.

mod claude;
mod codex;
mod reverse_lines;
mod usage;

pub use usage::{TranscriptUsage, UsageFormat};

use crate::os::regular_file;
use reverse_lines::ReverseLines;
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The last message is searched for in the last `MESSAGE_WITHIN` bytes of the transcript.
const MESSAGE_WITHIN: u64 = 64 << 20;
/// Tool uses and errors are searched for in the last `TOOLS_WITHIN` bytes of the transcript.
const TOOLS_WITHIN: u64 = 16 << 20;
/// Interval at which the transcript is read again until the last message has been written.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A transcript format. Each format has its own decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptFormat {
    /// Claude Code's format: one JSON object per line.
    Claude,
}

impl TranscriptFormat {
    /// Returns the text of the agent's last message, and waits up to `timeout` until the client has
    /// written it; `None` after the timeout.
    pub fn last_message(self, path: &Path, timeout: Duration) -> Result<Option<String>, String> {
        let deadline = Instant::now() + timeout;
        let mut last_len = None;
        loop {
            let result = self.message_at_end(path, &mut last_len);
            if let Ok(Some(text)) = result {
                return Ok(Some(text));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return result.map_err(|error| {
                    format!("cannot read the transcript {}: {error}", path.display())
                });
            }
            std::thread::sleep(POLL_INTERVAL.min(left));
        }
    }

    /// Returns whether the agent itself, not a subagent, has used a tool since its last prompt;
    /// `None` if the transcript cannot be read or the prompt is too far from its end.
    pub fn used_tool(self, path: &Path) -> Option<bool> {
        let (file, len) = open(path).ok()?;
        let start = len.saturating_sub(TOOLS_WITHIN);
        let mut lines = ReverseLines::new(&file, start, len).ok()?;
        while let Some(line) = lines.next().ok()? {
            match self.decode(line) {
                TranscriptEntry::Assistant(part) if part.uses_tool => return Some(true),
                TranscriptEntry::ToolResult => return Some(true),
                TranscriptEntry::Prompt => return Some(false),
                TranscriptEntry::Assistant(_)
                | TranscriptEntry::ApiError(_)
                | TranscriptEntry::Ignored => {}
            }
        }
        (start == 0).then_some(false)
    }

    /// Returns the error that the client recorded in place of an agent's message; `None` if the
    /// conversation's last entry is not such an error.
    pub fn service_error(self, path: &Path) -> Option<String> {
        let (file, len) = open(path).ok()?;
        let mut lines = ReverseLines::new(&file, len.saturating_sub(TOOLS_WITHIN), len).ok()?;
        while let Some(line) = lines.next().ok()? {
            match self.decode(line) {
                TranscriptEntry::ApiError(part) => return Some(part.texts.join("\n")),
                TranscriptEntry::Assistant(_)
                | TranscriptEntry::ToolResult
                | TranscriptEntry::Prompt => return None,
                TranscriptEntry::Ignored => {}
            }
        }
        None
    }

    /// Returns the last message if it is complete; `None` otherwise. A file that is still
    /// `last_len` bytes long is not read again.
    fn message_at_end(self, path: &Path, last_len: &mut Option<u64>) -> io::Result<Option<String>> {
        let (file, len) = open(path)?;
        if last_len.replace(len) == Some(len) {
            return Ok(None);
        }
        let mut lines = ReverseLines::new(&file, len.saturating_sub(MESSAGE_WITHIN), len)?;
        if lines.unterminated > 0 {
            return Ok(None);
        }
        let mut message: Option<AssistantPart> = None;
        while let Some(line) = lines.next()? {
            match (self.decode(line), &mut message) {
                (TranscriptEntry::Assistant(part), _) if part.uses_tool => break,
                (TranscriptEntry::Assistant(part), None) => message = Some(part),
                // Each part of a message is on its own line.
                (TranscriptEntry::Assistant(part), Some(last))
                    if part.id.is_some() && part.id == last.id =>
                {
                    last.texts.splice(0..0, part.texts);
                }
                (
                    TranscriptEntry::Assistant(_)
                    | TranscriptEntry::ToolResult
                    | TranscriptEntry::Prompt,
                    _,
                ) => break,
                (TranscriptEntry::ApiError(_) | TranscriptEntry::Ignored, _) => {}
            }
        }
        let text = message.map(|message| message.texts.join("\n"));
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    fn decode(self, line: &[u8]) -> TranscriptEntry {
        match self {
            Self::Claude => claude::decode(line),
        }
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = regular_file::open(path, true)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// A line's role in the conversation between the user and the agent, subagents excluded.
enum TranscriptEntry {
    /// A part of a message from the agent.
    Assistant(AssistantPart),
    /// An error that the client recorded in place of a message.
    ApiError(AssistantPart),
    /// A tool's result. The agent's answer follows.
    ToolResult,
    /// A prompt or a hook's feedback. The agent's answer follows.
    Prompt,
    /// A line that is not part of the conversation.
    Ignored,
}

struct AssistantPart {
    id: Option<String>,
    texts: Vec<String>,
    uses_tool: bool,
}

#[cfg(test)]
mod tests;
