//! `ralph done` and `ralph blocked`: an agent writes a marker for its own loop.

use crate::agent::redact::Redactor;
use crate::agent::task_dir::TaskDir;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use std::path::PathBuf;

pub(crate) fn done() -> Result<ExitCode, CommandError> {
    write_marker("DONE", "")
}

pub(crate) fn blocked(why: &str) -> Result<ExitCode, CommandError> {
    if why.trim().is_empty() {
        return Err(CommandError::usage(
            "the reason is empty",
            "add the reason: run `ralph blocked \"which of the two APIs should I use?\"`",
        ));
    }
    write_marker("BLOCKED", why)
}

fn write_marker(name: &str, text: &str) -> Result<ExitCode, CommandError> {
    let Some(dir) = std::env::var_os("RALPH_TASK_DIR").filter(|dir| !dir.is_empty()) else {
        return Err(CommandError::usage(
            "not inside a loop: RALPH_TASK_DIR is not set",
            "only an agent can use this command; to end a loop yourself, use `ralph stop NAME`",
        ));
    };
    let text = Redactor::from_env().redact_text(text);
    TaskDir::write_marker(&PathBuf::from(dir), name, &text).map_err(CommandError::broken)?;
    Ok(ExitCode::Success)
}
