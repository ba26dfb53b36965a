//! `ralph say`: a person's words for the next prompt of a loop.

use crate::cli::SayWords;
use crate::engine::prompt::tells_words;
use crate::engine::{Limit, Outcome, Status};
use crate::lifecycle::failure::Failure;
use crate::lifecycle::handle::Visit;
use crate::store::{Message, inbox};
use crate::ui::say as print;
use crate::ui::status::limit_raised;

pub(crate) fn say(words: &SayWords) -> Result<i32, Failure> {
    let (name, text) = (&words.name, words.text.join(" "));
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "there are no words",
            format!("ralph say {name} \"what it should know\""),
        ));
    }
    let visit = Visit::as_operator(name)?;
    let state = &visit.view.state;
    if matches!(state.outcome(), Some(Outcome::Done { .. })) {
        return Err(Failure::usage(
            format!("{name:?} is done: it has no next prompt"),
            "start a new loop with ralph run; its name may be used again",
        ));
    }
    if !state.is_inside() && !tells_words(&state.plan.context) {
        return Err(Failure::usage(
            format!(
                "the prompt of {name:?} has no place for your words: its context or its template leaves them out"
            ),
            "write them into its prompt file: that is read anew for every iteration",
        ));
    }
    inbox::append(&visit.dir, &Message::Answered { text })?;
    // A person who resumes forgives failures.
    let used_up = state
        .reached()
        .filter(|limit| visit.held || *limit != Limit::Failures);
    let more = used_up.and_then(|limit| limit_raised(limit, state));
    let then = match (visit.status(), more) {
        (Status::Running, None) => String::new(),
        (Status::Running, Some(more)) => {
            format!("there is no next one by its limits: ralph set {name} {more} lets it go on\n")
        }
        (status, None) => format!("it is {}: ralph resume {name}\n", status.word()),
        (status, Some(more)) => {
            format!(
                "it is {}: ralph set {name} {more} && ralph resume {name}\n",
                status.word()
            )
        }
    };
    print(&format!(
        "your words go into the next prompt of {name}\n{then}"
    ));
    Ok(0)
}
