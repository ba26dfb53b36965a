//! Shows loops to people and scripts: console, `status`, logs and summaries.
//!
//! This module reads the journal and the loop's other files. It keeps no state that the files lack,
//! and it never makes a runner wait.

pub(crate) mod act_printer;
pub(crate) mod age;
mod ascii;
pub(crate) mod bus_line;
mod check_output;
mod claim_text;
pub(crate) mod console;
mod cost;
pub(crate) mod diff_text;
mod escape_filter;
pub(crate) mod event_line;
#[cfg(feature = "fleet")]
pub(crate) mod fleet_table;
pub(crate) mod gutter;
mod iteration_row;
pub(crate) mod key_input;
mod key_rows;
mod label_text;
mod left_behind_text;
mod live_area;
mod live_line;
mod look_text;
mod loop_notes;
mod loop_order;
pub(crate) mod loop_table;
mod markdown;
pub(crate) mod notification;
pub(crate) mod outcome_text;
mod output_queue;
mod own_line;
mod panel;
pub(crate) mod print;
pub(crate) mod replay;
pub(crate) mod report;
mod rest_text;
mod rows;
mod scm_text;
pub(crate) mod screen_lines;
pub(crate) mod session_text;
pub(crate) mod show;
pub(crate) mod show_json;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod status_view;
mod styled;
pub(crate) mod summary;
mod table;
mod tool_line;
pub(crate) mod top;
pub(crate) mod trust_text;
pub(crate) mod tty;
pub(crate) mod verify_text;
pub(crate) mod web;
mod worktree_text;
mod wrap;

pub(crate) use crate::engine::display::{display_width, one_line, truncate_to_width};
pub(crate) use ascii::adapt;
pub(crate) use styled::{StyledText, TextStyle, styled};
pub(crate) use wrap::hang;
