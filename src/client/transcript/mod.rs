//! What a client writes down of a session, read from its end: the agent's last words, and whether it used a tool.
//!
//! A transcript grows without bound, and only its end matters. The client may write a message a moment after it told
//! of it, so whoever asks for the last words waits for them.

mod reverse_lines;

use super::json;
use crate::os::regular;
use memchr::memmem;
use reverse_lines::Backwards;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Where the last words are not so near the end, there are none.
const WORDS_WITHIN: u64 = 64 << 20;
/// A tool that was used longer ago than this is not looked for.
const TOOLS_WITHIN: u64 = 16 << 20;
/// How long until the next look.
const PAUSE: Duration = Duration::from_millis(10);

/// The text of the agent's last message, waited for if it has not arrived; none if it has no text.
pub fn last_words(path: &Path, patience: Duration) -> Result<Option<String>, String> {
    let deadline = Instant::now() + patience;
    let mut looked_at = None;
    loop {
        let heard = words_at_end(path, &mut looked_at);
        if let Ok(Some(words)) = heard {
            return Ok(Some(words));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return heard.map_err(|error| {
                format!("cannot read the transcript {}: {error}", path.display())
            });
        }
        std::thread::sleep(PAUSE.min(left));
    }
}

/// Whether the agent itself used a tool since it was asked to go on; none if that cannot be told.
pub fn used_tools(path: &Path) -> Option<bool> {
    let (file, length) = open(path).ok()?;
    let floor = length.saturating_sub(TOOLS_WITHIN);
    let mut lines = Backwards::new(&file, floor, length).ok()?;
    while let Some(line) = lines.next().ok()? {
        match read(line) {
            Line::Agent(said) if said.uses_tool => return Some(true),
            Line::Result => return Some(true),
            Line::Other => return Some(false),
            Line::Agent(_) | Line::Error(_) | Line::Noise => {}
        }
    }
    (floor == 0).then_some(false)
}

/// What the client wrote in the agent's place because the model's service failed, if that is the last word there.
pub fn service_error(path: &Path) -> Option<String> {
    let (file, length) = open(path).ok()?;
    let mut lines = Backwards::new(&file, length.saturating_sub(TOOLS_WITHIN), length).ok()?;
    while let Some(line) = lines.next().ok()? {
        match read(line) {
            Line::Error(said) => return Some(said.texts.join("\n")),
            Line::Agent(_) | Line::Result | Line::Other => return None,
            Line::Noise => {}
        }
    }
    None
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = regular::open(path, true)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The last words, if they are there; a file of a length that was looked at before is not read again.
fn words_at_end(path: &Path, looked_at: &mut Option<u64>) -> io::Result<Option<String>> {
    let (file, length) = open(path)?;
    if looked_at.replace(length) == Some(length) {
        return Ok(None);
    }
    let mut lines = Backwards::new(&file, length.saturating_sub(WORDS_WITHIN), length)?;
    if lines.torn > 0 {
        return Ok(None);
    }
    let mut message: Option<Said> = None;
    while let Some(line) = lines.next()? {
        match (read(line), &mut message) {
            (Line::Agent(said), _) if said.uses_tool => break,
            (Line::Agent(said), None) => message = Some(said),
            // A message is several lines, one for each of its parts.
            (Line::Agent(said), Some(last)) if said.id.is_some() && said.id == last.id => {
                last.texts.splice(0..0, said.texts);
            }
            (Line::Agent(_) | Line::Result | Line::Other, _) => break,
            (Line::Error(_) | Line::Noise, _) => {}
        }
    }
    let words = message.map(|message| message.texts.join("\n"));
    Ok(words.filter(|words| !words.trim().is_empty()))
}

/// What a line is to the conversation of a person and the agent itself.
enum Line {
    /// A part of a message of the agent.
    Agent(Said),
    /// What the client says in the agent's place, because the model's service failed.
    Error(Said),
    /// What a tool came to: the agent's answer is yet to come.
    Result,
    /// A prompt, or a word of a hook: likewise.
    Other,
    /// No part of it.
    Noise,
}

struct Said {
    id: Option<String>,
    texts: Vec<String>,
    uses_tool: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
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
struct Body {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Value,
}

/// Clients write these words as they stand here. Most lines have none of them, and need not be understood.
const SPEAKERS: [&[u8]; 3] = [b"\"assistant\"", b"\"user\"", b"\"stop_hook_summary\""];

fn read(line: &[u8]) -> Line {
    if !SPEAKERS
        .iter()
        .any(|speaker| memmem::find(line, speaker).is_some())
    {
        return Line::Noise;
    }
    let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else {
        return Line::Noise;
    };
    if head.is_sidechain == Some(true) {
        return Line::Noise;
    }
    let is_error = head.is_api_error_message == Some(true);
    match (&*head.kind, head.subtype.as_deref()) {
        ("user", _) if is_result(line) => Line::Result,
        ("user", _) | ("system", Some("stop_hook_summary")) => Line::Other,
        ("assistant", _) => {
            let line_of = if is_error { Line::Error } else { Line::Agent };
            json::read::<Body>(line).map_or(Line::Noise, |body| line_of(said(body.message)))
        }
        _ => Line::Noise,
    }
}

/// Whether a line that is no agent's is what a tool came to.
fn is_result(line: &[u8]) -> bool {
    // Of the many lines few need be understood as a whole.
    memmem::find(line, b"\"tool_result\"").is_some()
        && json::read::<Body>(line).is_ok_and(|body| {
            let parts = body
                .message
                .content
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            parts.iter().any(|part| part["type"] == "tool_result")
        })
}

fn said(message: Message) -> Said {
    let mut said = Said {
        id: message.id,
        texts: Vec::new(),
        uses_tool: false,
    };
    match message.content {
        Value::String(text) => said.texts.push(text),
        Value::Array(parts) => {
            for part in parts {
                match (part["type"].as_str(), part["text"].as_str()) {
                    (Some("text"), Some(text)) => said.texts.push(text.to_owned()),
                    (Some("tool_use"), _) => said.uses_tool = true,
                    _ => {}
                }
            }
        }
        _ => {}
    }
    said
}

#[cfg(test)]
mod tests;
