//! The arguments of `ralph hook`, which clients call with JSON on standard input.

use clap::{Args, Subcommand, ValueEnum};

/// The hook events of a session.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// The user submitted a prompt
    Prompt(HookArgs),
    /// The agent wants to stop
    Stop(HookArgs),
    /// The agent's turn failed
    Failure(HookArgs),
    /// The session ended
    End(HookArgs),
}

/// The arguments of every hook event.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct HookArgs {
    /// The client that calls
    #[arg(long, value_enum, default_value = "claude")]
    pub(crate) client: ClientKind,
    /// The number of seconds after which the client stops waiting for an answer
    #[arg(long, value_name = "SECONDS")]
    pub(crate) within: Option<u64>,
}

/// A client whose sessions can run a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientKind {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
}

impl ClientKind {
    /// The name of its program and of its preset.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}
