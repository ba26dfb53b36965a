//! `ralph init` and `ralph template`: write or print the starter prompt and settings.

mod detect;
mod settings;

use super::atomic_file::write_atomically;
use super::workspace::ChosenWorkspace;
use crate::cli::setup::InitArgs;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::ui::print::{print_message, print_output};

const STARTER: &str = include_str!("../../../presets/starter.md");

pub(crate) fn template() -> Result<ExitCode, CommandError> {
    print_output(STARTER)?;
    Ok(ExitCode::Success)
}

pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, CommandError> {
    let workspace = ChosenWorkspace::choose(args.here)?.path;
    if args.settings {
        settings::write(&workspace, args.force)?;
        return Ok(ExitCode::Success);
    }
    let name = "PROMPT.md";
    let replaced = write_atomically(&workspace.join(name), name, STARTER, args.force)?;
    print_message(&created_message(name, replaced));
    Ok(ExitCode::Success)
}

fn created_message(name: &str, replaced: bool) -> String {
    format!(
        "created {name}{}\n",
        if replaced { " (overwritten)" } else { "" }
    )
}
