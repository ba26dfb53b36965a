//! The words of the verbs that set things up and look around, and start no loop.

use clap::Args;

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
