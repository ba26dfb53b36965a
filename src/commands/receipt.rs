//! `ralph receipt`: prints the receipt of a loop that has ended, or writes it to a file.

use super::atomic_file::write_atomically;
use super::open_loop::open;
use crate::agent::redact::Redactor;
use crate::cli::receipt::ReceiptArgs;
use crate::engine::ExitCode;
use crate::engine::receipt::Receipt;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::runner::receipt::{build, to_json};
use crate::ui::print::{note, print_json};

pub(crate) fn receipt(args: &ReceiptArgs) -> Result<ExitCode, CommandError> {
    let handle = open(&args.name)?;
    let json = to_json(&receipt_of(&handle)?).map_err(CommandError::broken)?;
    match &args.output {
        Some(path) => {
            let name = path.display().to_string();
            write_atomically(path, &name, &json, args.force)?;
            note(format!(
                "wrote {name}; `ralph verify {name}` proves it again"
            ));
        }
        None => print_json(json.trim_end())?,
    }
    Ok(ExitCode::Success)
}

/// Builds the receipt of a loop that has ended.
pub(super) fn receipt_of(handle: &LoopHandle) -> Result<Receipt, CommandError> {
    let name = handle.dir.name();
    if handle.view.state.outcome().is_none() || handle.is_live() {
        return Err(CommandError::usage(
            format!("the loop {name:?} has not ended, so it has no receipt"),
            format!("`ralph wait {name}` waits for its end"),
        ));
    }
    let redactor = Redactor::for_plan(&handle.view.state.plan);
    Ok(build(&handle.dir, &redactor)?)
}
