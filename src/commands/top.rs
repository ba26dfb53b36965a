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
    let named = args.name.as_deref().map(|name| find(&state_dir, name));
    let named = named.transpose()?;
    if !stdin().is_terminal() || !is_terminal() || is_dumb() {
        return Err(CommandError::usage(
            "ralph top needs a terminal that can move its cursor",
            "run `ralph ls` to list all loops without one",
        ));
    }
    let (name, is_archived) = named.unzip();
    let is_archived = is_archived.unwrap_or(false);
    run(state_dir, name.as_deref(), is_archived).map_err(CommandError::broken)?;
    Ok(ExitCode::Success)
}

/// Returns the name of a loop's directory, and whether the loop is archived.
fn find(state_dir: &StateDir, name: &str) -> Result<(String, bool), CommandError> {
    match state_dir.find_loop(name) {
        Ok(dir) => Ok((dir.name().to_owned(), false)),
        Err(error) => match state_dir.find_archived(name) {
            Some(dir) => Ok((dir.name().to_owned(), true)),
            None => Err(error.into()),
        },
    }
}
