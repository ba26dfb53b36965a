//! The words of `ralph bus`: how agents and people tell one another something.

use clap::{Args, Subcommand};

/// What to do with a bus.
#[derive(Debug, Subcommand)]
pub enum BusVerb {
    /// Post a message; from inside an iteration, its loop passes it on
    Post(PostWords),
    /// Print the last messages
    Tail(TailWords),
}

/// `ralph bus post`
#[derive(Debug, Args)]
pub struct PostWords {
    /// What kind of message it is
    #[arg(long = "type", value_name = "T", default_value = "note")]
    pub kind: String,
    /// Post to this loop's bus as well, and to its project's [default: the project's alone]
    #[arg(long = "loop", value_name = "NAME")]
    pub to: Option<String>,
    /// The words
    #[arg(required = true)]
    pub text: Vec<String>,
}

/// `ralph bus tail`
#[derive(Debug, Args)]
pub struct TailWords {
    /// The loop [default: from inside an iteration that loop, else the project]
    pub name: Option<String>,
    /// Of the loop's project, or of this directory's
    #[arg(long)]
    pub project: bool,
    /// At most so many messages
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    pub count: usize,
    /// Go on as more comes; that of a loop until it ends
    #[arg(short, long)]
    pub follow: bool,
    /// As they are stored, one JSON object a line
    #[arg(long)]
    pub json: bool,
}
