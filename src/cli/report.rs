//! The arguments of `ralph report` and `ralph stats`.

use super::fleet_target::FleetTarget;
use crate::config::units::Millis;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The help below the arguments of `ralph report`.
pub(crate) const REPORT_HELP: &str = "Without --output, the report goes to NAME-report.html in the \
    current directory, or to the loop's own directory while the loop works in the current one.\n\n\
    Examples:\n  ralph report shop --open\n  ralph report shop --md -o -\n  \
    ralph report --since 12h           all loops of a night on one page\n  \
    ralph report shop --github --junit checks.xml";

/// The arguments of `ralph report`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate command-line flag"
)]
pub(crate) struct ReportArgs {
    /// The loop; also one in the archive
    #[arg(required_unless_present = "since", conflicts_with = "since")]
    pub(crate) name: Option<String>,
    /// Report all loops that were active in this time, for example 12h
    #[arg(long, value_name = "D")]
    pub(crate) since: Option<Millis>,
    /// Write the report to this file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write Markdown instead of HTML
    #[arg(long)]
    pub(crate) md: bool,
    /// Open the report in the browser
    #[arg(long, conflicts_with = "md")]
    pub(crate) open: bool,
    /// In GitHub Actions: write the job summary and annotations instead
    #[arg(long)]
    pub(crate) github: bool,
    #[arg(
        long,
        value_name = "FILE",
        help = "Write the results of the checks to this file as JUnit XML instead"
    )]
    pub(crate) junit: Option<PathBuf>,
    /// Overwrite a file that is not a report
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}

/// What the rows of `ralph stats` are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsBy {
    #[default]
    Day,
    Agent,
    Model,
    Repository,
}

/// The arguments of `ralph stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Count only iterations that began in this time, for example 7d [default: all]
    #[arg(long, value_name = "D")]
    pub(crate) since: Option<Millis>,
    /// What each row is about
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = StatsBy::Day, hide_possible_values = true)]
    pub(crate) by: StatsBy,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetTarget,
}
