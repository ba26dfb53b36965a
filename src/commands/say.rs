//! `ralph say`: adds a message to a loop's next prompt.

use super::open_loop::open_as_operator;
use crate::cli::SayArgs;
use crate::engine::prompt::includes_notes;
use crate::engine::{ExitCode, Outcome, Status};
use crate::lifecycle::error::CommandError;
use crate::store::{InboxMessage, inbox};
use crate::ui::print::print_message;

pub(crate) fn say(args: &SayArgs) -> Result<ExitCode, CommandError> {
    let (name, text) = (&args.name, args.text.join(" "));
    if text.trim().is_empty() {
        return Err(CommandError::usage(
            "the message is empty",
            format!("add the text: run `ralph say {name} \"what the agent should know\"`"),
        ));
    }
    let handle = open_as_operator(name)?;
    let state = &handle.view.state;
    if matches!(state.outcome(), Some(Outcome::Done { .. })) {
        return Err(CommandError::usage(
            format!("{name:?} is done: it has no next prompt"),
            "start a new loop with `ralph run`; you can reuse the name",
        ));
    }
    if !state.is_in_session() && !includes_notes(&state.plan.context) {
        return Err(CommandError::usage(
            format!(
                "{name:?} cannot receive messages: its --context or prompt template leaves them out"
            ),
            "edit its prompt file instead; ralph reads it again before every iteration",
        ));
    }
    inbox::append(&handle.dir, &InboxMessage::Answered { text })?;
    // Resuming a loop resets its failure count.
    let used_up = state
        .reached_limit()
        .filter(|limit| handle.held || !limit.row().is_reset_by_resume);
    let raised = used_up.and_then(|limit| state.raised_limit(limit));
    let note = match (handle.status(), raised) {
        (Status::Running, None) => String::new(),
        (Status::Running, Some(raised)) => {
            format!(
                "its limits allow no further iteration; to allow more, run `ralph set {name} {raised}`\n"
            )
        }
        (status, None) => format!(
            "its status is {}; to continue, run `ralph resume {name}`\n",
            status.as_str()
        ),
        (status, Some(raised)) => {
            format!(
                "its status is {}; to continue, run `ralph set {name} {raised} && ralph resume {name}`\n",
                status.as_str()
            )
        }
    };
    print_message(&format!(
        "your message will be in the next prompt of {name}\n{note}"
    ));
    Ok(ExitCode::Success)
}
