//! Moves a loop from the foreground to the background.

use super::run::settings_paths;
use crate::config::{Settings, SettingsFiles};
use crate::engine::event::Request;
use crate::engine::{ExitCode, Plan};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::launch::{launch, location_text};
use crate::lifecycle::locks::{LoopLocks, mark_as_starting};
use crate::lifecycle::tmux::Tmux;
use crate::store::{InboxMessage, LoopDir, StateDir, cache};
use crate::ui::print::print_message;

/// Continues a loop that has paused for it in the background: in a tmux window if the settings and
/// the system allow it, else as a plain process.
pub(super) fn continue_in_background(dir: &LoopDir) -> Result<ExitCode, CommandError> {
    let (state_dir, name) = (StateDir::containing(dir), dir.name());
    let plan = cache::read(dir)?.state.plan;
    let tmux = configured_tmux(&plan).filter(|_| Tmux::check_version().is_ok());
    let locks = LoopLocks::acquire_own(dir, &plan)?;
    let _start_mark = mark_as_starting(dir, &plan)?;
    drop(locks);
    let go = InboxMessage::Asked {
        request: Request::Go,
    };
    launch(&state_dir, dir, tmux.as_ref(), &[go]).map_err(|error| {
        error.with_hint(format!(
            "the loop is paused: run `ralph resume {name}` to continue it"
        ))
    })?;
    print_message(&format!(
        "{name} continues in the background ({})\nto watch it, run `ralph attach {name}`; to stop \
         it, run `ralph stop {name}`\n",
        location_text(name, tmux.as_ref())
    ));
    Ok(ExitCode::Success)
}

/// Returns the tmux server of the current settings; `None` if they turn tmux off.
pub(super) fn configured_tmux(plan: &Plan) -> Option<Tmux> {
    let paths = settings_paths(plan.workspace.clone(), None);
    let settings = Settings::from_layers(&SettingsFiles::read(&paths).ok()?.into_stack());
    settings.tmux.then_some(Tmux {
        socket: settings.tmux_socket,
    })
}
