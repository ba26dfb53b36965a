//! How an agent's output becomes acts: one reader for each form of output.

mod claude;
pub mod codex;
mod copilot;
mod cursor;
mod droid;
mod failure_patterns;
mod gemini;
mod goose;
mod json_lines;
mod message;
mod opencode;
mod pi;
mod plain_text;
pub mod reset_time;
mod tools;
mod usage;

use crate::engine::Act;
use crate::engine::failure::Reason;
use crate::engine::plan::{Agent, Dialect};
use crate::engine::usage::Session;
use failure_patterns::Reasons;
use json_lines::Stream;
use plain_text::Text;
use regex::RegexSet;
use std::path::Path;

/// How one agent speaks, made once for all of a loop's iterations: that takes its time.
#[derive(Clone)]
pub struct Habits {
    dialect: Dialect,
    denials: Option<RegexSet>,
    reasons: Reasons,
}

impl Habits {
    /// This agent's.
    pub fn of(agent: &Agent) -> Self {
        let reasons = Reasons::new(&agent.reasons);
        Self {
            dialect: agent.dialect,
            denials: plain_text::denials(agent),
            reasons,
        }
    }

    /// A reader of what it prints in answer to a prompt. Paths in the workspace are told without it, and what these
    /// sessions had taken before is not counted again.
    pub fn reader(
        &self,
        workspace: &Path,
        sessions: &[Session],
        prompt: impl FnOnce() -> String,
    ) -> Reader {
        match Stream::new(
            self.dialect,
            self.reasons.clone(),
            self.denials.clone(),
            workspace,
            sessions,
        ) {
            Some(stream) => Reader::Stream(stream),
            None => Reader::Text(Text::new(self.denials.clone(), prompt)),
        }
    }

    /// Whether a line of its screen says that it was not allowed something.
    pub fn denies(&self, line: &str) -> bool {
        self.denials
            .as_ref()
            .is_some_and(|denials| denials.is_match(line))
    }

    /// What the last words of an agent that failed mean.
    pub fn reason(&self, words: &str) -> Option<Reason> {
        self.reasons.of(words)
    }
}

/// Takes an agent's acts as they come.
pub type Tell<'a> = dyn FnMut(Act<'_>) + 'a;

/// Reads what an agent prints.
pub enum Reader {
    /// Words for people: what is printed is said.
    Text(Text),
    /// A screen, which only a terminal understands.
    Screen,
    /// One JSON object a line.
    Stream(Stream),
}

impl Reader {
    /// Takes the next bytes, and tells of the acts in them.
    pub fn feed(&mut self, bytes: &[u8], tell: &mut Tell<'_>) {
        match self {
            Self::Text(text) => text.feed(bytes, tell),
            Self::Screen => tell(Act::Painted(bytes.into())),
            Self::Stream(stream) => {
                tell(Act::Raw(bytes.into()));
                stream.feed(bytes, tell);
            }
        }
    }

    /// Takes the end of the output.
    pub fn finish(&mut self, tell: &mut Tell<'_>) {
        match self {
            Self::Text(text) => text.finish(tell),
            Self::Screen => {}
            Self::Stream(stream) => stream.finish(tell),
        }
    }

    /// Whether a tool is at work, as far as is known: then silence says nothing.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.is_busy())
    }
}
