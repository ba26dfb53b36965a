//! Acts: what an agent does while it works, decoded from its output.
//!
//! Acts are shown as they arrive and written to the iteration's `activity.jsonl`, not to the journal.
//! [`Tally`] adds up the acts of one iteration; the journal gets the sum, as an
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

/// Something that an agent did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Act<'a> {
    /// It wrote text to the user. A piece, not always a whole line.
    Text(Cow<'a, str>),
    /// It wrote a piece of its reasoning.
    Thinking(Cow<'a, str>),
    /// It wrote to its terminal; text and escape sequences.
    TerminalOutput(Cow<'a, [u8]>),
    /// It started to use a tool.
    ToolStarted {
        /// The tool's name.
        name: Cow<'a, str>,
        /// What it is used on, such as a path or a command.
        about: Cow<'a, str>,
    },
    /// It has used a tool. This is one step.
    ToolFinished {
        /// The tool's name.
        name: Cow<'a, str>,
        /// What it was used on, such as a path or a command.
        about: Cow<'a, str>,
        /// Whether the tool succeeded.
        ok: bool,
    },
    /// It was denied an action; the agent's description of it.
    Denied(Cow<'a, str>),
    /// It spent this many more dollars.
    Cost(f64),
    /// A model used this many more tokens.
    TokensUsed {
        /// The model; empty if the agent does not name it.
        model: Cow<'a, str>,
        /// The tokens.
        tokens: Tokens,
    },
    /// The ID of its session.
    SessionId(Cow<'a, str>),
    /// Its service did not answer, and the agent retries. Neither a failure nor progress.
    Retrying(Cow<'a, str>),
    /// Its account is close to a usage limit.
    NearLimit {
        /// A description of the limit.
        limit: Cow<'a, str>,
        /// The used share of it, from 0 to 1.
        used: Option<f64>,
        /// When the limit resets, in milliseconds since 1970.
        until_ms: Option<i64>,
    },
    /// A line beside the event stream, such as a warning. No signal is read from it.
    SideOutput(Cow<'a, str>),
    /// A piece of undecoded output; the acts it decodes to follow.
    RawOutput(Cow<'a, [u8]>),
    /// A line of its stream that could not be parsed.
    Unparsed,
    /// It finished successfully, with this final message. Promises are read from it.
    Finished(Cow<'a, str>),
    /// It failed.
    Failed {
        /// The agent's error message.
        why: Cow<'a, str>,
        /// The failure, where it could be classified.
        reason: Option<AgentFailure>,
    },
    /// Its whole run has ended; only its process still has to exit.
    RunEnded,
}

impl<'a> Act<'a> {
    /// Removes escape sequences, NUL and carriage returns from the act's texts.
    ///
    /// [`Act::Text`] and [`Act::Thinking`] are pieces, and a sequence may be split between two of
    /// them. They are cleaned when their lines are complete.
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

    /// Applies `edit` to each of the act's texts. Bytes are copied.
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
            Self::ToolFinished { name, about, ok } => Act::ToolFinished {
                name: edit(name),
                about: edit(about),
                ok,
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
            Self::Finished(text) => Act::Finished(edit(text)),
            Self::Failed { why, reason } => Act::Failed {
                why: edit(why),
                reason,
            },
            Self::RunEnded => Act::RunEnded,
        }
    }

    /// An act that shows only that the agent is at work.
    pub(crate) fn keepalive() -> Self {
        Self::Thinking(Cow::Borrowed(""))
    }

    /// Whether it is more than a keepalive.
    pub(crate) fn has_content(&self) -> bool {
        *self != Self::keepalive()
    }

    /// Whether it is an event of the agent's stream. Plain output next to the stream is not.
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

    /// Whether the agent makes progress. Other acts do not reset the inactivity timeout.
    pub(crate) fn is_progress(&self) -> bool {
        !matches!(
            self,
            Self::Retrying(_) | Self::SideOutput(_) | Self::RawOutput(_) | Self::Unparsed
        )
    }
}
