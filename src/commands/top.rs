//! `ralph top`: shows all loops on one screen, and steers them.

use crate::cli::top::TopArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use crate::ui::top::run;
use crate::ui::tty::{is_dumb, is_terminal};
use std::io::{IsTerminal, stdin};

pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    if let Some(name) = &args.name {
        state_dir.find_loop(name)?;
    }
    if !stdin().is_terminal() || !is_terminal() || is_dumb() {
        return Err(CommandError::usage(
            "ralph top needs a terminal that can move its cursor",
            "run `ralph ls` to list all loops without one",
        ));
    }
    run(state_dir, args.name.as_deref()).map_err(CommandError::broken)?;
    Ok(ExitCode::Success)
}
