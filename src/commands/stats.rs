//! `ralph stats`: adds up what loops cost, how long they took and how they ended.

use crate::cli::report::{StatsArgs, StatsBy};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use crate::ui::age::now_ms;
use crate::ui::print::{print_json, print_styled, warn_all};
use crate::ui::stats::{GroupBy, collect, text};
use crate::ui::tty;

pub(crate) fn stats(args: &StatsArgs) -> Result<ExitCode, CommandError> {
    let by = match args.by {
        StatsBy::Day => GroupBy::Day,
        StatsBy::Agent => GroupBy::Agent,
        StatsBy::Model => GroupBy::Model,
        StatsBy::Repository => GroupBy::Repository,
    };
    let since_ms = args.since.map(|since| {
        let ms = i64::try_from(since.0).unwrap_or(i64::MAX);
        now_ms().saturating_sub(ms)
    });
    let (stats, warnings) = collect(&StateDir::locate()?, by, since_ms)?;
    warn_all(warnings);
    if args.json {
        print_json(&serde_json::to_string(&stats).map_err(CommandError::broken)?)?;
    } else {
        print_styled(text(&stats, tty::width(), tty::use_color()))?;
    }
    Ok(ExitCode::Success)
}
