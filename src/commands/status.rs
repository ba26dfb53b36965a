//! `ralph status`: shows a loop's state.

use super::open_loop::open_to_read;
use super::plugin::conflicting_plugin;
use crate::cli::StatusArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::history::LoopHistory;
use crate::lifecycle::live_view::live;
use crate::lifecycle::session::client_of;
use crate::ui::print::{print_json, print_styled, print_text};
use crate::ui::show::ViewStyle;
use crate::ui::status::{object, text};
use crate::ui::status_view::status_view;
use crate::ui::tty::{is_terminal, use_color, width};

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let mut handle = open_to_read(&args.name)?;
    handle.view = live(&handle.dir, handle.view, handle.liveness);
    let directory = handle.dir.path().display().to_string();
    if args.json {
        print_json(&object(&handle.view, handle.liveness, &directory).to_string())?;
    } else {
        if is_terminal() {
            let mut history = LoopHistory::read(&handle.dir, handle.liveness, &mut |_, _| {})?;
            // This view has the requests in the inbox, too.
            history.view = handle.view.clone();
            let style = ViewStyle {
                width: width(),
                color: use_color(),
            };
            print_styled(status_view(&history, &directory, style))?;
        } else {
            print_text(&text(&handle.view, handle.liveness, &directory))?;
        }
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
