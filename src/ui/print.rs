//! Prints to standard output and standard error. Nothing below `ui` prints.
//!
//! Keys, names, paths and values come from files that ralph did not write, so everything printed is
//! filtered here: text passes [`visible`], JSON passes [`escape_json`], and [`StyledText`] filters
//! its parts. Messages on standard error are redacted too. The exceptions:
//!
//! - The console writes through `output_queue`. It cleans an agent's output line by line.
//! - An agent's own screen, shown while it has the terminal, passes `escape_filter`.
//! - [`write_cleaned`] prints lines that a `GutterWriter` or an `ActPrinter` has cleaned.
//! - [`copy_raw`] copies an agent's output, or a patch, to a file or a pipe.
//! - `ralph attach` hands the terminal to tmux.

use super::tty::{error_width, width};
use super::{StyledText, TextStyle, adapt, hang, one_line, styled};
use crate::engine::ExitCode;
use crate::engine::plain_text::{escape_json, visible};
use crate::lifecycle::error::{CommandError, redact_message};
use rustix::termios::{QueueSelector, tcflush};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write, stderr, stdout};

/// Prints a command's output. Ignores a closed pipe, because its reader needs no more output.
/// Returns any other write error.
pub(crate) fn print_output(text: &str) -> Result<(), CommandError> {
    ignore_closed_pipe(write_text(text))
}

/// Prints a command's output for people. Handles errors like [`print_output`].
pub(crate) fn print_text(text: &str) -> Result<(), CommandError> {
    ignore_closed_pipe(write_cleaned(adapt(visible(text).into_owned()).as_bytes()))
}

/// Prints a command's JSON output and a newline. Handles errors like [`print_output`].
pub(crate) fn print_json(json: &str) -> Result<(), CommandError> {
    ignore_closed_pipe(write_json(json))
}

/// Prints a command's styled output for people. Handles errors like [`print_output`].
pub(crate) fn print_styled(text: StyledText) -> Result<(), CommandError> {
    ignore_closed_pipe(write_cleaned(adapt(text.into_string()).as_bytes()))
}

/// Prints a message about a completed command. On a terminal, breaks its lines between words.
/// Ignores write errors, because the command has succeeded.
pub(crate) fn print_message(text: &str) {
    let columns = width();
    let lines = text.split('\n').map(|line| hang(line, columns, 0, 2));
    let _ = print_text(&lines.collect::<Vec<_>>().join("\n"));
}

/// Prints a warning to standard error.
pub(crate) fn warn(message: impl Display) {
    write_err(&format!("ralph: warning: {message}"));
}

/// Prints a console's warning on one line, with a prefix in color if `color` is true.
pub(super) fn warn_styled(message: &str, color: bool) {
    let prefix = "ralph: warning:";
    let styled = styled(prefix, TextStyle::Yellow, color && stderr().is_terminal());
    let message = one_line(&redact_message(message));
    let message = hang(&message, error_width(), prefix.len() + 1, MESSAGE_INDENT);
    let _ = writeln!(stderr(), "{}", adapt(format!("{styled} {message}")));
}

/// Prints a line that is neither a warning nor a command's output to standard error.
pub(crate) fn note(message: impl Display) {
    write_err(&format!("ralph: note: {message}"));
}

/// Prints several lines that are not a command's output to standard error.
pub(crate) fn print_notice(text: &str) {
    let _ = write!(stderr(), "{}", visible(text));
}

/// Returns whether a person can read a question and answer it.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && stderr().is_terminal()
}

/// Asks a yes-or-no question on the terminal. Anything but yes means no, and so does what was typed
/// before the question.
pub(crate) fn ask(question: &str) -> bool {
    let mut answer = String::new();
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let _ = write!(stderr(), "{}", visible(question)).and_then(|()| stderr().flush());
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
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    write_err(&format!("ralph: error: {}{hint}", error.message()));
    error.exit_code()
}

/// Prints the usage to standard error. Ignores write errors, because there is no place to report
/// them.
pub(crate) fn print_usage(text: &str) {
    let _ = write!(stderr(), "{}", visible(&redact_message(text)));
}

/// Writes text to standard output.
pub(crate) fn write_text(text: &str) -> io::Result<()> {
    write_out(visible(text).as_bytes())
}

/// Writes a JSON text and a newline to standard output.
pub(crate) fn write_json(json: &str) -> io::Result<()> {
    write_out(format!("{}\n", escape_json(json)).as_bytes())
}

/// Writes lines to standard output that a `GutterWriter` or an `ActPrinter` has cleaned.
pub(crate) fn write_cleaned(lines: &[u8]) -> io::Result<()> {
    write_out(lines)
}

/// Prints a command's output unchanged to a file or a pipe. Handles errors like [`print_output`].
pub(crate) fn print_raw(bytes: &[u8]) -> Result<(), CommandError> {
    ignore_closed_pipe(copy_raw(bytes))
}

/// Copies an agent's output, or a patch, unchanged to standard output, which must not be a terminal.
pub(crate) fn copy_raw(bytes: &[u8]) -> io::Result<()> {
    write_out(bytes)
}

fn ignore_closed_pipe(result: io::Result<()>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| {
            CommandError::broken(format!("cannot write the output to stdout: {error}"))
        }),
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// The columns of `ralph: ` and of `  hint: `, by which the rows of a long line are indented.
const MESSAGE_INDENT: usize = 7;
const HINT_INDENT: usize = 8;

/// Prints a message to standard error. Its later lines are indented, so that none looks like a
/// message of its own. On a terminal, its lines are broken between words. Ignores write errors,
/// because there is no place to report them.
fn write_err(message: &str) {
    let message = redact_message(message);
    let (message, width) = (visible(&message), error_width());
    let lines = message
        .lines()
        .enumerate()
        .map(|(number, line)| match number {
            0 => hang(line, width, 0, MESSAGE_INDENT),
            _ => hang(line, width, 2, HINT_INDENT),
        });
    let text = lines.collect::<Vec<_>>().join("\n  ");
    let _ = writeln!(stderr(), "{}", adapt(text));
}
