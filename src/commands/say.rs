//! `ralph say`: adds a message to a loop's next prompt.

use super::open_loop::{open_as_operator, send};
use crate::agent::redact::Redactor;
use crate::cli::SayArgs;
use crate::engine::prompt::includes_notes;
use crate::engine::{ExitCode, Outcome, State, Status};
use crate::lifecycle::error::CommandError;
use crate::store::InboxMessage;
use crate::ui::outcome_text::resume_command;
use crate::ui::print::print_message;

pub(crate) fn say(args: &SayArgs) -> Result<ExitCode, CommandError> {
    print_message(&send_message(&args.name, &args.text.join(" "))?);
    Ok(ExitCode::Success)
}

/// Sends a message to a loop's agent, and returns what to print about it.
pub(super) fn send_message(name: &str, text: &str) -> Result<String, CommandError> {
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
    check_reads_messages(name, state)?;
    send(&handle, &[message(text)])?;
    let note = match (handle.status(), state.raised_limits()) {
        (Status::Starting | Status::Running, None) => String::new(),
        (Status::Starting | Status::Running, Some(raised)) => {
            format!(
                "its limits allow no further iteration; to allow more, run `ralph set {name} {raised}`\n"
            )
        }
        (status, _) => format!(
            "its status is {}; to continue, run `{}`\n",
            status.as_str(),
            resume_command(name, state, None)
        ),
    };
    Ok(format!(
        "your message will be in the next prompt of {name}\n{note}"
    ))
}

/// Returns the message to a loop with a person's text, redacted.
pub(super) fn message(text: &str) -> InboxMessage {
    InboxMessage::Answered {
        text: Redactor::from_env().redact_text(text).into_owned(),
    }
}

/// Checks that the loop's prompts include messages.
pub(super) fn check_reads_messages(name: &str, state: &State) -> Result<(), CommandError> {
    if state.is_in_session() || includes_notes(&state.plan.context) {
        return Ok(());
    }
    Err(CommandError::usage(
        format!(
            "{name:?} cannot receive messages: its --context or prompt template leaves them out"
        ),
        "edit its prompt file instead; ralph reads it again before every iteration",
    ))
}
