//! `ralph done` and `ralph blocked`: how an agent speaks to its own loop.

use crate::agent::task_dir::TaskDir;
use crate::lifecycle::failure::Failure;
use std::path::PathBuf;

pub(crate) fn done() -> Result<i32, Failure> {
    mark("DONE", "ralph done")
}

pub(crate) fn blocked(why: &str) -> Result<i32, Failure> {
    if why.trim().is_empty() {
        return Err(Failure::usage(
            "there is no reason",
            "ralph blocked \"what a person must settle\"",
        ));
    }
    mark("BLOCKED", why)
}

fn mark(name: &str, words: &str) -> Result<i32, Failure> {
    let Some(dir) = std::env::var_os("RALPH_TASK_DIR").filter(|dir| !dir.is_empty()) else {
        return Err(Failure::usage(
            "this is not inside a loop: RALPH_TASK_DIR is not set",
            "these two verbs are for agents; a person has ralph stop and ralph pause",
        ));
    };
    TaskDir::mark(&PathBuf::from(dir), name, words).map_err(Failure::broken)?;
    Ok(0)
}
