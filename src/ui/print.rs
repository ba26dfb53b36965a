//! Prints to standard output and standard error. Nothing below `ui` prints.

use super::adapt;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use rustix::termios::{QueueSelector, tcflush};
use std::fmt::Display;
use std::io::{self, Write, stderr, stdout};

/// Prints a command's output. Ignores a closed pipe, because its reader needs no more output.
/// Returns any other write error.
pub(crate) fn print_output(text: &str) -> Result<(), CommandError> {
    match write_out(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| {
            CommandError::broken(format!("cannot write the output to stdout: {error}"))
        }),
    }
}

/// Prints a message about a completed command. Ignores write errors, because the command has
/// succeeded.
pub(crate) fn print_message(text: &str) {
    let _ = write_out(&adapt(text.to_owned()));
}

/// Prints a warning to standard error.
pub(crate) fn warn(message: impl Display) {
    write_err(&format!("ralph: warning: {message}"));
}

/// Prints a line that is neither a warning nor a command's output to standard error.
pub(crate) fn note(message: impl Display) {
    write_err(&format!("ralph: note: {message}"));
}

/// Prints several lines that are not a command's output to standard error.
pub(crate) fn print_notice(text: &str) {
    let _ = write!(stderr(), "{}", adapt(text.to_owned()));
}

/// Asks a yes-or-no question on the terminal. Anything but yes means no, and so does what was typed
/// before the question.
pub(crate) fn ask(question: &str) -> bool {
    let mut answer = String::new();
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let _ = write!(stderr(), "{question}").and_then(|()| stderr().flush());
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Prints each warning to standard error.
pub(crate) fn warn_all(messages: impl IntoIterator<Item = impl Display>) {
    messages.into_iter().for_each(warn);
}

/// Prints an error and its hint to standard error, and returns the exit code.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a reported error is not used again"
)]
pub(crate) fn report_error(error: CommandError) -> ExitCode {
    let hint = error
        .hint()
        .map(|hint| format!("\n  hint: {hint}"))
        .unwrap_or_default();
    write_err(&format!("ralph: error: {}{hint}", error.message()));
    error.exit_code()
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints a line to standard error. Ignores write errors, because there is no place to report them.
fn write_err(line: &str) {
    let _ = writeln!(stderr(), "{}", adapt(line.to_owned()));
}
