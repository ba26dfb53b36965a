//! `ralph status`: shows a loop's state.

use super::open_loop::open;
use super::plugin::conflicting_plugin;
use crate::cli::StatusArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::live_view::live;
use crate::lifecycle::session::client_of;
use crate::ui::print::{print_json, print_text};
use crate::ui::status::{object, text};
use crate::ui::tty;

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let mut handle = open(&args.name)?;
    handle.view = live(&handle.dir, handle.view, handle.liveness);
    let directory = handle.dir.path().display().to_string();
    if args.json {
        print_json(&object(&handle.view, handle.liveness, &directory).to_string())?;
    } else {
        let status = text(&handle.view, handle.liveness, &directory, tty::width());
        print_text(&status)?;
        let state = &handle.view.state;
        let client = client_of(state).filter(|_| state.is_in_session());
        if let Some((client, plugin)) =
            client.and_then(|client| Some((client, conflicting_plugin(client)?)))
        {
            print_text(&format!(
                "Warning: {plugin} reacts to the same stop events; to turn it off, run `{} plugin disable {plugin}`\n",
                client.name
            ))?;
        }
    }
    Ok(ExitCode::Success)
}
