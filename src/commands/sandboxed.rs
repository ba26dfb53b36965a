//! Refuses commands that cannot work inside an agent's sandbox, where no loop is visible.

use crate::cli::Command;
use crate::cli::bus::BusCommand;
use crate::lifecycle::error::CommandError;
use crate::sandbox;

/// Returns an error if this process runs in a sandbox and the command needs the loops outside.
pub(super) fn reject_in_sandbox(command: &Command) -> Result<(), CommandError> {
    if std::env::var_os(sandbox::VARIABLE).is_none_or(|kind| kind.is_empty()) {
        return Ok(());
    }
    let name = match command {
        Command::Run(_) => "run",
        Command::Spawn(_) => "spawn",
        Command::Attach(_) => "attach",
        Command::Resume(_) => "resume",
        Command::Status(_) => "status",
        Command::Ls(_) => "ls",
        Command::Top(_) => "top",
        Command::Logs(_) => "logs",
        Command::Ui(_) => "ui",
        Command::Diff(_) => "diff",
        Command::Rewind(_) => "rewind",
        Command::Receipt(_) => "receipt",
        Command::Verify(_) => "verify",
        Command::Selftest(_) => "selftest",
        Command::Pause(_) => "pause",
        Command::Stop(_) => "stop",
        Command::Set(_) => "set",
        Command::Say(_) => "say",
        Command::Wait(_) => "wait",
        Command::Rm(_) => "rm",
        Command::Bus {
            command: BusCommand::Tail(_),
        } => "bus tail",
        _ => return Ok(()),
    };
    Err(CommandError::usage(
        format!("`ralph {name}` does not work in a sandbox: no loop is visible here"),
        "an agent in a sandbox can use `ralph done`, `ralph blocked WHY` and `ralph bus post TEXT`; run everything else outside",
    ))
}
