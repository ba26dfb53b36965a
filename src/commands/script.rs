//! `ralph __script`: the process of a scripted agent.

use crate::agent::script::{ScriptContext, parse, this_program};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use std::path::Path;

pub(crate) fn play(file: &Path) -> Result<ExitCode, CommandError> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        CommandError::broken(format!(
            "cannot read the script {}: {error}",
            file.display()
        ))
    })?;
    let script = parse(&text).map_err(|wrong| {
        CommandError::broken(format!(
            "{}:{}: {}",
            file.display(),
            wrong.line,
            wrong.message
        ))
    })?;
    let number = std::env::var("RALPH_ITERATION")
        .ok()
        .and_then(|number| number.parse().ok());
    let code = script.run(&ScriptContext {
        iteration: number.unwrap_or(1),
        task_dir: std::env::var_os("RALPH_TASK_DIR").map(Into::into),
        workspace: std::env::current_dir().map_err(CommandError::broken)?,
        ralph: this_program(),
    });
    Ok(ExitCode::from_code(code))
}
