//! `ralph status`: where a loop stands.

use super::failure::Failure;
use super::visit::Visit;
use crate::cli::StatusWords;
use crate::show::say;
use crate::show::status::{object, text};

pub(super) fn status(words: &StatusWords) -> Result<i32, Failure> {
    let visit = Visit::to(&words.name)?;
    let directory = visit.dir.path().display().to_string();
    if words.json {
        say(&format!("{}\n", object(&visit.view, visit.held, &directory)));
    } else {
        say(&text(&visit.view, visit.held, &directory));
    }
    Ok(0)
}
