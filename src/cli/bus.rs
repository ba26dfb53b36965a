//! The arguments of `ralph bus`.

use clap::{Args, Subcommand};

/// The subcommands of `ralph bus`.
#[derive(Debug, Subcommand)]
pub(crate) enum BusCommand {
    /// Post a message; inside an iteration, the loop delivers it
    Post(PostArgs),
    /// Print the last messages
    Tail(TailArgs),
}

/// The arguments of `ralph bus post`.
#[derive(Debug, Args)]
pub(crate) struct PostArgs {
    /// Set the message's type
    #[arg(long = "type", value_name = "T", default_value = "note")]
    pub(crate) kind: String,
    /// Post to this loop's bus and its project's [default: this project's bus only]
    #[arg(long = "loop", value_name = "NAME")]
    pub(crate) to: Option<String>,
    /// The message
    #[arg(required = true, value_parser = super::free_text::parser())]
    pub(crate) text: Vec<String>,
}

/// The arguments of `ralph bus tail`.
#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The loop [default: the current loop inside an iteration, else the project]
    pub(crate) name: Option<String>,
    /// Read the bus of the loop's project, or of this directory's project
    #[arg(long)]
    pub(crate) project: bool,
    /// Print at most N messages
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) count: usize,
    /// Keep printing new messages; for a loop, until it ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print messages as stored, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
