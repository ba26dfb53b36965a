//! Opens loops for commands and prints the warnings from opening them.

use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::store::StateDir;
use crate::ui::print::warn_all;

/// Opens a loop by name.
pub(super) fn open(name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open(name).map(print_warnings)
}

/// Opens a loop in the given state directory.
pub(super) fn open_in(state_dir: StateDir, name: &str) -> Result<LoopHandle, CommandError> {
    LoopHandle::open_in(state_dir, name).map(print_warnings)
}

/// Opens a loop for a command that an agent may not use on its own loop.
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
