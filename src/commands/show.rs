//! `ralph show`: shows what a loop did, iteration by iteration, or everything about one iteration.

use super::open_loop::open_to_read;
use crate::cli::ShowArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::history::LoopHistory;
use crate::lifecycle::live_view::live;
use crate::ui::print::{print_json, print_styled};
use crate::ui::show::{self, ViewStyle};
use crate::ui::show_json;
use crate::ui::tty::{use_color, width};

pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let handle = open_to_read(&args.name)?;
    let mut history = LoopHistory::read(&handle.dir, handle.liveness, &mut |_, _| {})?;
    // This view has the requests in the inbox, too.
    history.view = live(&handle.dir, handle.view, handle.liveness);
    let style = ViewStyle {
        width: width(),
        color: use_color(),
    };
    let Some(number) = args.iteration else {
        if args.json {
            print_json(&show_json::all(&history).to_string())?;
        } else {
            print_styled(show::all(&history, style))?;
        }
        return Ok(ExitCode::Success);
    };
    let one = history.iteration(number).ok_or_else(|| {
        let existing = match history.iterations.last() {
            None => "no iteration yet".to_owned(),
            Some(newest) => format!("only iterations 1 to {}", newest.number),
        };
        CommandError::usage(
            format!("{:?} has {existing}", args.name),
            format!("`ralph show {}` lists them", args.name),
        )
    })?;
    if args.json {
        print_json(&show_json::one(&history, one).to_string())?;
    } else {
        print_styled(show::one(&history, one, style))?;
    }
    Ok(ExitCode::Success)
}
