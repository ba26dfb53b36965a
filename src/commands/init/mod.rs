//! `ralph init` and `ralph template`: the prompt and the settings that one begins with.

mod detect;
mod settings;

use super::new_file::put;
use super::run::workspace;
use crate::cli::setup::InitWords;
use crate::lifecycle::failure::{Failure, answer};
use crate::ui::say;
use std::path::Path;

const STARTER: &str = include_str!("../../../presets/starter.md");

pub(crate) fn template() -> Result<i32, Failure> {
    answer(STARTER)?;
    Ok(0)
}

pub(crate) fn init(words: &InitWords) -> Result<i32, Failure> {
    if words.settings {
        settings::write(&workspace()?, words.force)?;
        return Ok(0);
    }
    let name = "PROMPT.md";
    let over = put(Path::new(name), name, STARTER, words.force)?;
    say(&created(name, over));
    Ok(0)
}

fn created(name: &str, over: bool) -> String {
    format!(
        "created {name}{}\n",
        if over { " (overwritten)" } else { "" }
    )
}
