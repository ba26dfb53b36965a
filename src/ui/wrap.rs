//! Breaks text for people into rows that fit a terminal.

use super::display_width;
use crate::engine::display::{char_width, wrap};
use std::borrow::Cow;

/// Keeps the words of a command together while a text is broken between words.
const GLUE: char = '\u{a0}';

/// Breaks a line between words, and indents all rows but the first by `indent` columns. The first
/// row begins after `first` columns. A command in backticks stays in one row, so that it can be
/// copied, unless it is longer than a row. If `width` is `None`, nothing changes.
pub(crate) fn hang(line: &str, width: Option<usize>, first: usize, indent: usize) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| first + display_width(line) > *width) else {
        return Cow::Borrowed(line);
    };
    let text = line.trim_start_matches(' ');
    let (own_indent, _) = line.split_at(line.len() - text.len());
    let (first, indent) = (first + own_indent.len(), indent + own_indent.len());
    let glued = glue_commands(text, width.saturating_sub(indent));
    let rows = wrap(&glued, width, first, indent);
    let text = rows.join(&format!("\n{}", " ".repeat(indent)));
    Cow::Owned(format!("{own_indent}{}", text.replace(GLUE, " ")))
}

/// Like [`hang`], for a text in which every character counts: also breaks words that are longer than
/// a row, so that no part of the text begins in the first column of the terminal.
pub(super) fn hang_all(line: &str, width: Option<usize>, indent: usize) -> String {
    let Some(columns) = width.map(|width| width.saturating_sub(indent).max(8)) else {
        return line.to_owned();
    };
    let mut rows = Vec::new();
    for row in wrap(line, columns, 0, 0) {
        let (mut part, mut used) = (String::new(), 0);
        for c in row.chars() {
            if used + char_width(c) > columns {
                rows.push(std::mem::take(&mut part));
                used = 0;
            }
            part.push(c);
            used += char_width(c);
        }
        rows.push(part);
    }
    rows.join(&format!("\n{}", " ".repeat(indent)))
}

/// Replaces the spaces in commands that fit in a row.
fn glue_commands(line: &str, columns: usize) -> String {
    let mut text = String::with_capacity(line.len());
    let mut parts = line.split('`').enumerate().peekable();
    while let Some((number, part)) = parts.next() {
        let is_command = number % 2 == 1 && parts.peek().is_some();
        if is_command && display_width(part) + 3 <= columns {
            text.extend(part.chars().map(|c| if c == ' ' { GLUE } else { c }));
        } else {
            text.push_str(part);
        }
        if parts.peek().is_some() {
            text.push('`');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_between_words_and_commands_stay_whole() {
        let text = "to keep it, run `git merge a`; to discard it, run `ralph rm a --force`";
        assert_eq!(hang(text, None, 0, 2), text);
        assert_eq!(hang(text, Some(80), 10, 2), text);
        assert_eq!(
            hang(text, Some(30), 6, 2),
            "to keep it, run\n  `git merge a`; to discard\n  it, run `ralph rm a --force`"
        );
        // A command that is longer than a row is broken.
        assert_eq!(hang("run `one two`", Some(9), 0, 1), "run `one\n two`");
        assert_eq!(hang("a lone ` tick", Some(9), 0, 1), "a lone `\n tick");
        assert_eq!(
            hang("one verylongword", Some(8), 0, 1),
            "one\n verylongword"
        );
        assert_eq!(
            hang("  one two three", Some(10), 0, 2),
            "  one two\n    three"
        );
    }

    #[test]
    fn every_row_of_an_untrusted_text_is_indented() {
        assert_eq!(hang_all("one two", None, 4), "one two");
        assert_eq!(hang_all("one two three", Some(14), 4), "one two\n    three");
        assert_eq!(
            hang_all("abcdefghijklmno", Some(14), 4),
            "abcdefghij\n    klmno"
        );
        assert_eq!(
            hang_all(&format!("a{}b", " ".repeat(50)), Some(14), 4)
                .lines()
                .count(),
            2
        );
    }
}
