//! `ralph status`: shows the state of a loop.

use super::open_loop::open;
use super::plugin::{claude_config_dir, enabled_original};
use crate::cli::StatusArgs;
use crate::engine::{ExitCode, State};
use crate::lifecycle::error::CommandError;
use crate::ui::print::print_output;
use crate::ui::status::{object, text};

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let handle = open(&args.name)?;
    let directory = handle.dir.path().display().to_string();
    if args.json {
        print_output(&format!(
            "{}\n",
            object(&handle.view, handle.held, &directory)
        ))?;
    } else {
        print_output(&text(&handle.view, handle.held, &directory))?;
        if let Some(plugin) = conflicting_plugin(&handle.view.state) {
            print_output(&format!(
                "Warning: {plugin} reacts to the same stop events; claude plugin disable {plugin} turns it off\n"
            ))?;
        }
    }
    Ok(ExitCode::Success)
}

/// Another plugin that handles the stop events of this loop's session.
fn conflicting_plugin(state: &State) -> Option<String> {
    let is_claude = state
        .plan
        .session
        .as_ref()
        .is_some_and(|session| session.client == "claude");
    enabled_original(
        &claude_config_dir()
            .ok()
            .filter(|_| is_claude && state.is_in_session())?,
    )
}
