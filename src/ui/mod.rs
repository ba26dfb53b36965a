//! Shows loops to people and scripts: console, `status`, logs and summaries.
//!
//! This module reads the journal and the loop's other files. It keeps no state that the files lack,
//! and it never makes a runner wait.

pub(crate) mod act_printer;
mod ascii;
pub(crate) mod bus_line;
pub(crate) mod console;
mod cost;
mod escape_filter;
pub(crate) mod event_line;
pub(crate) mod gutter;
mod live_line;
mod loop_order;
pub(crate) mod notification;
pub(crate) mod outcome_text;
mod output_queue;
pub(crate) mod print;
mod rest_text;
mod scm_text;
pub(crate) mod session_text;
pub(crate) mod status;
pub(crate) mod summary;
pub(crate) mod trust_text;
pub(crate) mod tty;
mod worktree_text;

pub(crate) use crate::engine::display::{display_width, one_line, truncate_to_width};
pub(crate) use ascii::adapt;

/// A text style on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextStyle {
    Green,
    Red,
    Yellow,
    Dim,
    Bold,
}

/// Wraps `text` in the escape sequences for `style`. Returns `text` unchanged if `color` is false.
pub(crate) fn styled(text: &str, style: TextStyle, color: bool) -> String {
    if !color || text.is_empty() {
        return text.to_owned();
    }
    let code = match style {
        TextStyle::Green => 32,
        TextStyle::Red => 31,
        TextStyle::Yellow => 33,
        TextStyle::Dim => 2,
        TextStyle::Bold => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
