//! The scripted agent's own process.

use crate::agent::script::{Stage, parse, this_program};
use crate::lifecycle::failure::Failure;
use std::path::Path;

pub(crate) fn play(file: &Path) -> Result<i32, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::broken(format!("{}: {error}", file.display())))?;
    let script = parse(&text).map_err(|wrong| {
        Failure::broken(format!(
            "{}:{}: {}",
            file.display(),
            wrong.line,
            wrong.message
        ))
    })?;
    let number = std::env::var("RALPH_ITERATION")
        .ok()
        .and_then(|number| number.parse().ok());
    Ok(script.play(&Stage {
        iteration: number.unwrap_or(1),
        task_dir: std::env::var_os("RALPH_TASK_DIR").map(Into::into),
        dir: std::env::current_dir().map_err(Failure::broken)?,
        ralph: this_program(),
    }))
}
