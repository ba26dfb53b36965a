//! The words of the verbs that set things up and look around, and start no loop.

use clap::{Args, Command};
use clap_complete::Shell;

/// `ralph init`
#[derive(Debug, Args)]
pub struct InitWords {
    /// Write .ralph/settings.toml instead, with the checks that fit this directory
    #[arg(long)]
    pub settings: bool,
    /// Write over the file that is there
    #[arg(long)]
    pub force: bool,
}

/// `ralph doctor`
#[derive(Debug, Args)]
pub struct DoctorWords {
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ralph completions`
#[derive(Debug, Args)]
pub struct CompletionsWords {
    /// The shell
    pub shell: Shell,
}

/// `ralph man`
#[derive(Debug, Args)]
pub struct ManWords {
    /// Of this verb [default: of ralph as a whole]
    pub verb: Option<String>,
}

/// The words that can be typed, without those that are not meant to be.
pub fn visible(all: &Command) -> Command {
    let mut visible = Command::new("ralph")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true);
    visible = visible.about(all.get_about().cloned().unwrap_or_default());
    visible = visible.after_help(all.get_after_help().cloned().unwrap_or_default());
    visible.subcommands(
        all.get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .cloned(),
    )
}
