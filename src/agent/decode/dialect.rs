//! The table of output formats: the data that each format reports, and its decoder.

use super::json_lines::EventDecoder;
use super::tools::ToolTracker;
use super::{claude, codex, copilot, cursor, droid, gemini, goose, opencode, pi};
use crate::engine::plan::DialectName;
use crate::engine::usage::SessionUsage;

/// A format in which agents print events, one JSON object per line. Plain text has no row.
pub(crate) struct Dialect {
    /// The format's name in presets and in the journal.
    pub(crate) name: &'static str,
    /// Whether the format's events report tokens.
    pub(crate) reports_tokens: bool,
    /// Whether the format's events report the cost in dollars.
    pub(crate) reports_cost: bool,
    /// Creates a decoder. Usage that is already counted in the passed sessions is not counted
    /// again.
    pub(super) decoder: fn(ToolTracker, &[SessionUsage]) -> Box<dyn EventDecoder>,
}

/// All formats, named after the agent that introduced them. The formats of Qwen Code and Amp are
/// variants of Claude Code's.
pub(crate) const DIALECTS: [Dialect; 11] = [
    Dialect {
        name: "claude",
        reports_tokens: true,
        reports_cost: true,
        decoder: |tools, sessions| Box::new(claude::ClaudeDecoder::resuming(tools, sessions)),
    },
    Dialect {
        name: "codex",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, sessions| Box::new(codex::CodexDecoder::resuming(tools, sessions)),
    },
    Dialect {
        name: "gemini",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(gemini::GeminiDecoder::new(tools)),
    },
    Dialect {
        name: "opencode",
        reports_tokens: true,
        reports_cost: true,
        decoder: |tools, _| Box::new(opencode::OpencodeDecoder::new(tools)),
    },
    Dialect {
        name: "qwen",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(claude::ClaudeDecoder::qwen(tools)),
    },
    Dialect {
        name: "copilot",
        reports_tokens: false,
        reports_cost: false,
        decoder: |tools, _| Box::new(copilot::CopilotDecoder::new(tools)),
    },
    Dialect {
        name: "droid",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(droid::DroidDecoder::new(tools)),
    },
    Dialect {
        name: "pi",
        reports_tokens: true,
        reports_cost: true,
        decoder: |tools, _| Box::new(pi::PiDecoder::new(tools)),
    },
    Dialect {
        name: "amp",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(claude::ClaudeDecoder::amp(tools)),
    },
    Dialect {
        name: "cursor",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(cursor::CursorDecoder::new(tools)),
    },
    Dialect {
        name: "goose",
        reports_tokens: true,
        reports_cost: false,
        decoder: |tools, _| Box::new(goose::GooseDecoder::new(tools)),
    },
];

impl Dialect {
    /// Finds a format by its name; `None` for plain text.
    pub(crate) fn find(name: &DialectName) -> Option<&'static Self> {
        DIALECTS.iter().find(|dialect| dialect.name == name.0)
    }
}
