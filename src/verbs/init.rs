//! `ralph init` and `ralph template`: the prompt that one begins with.

use super::failure::Failure;
use super::place::put;
use crate::cli::setup::InitWords;
use crate::show::say;
use std::path::Path;

const STARTER: &str = include_str!("../../presets/starter.md");

pub(super) fn template() -> i32 {
    say(STARTER);
    0
}

pub(super) fn init(words: &InitWords) -> Result<i32, Failure> {
    let name = "PROMPT.md";
    let over = put(Path::new(name), name, STARTER, words.force)?;
    say(&created(name, over));
    Ok(0)
}

fn created(name: &str, over: bool) -> String {
    format!("created {name}{}\n", if over { " (overwritten)" } else { "" })
}
