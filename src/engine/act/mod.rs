//! Acts: an agent's actions while it works, decoded from its output.
//!
//! Acts are shown as they arrive and written to the iteration's `activity.jsonl`, not to the
//! journal. [`Tally`] adds up one iteration's acts; the journal records the sum, as an
//! [`AgentReport`](super::event::AgentReport).

mod error_excerpt;
mod tally;

pub(crate) use error_excerpt::error_excerpt;
pub(super) use tally::COST_MAX;
pub(crate) use tally::Tally;

use super::failure::AgentFailure;
use super::plain_text::clean;
use super::usage::Tokens;
use std::borrow::Cow;

/// An action of an agent, or an event in its run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Act<'a> {
    /// A piece of the agent's text for the user, not always a whole line.
    Text(Cow<'a, str>),
    /// A piece of the agent's reasoning, not always a whole line.
    Thinking(Cow<'a, str>),
    /// Bytes that the agent wrote to its terminal: text and escape sequences.
    TerminalOutput(Cow<'a, [u8]>),
    /// The agent started a tool call.
    ToolStarted {
        /// The name of the tool, as the agent reports it.
        name: Cow<'a, str>,
        /// The target of the tool call, such as a path or a command.
        about: Cow<'a, str>,
    },
    /// A tool call ended. Each finished call counts as a step.
    ToolFinished {
        /// The name of the tool, as the agent reports it.
        name: Cow<'a, str>,
        /// The target of the tool call, such as a path or a command.
        about: Cow<'a, str>,
        /// Whether the tool call succeeded.
        ok: bool,
        /// Why the tool failed, in one line; empty if it succeeded or the agent does not say.
        error: Cow<'a, str>,
        /// The lines that the call changed in files; `None` if it changed none, or if the agent's
        /// stream does not show them.
        lines: Option<ChangedLines>,
        /// How long the call took, in milliseconds; `None` if the agent does not report it. The
        /// time since the matching [`Act::ToolStarted`] is then the best answer.
        ms: Option<u64>,
    },
    /// The agent was denied an action. The text describes the action.
    Denied(Cow<'a, str>),
    /// Dollars spent since the previous `Cost`.
    Cost(f64),
    /// Tokens that a model used, in addition to those already reported.
    TokensUsed {
        /// The model's name; empty if the agent does not report one.
        model: Cow<'a, str>,
        /// The tokens used since the model's previous report.
        tokens: Tokens,
    },
    /// The ID of the agent's session.
    SessionId(Cow<'a, str>),
    /// The agent's service did not answer, and the agent retries the request. This is neither a
    /// failure nor progress.
    Retrying(Cow<'a, str>),
    /// The agent's account is close to a usage limit.
    NearLimit {
        /// The agent's description of the limit.
        limit: Cow<'a, str>,
        /// The share of the limit that is used, from 0 to 1; `None` if the agent does not report
        /// it.
        used: Option<f64>,
        /// The time at which the limit resets, in milliseconds since 1970; `None` if the agent does
        /// not report it.
        until_ms: Option<i64>,
    },
    /// A line outside the event stream, such as a warning. Ralph reads no signals from it.
    SideOutput(Cow<'a, str>),
    /// A piece of undecoded output. The acts decoded from it follow.
    RawOutput(Cow<'a, [u8]>),
    /// A line of the agent's event stream that could not be parsed.
    Unparsed,
    /// An event of the agent's stream that says nothing about its work.
    OtherEvent,
    /// The agent finished successfully. The text is its final message, from which promises are
    /// read.
    Finished(Cow<'a, str>),
    /// The agent reported that its run failed.
    Failed {
        /// The agent's error message.
        why: Cow<'a, str>,
        /// The classified failure; `None` if no pattern matched the message.
        reason: Option<AgentFailure>,
    },
    /// The whole run has ended; only the agent's process still has to exit.
    RunEnded,
}

/// How many lines a tool call added to files and removed from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedLines {
    /// Added lines. A file that is written as a whole counts with all its lines, unless the agent's
    /// stream shows what it replaced.
    pub added: u32,
    /// Removed lines.
    pub removed: u32,
}

impl<'a> Act<'a> {
    /// Removes escape sequences, NUL and carriage returns from the act's texts.
    ///
    /// Leaves [`Act::Text`] and [`Act::Thinking`] unchanged: an escape sequence may be split
    /// between two pieces, so they are cleaned when their lines are complete.
    pub(crate) fn cleaned(self) -> Self {
        match self {
            Self::Text(_) | Self::Thinking(_) | Self::TerminalOutput(_) | Self::RawOutput(_) => {
                self
            }
            act => act.map_texts(&mut |text| match clean(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(clean) => clean.into(),
            }),
        }
    }

    /// Applies `edit` to each text in the act. Bytes are copied unchanged.
    pub(crate) fn map_texts<'b>(
        self,
        edit: &mut dyn FnMut(Cow<'a, str>) -> Cow<'b, str>,
    ) -> Act<'b> {
        match self {
            Self::Text(text) => Act::Text(edit(text)),
            Self::Thinking(text) => Act::Thinking(edit(text)),
            Self::TerminalOutput(bytes) => Act::TerminalOutput(bytes.into_owned().into()),
            Self::ToolStarted { name, about } => Act::ToolStarted {
                name: edit(name),
                about: edit(about),
            },
            Self::ToolFinished {
                name,
                about,
                ok,
                error,
                lines,
                ms,
            } => Act::ToolFinished {
                name: edit(name),
                about: edit(about),
                ok,
                error: edit(error),
                lines,
                ms,
            },
            Self::Denied(text) => Act::Denied(edit(text)),
            Self::Cost(usd) => Act::Cost(usd),
            Self::TokensUsed { model, tokens } => Act::TokensUsed {
                model: edit(model),
                tokens,
            },
            Self::SessionId(id) => Act::SessionId(edit(id)),
            Self::Retrying(why) => Act::Retrying(edit(why)),
            Self::NearLimit {
                limit,
                used,
                until_ms,
            } => Act::NearLimit {
                limit: edit(limit),
                used,
                until_ms,
            },
            Self::SideOutput(line) => Act::SideOutput(edit(line)),
            Self::RawOutput(bytes) => Act::RawOutput(bytes.into_owned().into()),
            Self::Unparsed => Act::Unparsed,
            Self::OtherEvent => Act::OtherEvent,
            Self::Finished(text) => Act::Finished(edit(text)),
            Self::Failed { why, reason } => Act::Failed {
                why: edit(why),
                reason,
            },
            Self::RunEnded => Act::RunEnded,
        }
    }

    /// Returns an act that carries no content: it only shows that the agent is still working.
    pub(crate) fn keepalive() -> Self {
        Self::Thinking(Cow::Borrowed(""))
    }

    /// Returns whether the act is anything but a [keepalive](Self::keepalive) or an event that says
    /// nothing about the work.
    pub(crate) fn has_content(&self) -> bool {
        *self != Self::keepalive() && *self != Self::OtherEvent
    }

    /// Returns whether the act comes from a structured event stream. Output outside the stream does
    /// not.
    pub fn is_stream_event(&self) -> bool {
        !matches!(
            self,
            Self::RawOutput(_)
                | Self::Retrying(_)
                | Self::Denied(_)
                | Self::SideOutput(_)
                | Self::Unparsed
        )
    }

    /// Returns whether the act is something that the agent's model did.
    pub(super) fn is_by_model(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Thinking(_)
                | Self::ToolStarted { .. }
                | Self::ToolFinished { .. }
                | Self::Denied(_)
                | Self::TokensUsed { .. }
                | Self::Finished(_)
        )
    }

    /// Returns whether the act shows progress, which resets the inactivity timeout.
    pub(crate) fn is_progress(&self) -> bool {
        !matches!(
            self,
            Self::Retrying(_)
                | Self::SideOutput(_)
                | Self::RawOutput(_)
                | Self::Unparsed
                | Self::OtherEvent
        )
    }
}
