//! Prepares text for display: on one line, without control characters, cut to a number of terminal
//! columns.

use super::plain_text::plain;
use unicode_width::UnicodeWidthChar;

/// Reduces untrusted text to one line: removes control characters and folds whitespace.
pub(crate) fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    plain(&parts.join(" ")).into_owned()
}

/// Formats text as a Markdown code span on one line. The delimiters are longer than any run of
/// backticks in the text.
pub(crate) fn code_span(text: &str) -> String {
    let text = one_line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Cuts `text` to `width` terminal columns. A cut text ends in `…`.
pub(crate) fn truncate_to_width(text: &str, width: usize) -> String {
    let text = text.replace('\t', " ");
    if display_width(&text) <= width {
        return text;
    }
    let mut left = width.saturating_sub(1);
    let mut cut: String = text
        .chars()
        .map_while(|c| {
            left = left.checked_sub(char_width(c))?;
            Some(c)
        })
        .collect();
    cut.push('…');
    cut
}

/// Breaks a text between words into rows of at most `width` columns. `first` and `indent` columns
/// are taken at the start of the first row and of the others. A word that does not fit in a row is
/// left whole.
pub(crate) fn wrap(text: &str, width: usize, first: usize, indent: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut column = first;
    for word in text.split(' ') {
        let row = rows.last_mut().expect("there is a row");
        let columns = display_width(word);
        if row.is_empty() {
            column += columns;
        } else if column + 1 + columns <= width {
            row.push(' ');
            column += 1 + columns;
        } else {
            rows.push(word.to_owned());
            column = indent + columns;
            continue;
        }
        row.push_str(word);
    }
    rows
}

/// Returns the number of terminal columns that a text occupies.
pub(crate) fn display_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_never_exceeds_the_width() {
        for (text, width, shown) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("日本語", 6, "日本語"),
            ("日本語です", 6, "日本…"),
            ("a\tb", 9, "a b"),
            ("x", 0, "…"),
        ] {
            assert_eq!(truncate_to_width(text, width), shown);
        }
    }

    #[test]
    fn text_is_broken_between_words() {
        let rows = |text: &str, width| wrap(text, width, 4, 2);
        assert_eq!(rows("one two", 20), ["one two"]);
        assert_eq!(rows("one two three", 11), ["one two", "three"]);
        assert_eq!(rows("one twothreefour x", 11), ["one", "twothreefour", "x"]);
        assert_eq!(rows("日本 語で す", 9), ["日本", "語で す"]);
        assert_eq!(rows("", 9), [""]);
    }

    #[test]
    fn a_code_span_survives_backticks_and_newlines() {
        for (text, span) in [
            ("cargo test", "`cargo test`"),
            ("a `b`\n c", "``a `b` c``"),
            ("``", "``` `` ```"),
            ("x ` y", "``x ` y``"),
        ] {
            assert_eq!(code_span(text), span, "{text}");
        }
    }

    #[test]
    fn untrusted_text_stays_on_one_line() {
        assert_eq!(one_line("two\nlines\x1b[2J \r here"), "two lines here");
    }
}
