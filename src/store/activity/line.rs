//! Defines the format of `activity.jsonl`: a header line, then one JSON object per act.

use crate::engine::act::{Act, ChangedLines};
use crate::engine::failure::AgentFailure;
use crate::engine::usage::Tokens;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The format version that this version of ralph writes.
const VERSION: u64 = 1;

/// Returns the header line of an iteration's activity, with its newline.
pub(super) fn header(iteration: u32) -> String {
    format!("{{\"ralph\":\"activity\",\"version\":{VERSION},\"iteration\":{iteration}}}\n")
}

/// A line after the header: an act, its number and its time.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ActivityLine<'a> {
    /// The act's number in the iteration, counted from 1. Dropped acts are counted too.
    pub(super) n: u64,
    /// The time at which the act arrived, in milliseconds since 1970.
    pub(super) at_ms: i64,
    #[serde(flatten)]
    pub(super) act: ActRecord<'a>,
}

/// An act in its stored form. The names are a published format: see `docs/journal.md`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "act")]
pub(super) enum ActRecord<'a> {
    #[serde(rename = "text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "thinking")]
    Thinking { text: Cow<'a, str> },
    #[serde(rename = "tool-started")]
    ToolStarted {
        tool: Cow<'a, str>,
        about: Cow<'a, str>,
    },
    #[serde(rename = "tool-finished")]
    ToolFinished {
        tool: Cow<'a, str>,
        about: Cow<'a, str>,
        ok: bool,
        /// Why the tool failed; empty if it succeeded or the agent does not say.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        error: Cow<'a, str>,
        /// The lines that the call added to files and removed from them; `None` if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        removed: Option<u32>,
        /// How long the call took, as the agent reports it; `None` if it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    #[serde(rename = "denied")]
    Denied { text: Cow<'a, str> },
    #[serde(rename = "cost")]
    Cost { usd: f64 },
    #[serde(rename = "tokens")]
    Tokens { model: Cow<'a, str>, tokens: Tokens },
    #[serde(rename = "session")]
    Session { id: Cow<'a, str> },
    #[serde(rename = "retrying")]
    Retrying { text: Cow<'a, str> },
    #[serde(rename = "near-limit")]
    NearLimit {
        limit: Cow<'a, str>,
        /// The share of the limit that is used, from 0 to 1; `None` if unknown.
        used: Option<f64>,
        /// The time at which the limit resets, in milliseconds since 1970; `None` if unknown.
        until_ms: Option<i64>,
    },
    #[serde(rename = "side-output")]
    SideOutput { text: Cow<'a, str> },
    #[serde(rename = "unparsed")]
    Unparsed,
    #[serde(rename = "finished")]
    Finished { text: Cow<'a, str> },
    #[serde(rename = "failed")]
    Failed {
        text: Cow<'a, str>,
        /// The classified failure; `None` if the failure could not be classified.
        reason: Option<AgentFailure>,
    },
    #[serde(rename = "run-ended")]
    RunEnded,
    /// Not an act: a note that the acts up to this line's number were dropped.
    #[serde(rename = "dropped")]
    Dropped {
        /// Number of dropped acts.
        acts: u64,
    },
    /// Not an act: a note that the activity is complete.
    #[serde(rename = "end")]
    End,
    /// An act that a newer version of ralph wrote.
    #[serde(other, rename = "unknown")]
    Unknown,
}

impl<'a> ActRecord<'a> {
    /// Converts an act for storage. Returns `None` for raw bytes and for events without content,
    /// which are not stored.
    pub(super) fn new(act: Act<'a>) -> Option<Self> {
        Some(match act {
            Act::TerminalOutput(_) | Act::RawOutput(_) | Act::OtherEvent => return None,
            Act::Text(text) => Self::Text { text },
            Act::Thinking(text) => Self::Thinking { text },
            Act::ToolStarted { name, about } => Self::ToolStarted { tool: name, about },
            Act::ToolFinished {
                name,
                about,
                ok,
                error,
                lines,
                ms,
            } => Self::ToolFinished {
                tool: name,
                about,
                ok,
                error,
                added: lines.map(|lines| lines.added),
                removed: lines.map(|lines| lines.removed),
                ms,
            },
            Act::Denied(text) => Self::Denied { text },
            Act::Cost(usd) => Self::Cost { usd },
            Act::TokensUsed { model, tokens } => Self::Tokens { model, tokens },
            Act::SessionId(id) => Self::Session { id },
            Act::Retrying(text) => Self::Retrying { text },
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => Self::NearLimit {
                limit,
                used,
                until_ms,
            },
            Act::SideOutput(text) => Self::SideOutput { text },
            Act::Unparsed => Self::Unparsed,
            Act::Finished(text) => Self::Finished { text },
            Act::Failed { why, reason } => Self::Failed { text: why, reason },
            Act::RunEnded => Self::RunEnded,
        })
    }

    /// Converts the record to an act. Returns `None` for a record that is not an act, or that this
    /// version does not support.
    pub(super) fn into_act(self) -> Option<Act<'a>> {
        Some(match self {
            Self::Dropped { .. } | Self::End | Self::Unknown => return None,
            Self::Text { text } => Act::Text(text),
            Self::Thinking { text } => Act::Thinking(text),
            Self::ToolStarted { tool, about } => Act::ToolStarted { name: tool, about },
            Self::ToolFinished {
                tool,
                about,
                ok,
                error,
                added,
                removed,
                ms,
            } => Act::ToolFinished {
                name: tool,
                about,
                ok,
                error,
                lines: added
                    .zip(removed)
                    .map(|(added, removed)| ChangedLines { added, removed }),
                ms,
            },
            Self::Denied { text } => Act::Denied(text),
            Self::Cost { usd } => Act::Cost(usd),
            Self::Tokens { model, tokens } => Act::TokensUsed { model, tokens },
            Self::Session { id } => Act::SessionId(id),
            Self::Retrying { text } => Act::Retrying(text),
            Self::NearLimit {
                limit,
                used,
                until_ms,
            } => Act::NearLimit {
                limit,
                used,
                until_ms,
            },
            Self::SideOutput { text } => Act::SideOutput(text),
            Self::Unparsed => Act::Unparsed,
            Self::Finished { text } => Act::Finished(text),
            Self::Failed { text, reason } => Act::Failed { why: text, reason },
            Self::RunEnded => Act::RunEnded,
        })
    }
}
