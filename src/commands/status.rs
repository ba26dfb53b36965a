//! `ralph status`: where a loop stands.

use super::plugin::{claude_config_dir, original_enabled};
use crate::cli::StatusWords;
use crate::engine::State;
use crate::lifecycle::failure::{Failure, answer};
use crate::lifecycle::handle::Visit;
use crate::ui::status::{object, text};

pub(crate) fn status(words: &StatusWords) -> Result<i32, Failure> {
    let visit = Visit::to(&words.name)?;
    let directory = visit.dir.path().display().to_string();
    if words.json {
        answer(&format!(
            "{}\n",
            object(&visit.view, visit.held, &directory)
        ))?;
    } else {
        answer(&text(&visit.view, visit.held, &directory))?;
        if let Some(rival) = rival(&visit.view.state) {
            answer(&format!(
                "Mind: {rival} hears the same stops; claude plugin disable {rival} ends that\n"
            ))?;
        }
    }
    Ok(0)
}

/// Another plugin that may catch what this loop's session is told.
fn rival(state: &State) -> Option<String> {
    let is_claude = state
        .plan
        .session
        .as_ref()
        .is_some_and(|session| session.client == "claude");
    original_enabled(
        &claude_config_dir()
            .ok()
            .filter(|_| is_claude && state.is_inside())?,
    )
}
