//! How does it look? Readers of the journal: they hold nothing that it lacks, and never stall a loop.

pub mod act_printer;
pub mod bus_line;
pub mod console;
pub mod cost;
pub mod derived_files;
pub mod escape_filter;
pub mod event_line;
mod live_line;
mod loop_order;
pub mod notification;
pub mod outcome_text;
pub mod output_queue;
pub mod output_tail;
pub mod rest_text;
pub mod scm_text;
pub mod session_text;
pub mod status;
pub mod summary;
pub mod text_stream;
pub mod worktree_text;

use crate::engine::plain_text::plain;
use std::io::{self, Write, stdout};
use unicode_width::UnicodeWidthChar;

/// Colour, where it helps and is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// Good.
    Green,
    /// Bad.
    Red,
    /// Mind this.
    Yellow,
    /// Less important.
    Dim,
    /// More important.
    Bold,
}

/// Text in a colour, if colours are on.
pub fn paint(text: &str, paint: Paint, on: bool) -> String {
    if !on || text.is_empty() {
        return text.to_owned();
    }
    let code = match paint {
        Paint::Green => 32,
        Paint::Red => 31,
        Paint::Yellow => 33,
        Paint::Dim => 2,
        Paint::Bold => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Prints what was asked for. A reader that went away has seen enough; anything else is an error.
pub fn answer(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints to standard output. A reader that went away is no reason to fail.
pub fn say(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Borrowed text as part of one line: without its controls, white space folded.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" ")).into_owned()
}

/// Text cut to so many columns, with a mark where it was cut.
pub fn fit(text: &str, width: usize) -> String {
    let text = text.replace('\t', " ");
    if columns(&text) <= width {
        return text;
    }
    let mut left = width.saturating_sub(1);
    let mut cut: String = text
        .chars()
        .map_while(|c| {
            left = left.checked_sub(columns_of(c))?;
            Some(c)
        })
        .collect();
    cut.push('…');
    cut
}

/// How many columns a terminal takes for a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// How many columns a terminal takes for a character.
pub(crate) fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_never_takes_more_columns_than_there_are() {
        for (text, width, shown) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("日本語", 6, "日本語"),
            ("日本語です", 6, "日本…"),
            ("a\tb", 9, "a b"),
            ("x", 0, "…"),
        ] {
            assert_eq!(fit(text, width), shown);
        }
    }

    #[test]
    fn borrowed_words_stay_on_one_line() {
        assert_eq!(one_line("two\nlines\x1b[2J \r here"), "two lines here");
    }
}
