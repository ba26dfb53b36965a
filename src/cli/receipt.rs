//! The arguments of `ralph receipt` and `ralph verify`.

use clap::Args;
use std::path::PathBuf;

/// The arguments of `ralph receipt`.
#[derive(Debug, Args)]
pub(crate) struct ReceiptArgs {
    /// The loop
    pub(crate) name: String,
    /// Write the receipt to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// The arguments of `ralph verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The loop, or the file of a receipt
    #[arg(id = "name", value_name = "NAME|FILE")]
    pub(crate) what: String,
    /// Run the commands of a receipt without asking
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
