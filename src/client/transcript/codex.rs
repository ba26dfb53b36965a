//! Decodes the usage in Codex's rollout files.

use crate::engine::usage::Tokens;
use memchr::memmem;
use serde::Deserialize;

#[derive(Deserialize)]
struct RolloutLine {
    #[serde(rename = "type")]
    kind: String,
    payload: Payload,
}

/// The fields of the two payloads that matter: a turn's context and a token count.
#[derive(Deserialize)]
struct Payload {
    model: Option<String>,
    info: Option<TokenInfo>,
}

#[derive(Deserialize)]
struct TokenInfo {
    total_token_usage: TokenCount,
    last_token_usage: TokenCount,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenCount {
    /// Includes cached tokens.
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

impl From<&TokenCount> for Tokens {
    fn from(count: &TokenCount) -> Self {
        let (cache_read, cache_write) = (count.cached_input_tokens, count.cache_write_input_tokens);
        Self {
            input: count
                .input_tokens
                .saturating_sub(cache_read)
                .saturating_sub(cache_write),
            cache_read,
            cache_write,
            output: count.output_tokens,
        }
    }
}

/// Reads lines in order and follows the session's total.
#[derive(Default)]
struct Meter {
    model: String,
    /// The session's total so far; `None` until a line reports it.
    total: Option<Tokens>,
}

impl Meter {
    /// Reads a line. Returns what was used since the last total; `None` if the line reports none.
    fn read(&mut self, line: &[u8]) -> Option<Tokens> {
        let marks: [&[u8]; 2] = [b"\"token_count\"", b"\"turn_context\""];
        if !marks.iter().any(|mark| memmem::find(line, mark).is_some()) {
            return None;
        }
        let line: RolloutLine = serde_json::from_slice(line).ok()?;
        match (&*line.kind, line.payload) {
            ("turn_context", Payload { model, .. }) => {
                self.model = model.unwrap_or_default();
                None
            }
            (
                "event_msg",
                Payload {
                    info: Some(info), ..
                },
            ) => {
                let total = Tokens::from(&info.total_token_usage);
                let last = Tokens::from(&info.last_token_usage);
                // Codex repeats a total that has not changed.
                let before = self.total.unwrap_or_else(|| total.saturating_sub(last));
                self.total = Some(total);
                Some(total.saturating_sub(before))
            }
            _ => None,
        }
    }
}

/// Returns what the `new` lines of a rollout file report, each with its model. `counted` are the
/// lines before them.
pub(super) fn usage<'a>(
    counted: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
) -> Vec<(String, Tokens)> {
    let mut meter = Meter::default();
    for line in counted {
        meter.read(line);
    }
    new.filter_map(|line| {
        let used = meter.read(line).filter(|used| used.total() > 0)?;
        Some((meter.model.clone(), used))
    })
    .collect()
}
