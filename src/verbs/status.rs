//! `ralph status`: where a loop stands.

use super::failure::{Failure, answer};
use super::visit::Visit;
use crate::cli::StatusWords;
use crate::show::status::{object, text};

pub(super) fn status(words: &StatusWords) -> Result<i32, Failure> {
    let visit = Visit::to(&words.name)?;
    let directory = visit.dir.path().display().to_string();
    if words.json {
        answer(&format!("{}\n", object(&visit.view, visit.held, &directory)))?;
    } else {
        answer(&text(&visit.view, visit.held, &directory))?;
    }
    Ok(0)
}
