//! Shows loops to people and scripts: console, `status`, logs and summaries.
//!
//! This module reads the journal and the loop's other files. It keeps no state that the files lack,
//! and it never makes a runner wait.

pub(crate) mod act_printer;
mod ascii;
pub(crate) mod bus_line;
pub(crate) mod console;
mod cost;
pub(crate) mod diff_text;
mod escape_filter;
pub(crate) mod event_line;
pub(crate) mod gutter;
mod label_text;
mod live_line;
mod look_text;
mod loop_order;
pub(crate) mod notification;
pub(crate) mod outcome_text;
mod output_queue;
pub(crate) mod print;
pub(crate) mod replay;
mod rest_text;
mod rows;
mod scm_text;
pub(crate) mod session_text;
pub(crate) mod status;
mod styled;
pub(crate) mod summary;
pub(crate) mod trust_text;
pub(crate) mod tty;
pub(crate) mod verify_text;
mod worktree_text;
mod wrap;

pub(crate) use crate::engine::display::{display_width, one_line, truncate_to_width};
pub(crate) use ascii::adapt;
pub(crate) use styled::{StyledText, TextStyle, styled};
pub(crate) use wrap::hang;
