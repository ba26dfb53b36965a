//! Opens loops for commands and prints the warnings from opening them.

use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::lifecycle::requests::{Delivery, deliver};
use crate::store::{InboxMessage, StateDir, inbox};
use crate::ui::print::{report_error, warn, warn_all};
use std::collections::BTreeSet;

/// Opens a loop by name.
pub(super) fn open(name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open(name).map(print_warnings)
}

/// Opens a loop, or an archived one, for a command that only reads it.
pub(super) fn open_to_read(name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open_to_read(name).map(print_warnings)
}

/// Opens a loop in the given state directory.
pub(super) fn open_in(state_dir: StateDir, name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open_in(state_dir, name).map(print_warnings)
}

/// Opens a loop for a command that an agent may use only on loops that it has started.
pub(super) fn open_as_operator(name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open_as_operator(name).map(print_warnings)
}

/// Opens a loop for a command that would deadlock if an agent used it on its own loop.
pub(super) fn open_to_wait(name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open_to_wait(name).map(print_warnings)
}

fn print_warnings(mut handle: LoopHandle) -> LoopHandle {
    warn_all(std::mem::take(&mut handle.warnings));
    handle
}

/// Opens all loops before a command changes the first, so that an unknown name is an error at once.
pub(super) fn open_all_as_operator(names: &[String]) -> Result<Vec<LoopHandle>, CommandError> {
    let mut known = BTreeSet::new();
    let names = names.iter().filter(|name| known.insert(*name));
    names.map(|name| open_as_operator(name)).collect()
}

/// Applies a command to each item, and returns the first exit code that is not success. With several
/// items, an error is reported and does not keep the command from the others.
pub(super) fn for_each<T>(
    items: Vec<T>,
    mut command: impl FnMut(T) -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    let is_single = items.len() == 1;
    let mut code = ExitCode::Success;
    for item in items {
        let result = command(item);
        let next = if is_single {
            result?
        } else {
            result.unwrap_or_else(report_error)
        };
        if code == ExitCode::Success {
            code = next;
        }
    }
    Ok(code)
}

/// Sends messages to a loop. If it has a runner, waits until the runner has read them.
pub(super) fn send(handle: &LoopHandle, messages: &[InboxMessage]) -> Result<(), CommandError> {
    if !handle.is_live() || handle.is_in_session() {
        for message in messages {
            inbox::append(&handle.dir, message)?;
        }
    } else if deliver(&handle.dir, messages)? == Delivery::Unread {
        let name = handle.dir.name();
        warn(format!(
            "{name:?} has not read the request yet; `ralph status {name}` shows what it does"
        ));
    }
    Ok(())
}
