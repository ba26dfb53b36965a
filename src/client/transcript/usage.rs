//! Adds up the tokens in the part of a transcript that was written since the last stop.

use super::{claude, codex, open};
use crate::engine::usage::Tokens;
use memchr::memrchr;
use serde::Deserialize;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum number of bytes at the transcript's end to search for usage.
const USAGE_WITHIN: u64 = 64 << 20;
/// Number of bytes before the new part in which usage that was counted before is searched for.
const COUNTED_WITHIN: u64 = 1 << 20;

/// How a client's transcript reports usage. Each format has its own decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageFormat {
    /// Claude Code: the usage of each message, on every line of the message.
    Claude,
    /// Codex: the session's total so far, after each request.
    Codex,
}

/// What a part of a transcript says about usage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptUsage {
    /// What was used, in order, each with its model.
    pub used: Vec<(String, Tokens)>,
    /// Where the part ends, in bytes: the start of the next one.
    pub end: u64,
}

impl UsageFormat {
    /// Returns the usage in the complete lines after `start`, an offset in bytes. A transcript that
    /// is shorter was replaced, and nothing of it counts.
    pub fn usage_since(self, path: &Path, start: u64) -> io::Result<TranscriptUsage> {
        let (file, len) = open(path)?;
        let start = start.min(len).max(len.saturating_sub(USAGE_WITHIN));
        let from = start.saturating_sub(COUNTED_WITHIN);
        let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(0)];
        file.read_exact_at(&mut bytes, from)?;
        let (counted, new) = bytes.split_at(usize::try_from(start - from).unwrap_or(0));
        let complete = memrchr(b'\n', new).map_or(0, |at| at + 1);
        let lines = |bytes| <[u8]>::split(bytes, |byte| *byte == b'\n');
        let (counted, new) = (lines(counted), lines(&new[..complete]));
        let used = match self {
            Self::Claude => claude::usage(counted, new),
            Self::Codex => codex::usage(counted, new),
        };
        Ok(TranscriptUsage {
            used,
            end: start + complete as u64,
        })
    }

    /// Returns how long the transcript is, in bytes; 0 if there is none yet.
    pub fn len(self, path: &Path) -> u64 {
        open(path).map_or(0, |(_, len)| len)
    }
}
