//! Decodes the lines of Claude Code's transcripts.

use super::{AssistantPart, TranscriptEntry};
use crate::client::json;
use crate::engine::usage::Tokens;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryHeader<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    is_sidechain: Option<bool>,
    #[serde(default)]
    is_api_error_message: Option<bool>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct EntryBody {
    message: EntryMessage,
}

#[derive(Deserialize)]
struct EntryMessage {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Value,
}

/// Strings that mark the lines of a conversation. Lines without any of them need not be parsed.
/// Claude Code writes the strings without spaces or escapes.
const CONVERSATION_MARKS: [&[u8]; 3] = [b"\"assistant\"", b"\"user\"", b"\"stop_hook_summary\""];

/// Decodes one line of a transcript.
pub(super) fn decode(line: &[u8]) -> TranscriptEntry {
    if !CONVERSATION_MARKS
        .iter()
        .any(|mark| memmem::find(line, mark).is_some())
    {
        return TranscriptEntry::Ignored;
    }
    let Ok(header) = serde_json::from_slice::<EntryHeader<'_>>(line) else {
        return TranscriptEntry::Ignored;
    };
    if header.is_sidechain == Some(true) {
        return TranscriptEntry::Ignored;
    }
    let is_error = header.is_api_error_message == Some(true);
    match (&*header.kind, header.subtype.as_deref()) {
        ("user", _) if is_tool_result(line) => TranscriptEntry::ToolResult,
        ("user", _) | ("system", Some("stop_hook_summary")) => TranscriptEntry::Prompt,
        ("assistant", _) => match json::from_slice_lossy::<EntryBody>(line) {
            Ok(body) if is_error => TranscriptEntry::ApiError(assistant_part(body.message)),
            Ok(body) => TranscriptEntry::Assistant(assistant_part(body.message)),
            Err(_) => TranscriptEntry::Ignored,
        },
        _ => TranscriptEntry::Ignored,
    }
}

#[derive(Deserialize)]
struct UsageEntry<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    message: UsageMessage<'a>,
}

#[derive(Deserialize)]
struct UsageMessage<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    usage: UsageCounts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageCounts {
    input_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    output_tokens: u64,
}

/// The usage of one message. Each block of a message is a line of its own and repeats it; the last
/// one counts.
struct MessageUsage {
    id: String,
    model: String,
    tokens: Tokens,
}

/// Returns the usage of each message in the `new` lines of a transcript, with its model. `counted`
/// are the lines before them; a message may have blocks in both.
pub(super) fn usage<'a>(
    counted: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
) -> Vec<(String, Tokens)> {
    let (counted, new) = (messages(counted), messages(new));
    let used = new.into_iter().map(|message| {
        let before = counted.iter().find(|known| known.id == message.id);
        let before = before.map_or(Tokens::default(), |known| known.tokens);
        (message.model, message.tokens.saturating_sub(before))
    });
    used.filter(|(_, tokens)| tokens.total() > 0).collect()
}

fn messages<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<MessageUsage> {
    let mut seen: Vec<MessageUsage> = Vec::new();
    for usage in lines.filter_map(message_usage) {
        // The blocks of a message are close together, even if a subagent's are in between.
        match seen.iter_mut().rev().find(|known| known.id == usage.id) {
            Some(known) => *known = usage,
            None => seen.push(usage),
        }
    }
    seen
}

/// Returns the usage of the message on this line, a subagent's included; `None` if there is none.
fn message_usage(line: &[u8]) -> Option<MessageUsage> {
    memmem::find(line, b"\"usage\"")?;
    let entry: UsageEntry<'_> = serde_json::from_slice(line).ok()?;
    let UsageMessage { id, model, usage } = entry.message;
    // Claude Code itself wrote a message without a model.
    let is_agents = entry.kind == "assistant" && model != "<synthetic>";
    is_agents.then(|| MessageUsage {
        id: id.into_owned(),
        model: model.into_owned(),
        tokens: Tokens {
            input: usage.input_tokens,
            cache_read: usage.cache_read_input_tokens,
            cache_write: usage.cache_creation_input_tokens,
            output: usage.output_tokens,
        },
    })
}

/// Returns whether a line of the type `user` is a tool's result.
fn is_tool_result(line: &[u8]) -> bool {
    // Parsing is slow, and few lines contain this string.
    memmem::find(line, b"\"tool_result\"").is_some()
        && json::from_slice_lossy::<EntryBody>(line).is_ok_and(|body| {
            let parts = body
                .message
                .content
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            parts.iter().any(|part| part["type"] == "tool_result")
        })
}

fn assistant_part(message: EntryMessage) -> AssistantPart {
    let mut result = AssistantPart {
        id: message.id,
        texts: Vec::new(),
        uses_tool: false,
    };
    match message.content {
        Value::String(text) => result.texts.push(text),
        Value::Array(parts) => {
            for part in parts {
                match (part["type"].as_str(), part["text"].as_str()) {
                    (Some("text"), Some(text)) => result.texts.push(text.to_owned()),
                    (Some("tool_use"), _) => result.uses_tool = true,
                    _ => {}
                }
            }
        }
        _ => {}
    }
    result
}
