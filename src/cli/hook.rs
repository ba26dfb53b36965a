//! The words of `ralph hook`: what the client of a session calls, never a person.

use clap::{Args, Subcommand, ValueEnum};

/// What the client has to say; its JSON is on standard input.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// A person has typed something
    Prompt(HookWords),
    /// The agent wants to stop
    Stop(HookWords),
    /// The agent's turn broke off
    Failure(HookWords),
    /// The session is over
    End(HookWords),
}

/// Who calls.
#[derive(Clone, Copy, Debug, Args)]
pub struct HookWords {
    /// The client
    #[arg(long, value_enum, default_value = "claude")]
    pub client: Client,
    /// After how many seconds the client would go on without an answer
    #[arg(long, value_name = "SECONDS")]
    pub within: Option<u64>,
}

/// A client that a loop can live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
}

impl Client {
    /// The name of its preset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}
