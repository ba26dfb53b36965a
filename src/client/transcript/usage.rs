//! Adds up the tokens in the part of a transcript that was written since the last stop.

use super::{TranscriptFormat, claude, open};
use crate::engine::usage::Tokens;
use memchr::memrchr;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum number of bytes at the transcript's end to search for usage.
const USAGE_WITHIN: u64 = 64 << 20;

/// What a part of a transcript says about usage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptUsage {
    /// The tokens of each message: its model, and what it used.
    pub messages: Vec<(String, Tokens)>,
    /// Where the part ends, in bytes: the start of the next one.
    pub end: u64,
}

/// The usage of one message. Each block of a message is a line of its own and repeats it; the last
/// one counts.
pub(super) struct MessageUsage {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) tokens: Tokens,
}

impl TranscriptFormat {
    /// Returns the usage in the complete lines after `start`, an offset in bytes. A transcript that
    /// is shorter was replaced, and nothing of it counts.
    pub fn usage_since(self, path: &Path, start: u64) -> io::Result<TranscriptUsage> {
        let (file, len) = open(path)?;
        let start = start.min(len).max(len.saturating_sub(USAGE_WITHIN));
        let mut bytes = vec![0; usize::try_from(len - start).unwrap_or(0)];
        file.read_exact_at(&mut bytes, start)?;
        let complete = memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let mut seen: Vec<MessageUsage> = Vec::new();
        for line in bytes[..complete].split(|byte| *byte == b'\n') {
            let usage = match self {
                Self::Claude => claude::usage(line),
            };
            let Some(usage) = usage else { continue };
            // The blocks of a message are close together, even if a subagent's are in between.
            match seen.iter_mut().rev().find(|known| known.id == usage.id) {
                Some(known) => *known = usage,
                None => seen.push(usage),
            }
        }
        Ok(TranscriptUsage {
            messages: seen
                .into_iter()
                .map(|usage| (usage.model, usage.tokens))
                .collect(),
            end: start + complete as u64,
        })
    }

    /// Returns how long the transcript is, in bytes; 0 if there is none yet.
    pub fn len(self, path: &Path) -> u64 {
        open(path).map_or(0, |(_, len)| len)
    }
}
