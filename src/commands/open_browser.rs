//! Opens a file or an address in the user's browser.

use crate::lifecycle::error::CommandError;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// The programs that open a file in the user's browser, in the order in which they are tried.
const OPENERS: [&str; 4] = ["xdg-open", "open", "wslview", "sensible-browser"];

/// Opens `target`, with the program in `BROWSER` if it is set. Waits until the program has started,
/// and not for the browser.
pub(super) fn open_browser(target: &OsStr) -> Result<(), CommandError> {
    let own = std::env::var("BROWSER").ok();
    let own = own.filter(|program| !program.trim().is_empty());
    let programs = own.iter().map(String::as_str).chain(OPENERS);
    for program in programs {
        let mut command = Command::new(program);
        command.arg(target).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            return Ok(());
        }
    }
    Err(CommandError::usage(
        "no program was found that opens a browser",
        "set BROWSER to the name of one, or open the file yourself",
    ))
}
