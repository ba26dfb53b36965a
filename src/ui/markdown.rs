//! Prints an agent's words behind a gutter, with light Markdown: headings, lists, bold and code.
//!
//! The words arrive in pieces of any size. A line is printed when its newline has been read, so no
//! markup is split between two pieces.

use super::gutter::{MAX_LINE, readable};
use super::{TextStyle, styled};
use crate::engine::display::char_width;
use memchr::memchr_iter;

/// The maximum number of columns of a line of text. Longer lines are hard to read.
pub(super) const MEASURE: usize = 100;

/// Columns between two tab stops.
const TAB: usize = 4;

/// Splits an agent's words into lines that are safe to print, and styles them.
pub(super) struct MarkdownWriter {
    gutter: String,
    width: usize,
    /// The start of a line whose newline has not been read yet.
    partial: Vec<u8>,
    /// Whether the lines belong to a fenced block of code.
    in_code: bool,
}

/// A character and its style.
type Cell = (char, Option<TextStyle>);

impl MarkdownWriter {
    pub(super) fn new(gutter: &str) -> Self {
        Self {
            gutter: gutter.to_owned(),
            width: MEASURE,
            partial: Vec::new(),
            in_code: false,
        }
    }

    /// Sets the number of columns, gutter excluded, at which lines are wrapped.
    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width.min(MEASURE);
    }

    /// Appends to `out` the lines that `bytes` complete.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut start = 0;
        for end in memchr_iter(b'\n', bytes) {
            self.buffer(&bytes[start..end], out);
            let line = std::mem::take(&mut self.partial);
            self.print(&line, out);
            self.partial = line;
            self.partial.clear();
            start = end + 1;
        }
        self.buffer(&bytes[start..], out);
    }

    /// Appends the unfinished last line to `out`, if there is one, and ends a block of code.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        self.flush_line(out);
        self.in_code = false;
    }

    /// Appends the unfinished last line to `out`, if there is one.
    pub(super) fn flush_line(&mut self, out: &mut Vec<u8>) {
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            self.print(&partial, out);
        }
    }

    /// Returns the line whose newline has not been read yet. `None` if there is none.
    pub(super) fn unfinished(&self) -> Option<String> {
        (!self.partial.is_empty()).then(|| readable(&self.partial))
    }

    /// Adds the start of a line. A line without an end uses bounded memory.
    fn buffer(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while self.partial.len() + bytes.len() > MAX_LINE {
            let (piece, rest) = bytes.split_at(MAX_LINE - self.partial.len());
            self.partial.extend_from_slice(piece);
            self.flush_line(out);
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn print(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if !self.in_code && line.len() <= self.width && is_plain(line) {
            for part in [self.gutter.as_bytes(), line, b"\n"] {
                out.extend_from_slice(part);
            }
            return;
        }
        let line = readable(line);
        let text = line.trim_start();
        if text.starts_with("```") || text.starts_with("~~~") {
            self.in_code = !self.in_code;
            return;
        }
        let (cells, indent) = if self.in_code {
            (code(&line), 2)
        } else {
            format(&line, self.width)
        };
        for row in wrap(&cells, self.width, indent.min(self.width / 2)) {
            let text = format!("{}{}\n", self.gutter, row_text(&row));
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Returns whether a line is printable ASCII without markup, as most lines of a flood are.
fn is_plain(line: &[u8]) -> bool {
    let is_text = |byte: &u8| (0x20..0x7f).contains(byte) && !b"*`~".contains(byte);
    let starts_plain = line.first().is_some_and(u8::is_ascii_alphabetic);
    (line.is_empty() || starts_plain) && line.iter().all(is_text)
}

/// Styles a line of code.
fn code(line: &str) -> Vec<Cell> {
    let cells = cells(line, Some(TextStyle::Cyan));
    [(' ', None), (' ', None)]
        .into_iter()
        .chain(cells)
        .collect()
}

/// Returns a line's characters with their styles, and the columns by which its later rows are
/// indented.
fn format(line: &str, width: usize) -> (Vec<Cell>, usize) {
    let text = line.trim_start();
    let spaces = line.len() - text.len();
    if is_rule(text) {
        let rule = "─".repeat(width.min(40));
        return (cells(&rule, Some(TextStyle::Dim)), 0);
    }
    if let Some(heading) = heading(text) {
        let cells = inline(heading, Some(TextStyle::Bold));
        return (cells, 0);
    }
    let mut all = cells(&line[..spaces], None);
    let (marker, rest) = list_item(text);
    if !marker.is_empty() {
        all.extend(cells(marker, Some(TextStyle::Dim)));
        all.push((' ', None));
    }
    let indent = all.len();
    all.extend(inline(rest, None));
    (all, indent)
}

/// Returns whether a line is a horizontal rule, such as `---`.
fn is_rule(text: &str) -> bool {
    let text = text.trim_end();
    let first = text.chars().next();
    text.len() >= 3
        && matches!(first, Some('-' | '*' | '_'))
        && text.chars().all(|c| Some(c) == first)
}

/// Returns the text of a heading such as `## Plan`; `None` if the line is none.
fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let title = rest
        .strip_prefix(' ')
        .filter(|_| (1..=6).contains(&level))?;
    Some(title.trim().trim_end_matches('#').trim_end())
}

/// Splits a list item into its marker and its text. The marker is empty if the line is no item.
fn list_item(text: &str) -> (&str, &str) {
    for bullet in ["- ", "* ", "+ "] {
        if let Some(rest) = text.strip_prefix(bullet) {
            return ("•", rest.trim_start());
        }
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_number = (1..=3).contains(&digits)
        && (text[digits..].starts_with(". ") || text[digits..].starts_with(") "));
    if is_number {
        (&text[..=digits], text[digits + 2..].trim_start())
    } else {
        ("", text)
    }
}

/// Returns the characters of a text, with code between backticks and bold text between double stars.
fn inline(text: &str, style: Option<TextStyle>) -> Vec<Cell> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, markup) = rest.split_at(at);
        all.extend(cells(before, style));
        if let Some((inside, after)) = code_span(markup) {
            all.extend(cells(inside, Some(TextStyle::Cyan)));
            rest = after;
        } else if let Some((inside, after)) = bold_span(markup) {
            all.extend(inline(inside, Some(TextStyle::Bold)));
            rest = after;
        } else {
            let run = markup.len() - markup.trim_start_matches(&markup[..1]).len();
            all.extend(cells(&markup[..run], style));
            rest = &markup[run..];
        }
    }
    all.extend(cells(rest, style));
    all
}

/// Returns the code at the start of a text, and the text after it. The code ends with as many
/// backticks as it starts with.
fn code_span(text: &str) -> Option<(&str, &str)> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let (fence, rest) = text.split_at(ticks);
    let end = (ticks > 0).then(|| rest.find(fence)).flatten()?;
    let after = &rest[end + ticks..];
    let inside = rest[..end].trim();
    (!inside.is_empty() && !after.starts_with('`')).then_some((inside, after))
}

/// Returns the bold text at the start of a text, and the text after it.
fn bold_span(text: &str) -> Option<(&str, &str)> {
    let rest = text
        .strip_prefix("**")
        .filter(|rest| !rest.starts_with([' ', '*']))?;
    let end = rest.find("**").filter(|end| !rest[..*end].ends_with(' '))?;
    Some((&rest[..end], &rest[end + 2..]))
}

fn cells(text: &str, style: Option<TextStyle>) -> Vec<Cell> {
    let mut all = Vec::with_capacity(text.len());
    for c in text.chars() {
        let count = if c == '\t' { TAB - all.len() % TAB } else { 1 };
        let c = if c == '\t' { ' ' } else { c };
        all.extend(std::iter::repeat_n((c, style), count));
    }
    all
}

/// Breaks a line between words into rows of at most `width` columns. All rows but the first are
/// indented. A word that is longer than a row is broken.
fn wrap(cells: &[Cell], width: usize, indent: usize) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let mut rest = cells;
    loop {
        let start = if rows.is_empty() { 0 } else { indent };
        let (mut columns, mut last_space, mut end) = (start, None, rest.len());
        for (at, (c, _)) in rest.iter().enumerate() {
            columns += char_width(*c);
            if columns > width && at > 0 {
                // A space at the start of the row is its indentation.
                let is_word = |space: &usize| rest[..*space].iter().any(|(c, _)| *c != ' ');
                end = if *c == ' ' {
                    at
                } else {
                    last_space.filter(is_word).unwrap_or(at)
                };
                break;
            }
            if *c == ' ' {
                last_space = Some(at);
            }
        }
        let mut row = vec![(' ', None); start];
        row.extend_from_slice(&rest[..end]);
        rows.push(row);
        let spaces = rest[end..].iter().take_while(|(c, _)| *c == ' ').count();
        rest = &rest[end + spaces..];
        if rest.is_empty() {
            return rows;
        }
    }
}

/// Returns a row with the escape sequences of its styles.
fn row_text(row: &[Cell]) -> String {
    let runs = row.chunk_by(|(_, one), (_, other)| one == other);
    runs.map(|run| {
        let text: String = run.iter().map(|(c, _)| c).collect();
        match run[0].1 {
            Some(style) => styled(&text, style, true),
            None => text,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints pieces in 24 columns, with `<b>`, `<c>` and `<d>` for the styles.
    fn shown(pieces: &[&str]) -> String {
        let mut writer = MarkdownWriter::new("| ");
        writer.set_width(24);
        let mut out = Vec::new();
        for piece in pieces {
            writer.feed(piece.as_bytes(), &mut out);
        }
        writer.flush(&mut out);
        let text = String::from_utf8(out).unwrap();
        [
            ("\x1b[1m", "<b>"),
            ("\x1b[36m", "<c>"),
            ("\x1b[2m", "<d>"),
            ("\x1b[0m", "</>"),
        ]
        .iter()
        .fold(text, |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn light_markup_is_styled() {
        assert_eq!(shown(&["## The **plan** ##\n"]), "| <b>The plan</>\n");
        assert_eq!(
            shown(&["Use **bold** and `a b`.\n"]),
            "| Use <b>bold</> and <c>a b</>.\n"
        );
        assert_eq!(
            shown(&["- one\n  * two\n12. three"]),
            "| <d>•</> one\n|   <d>•</> two\n| <d>12.</> three\n"
        );
        assert_eq!(
            shown(&["```sh\n# x **y**\n```\nz\n"]),
            "|   <c># x **y**</>\n| z\n"
        );
    }

    #[test]
    fn text_that_is_no_markup_is_unchanged() {
        for text in [
            "2 * 3 ** 4",
            "a * b * c",
            "snake_case __init__",
            "#no heading",
            "-flag",
            "it`s",
            "** x **",
            "1.5 s",
            "2026-01-01",
            "````",
            "",
        ] {
            assert_eq!(
                shown(&[text, "\n"]),
                if text == "````" {
                    String::new()
                } else {
                    format!("| {text}\n")
                }
            );
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same_rows() {
        let text = "# Plan\n\nI fix `total.sh` and **both** tests: é 日本語 is wide.\n\n- a long item that wraps\n";
        let whole = shown(&[text]);
        for size in 1..9 {
            let chars: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = chars
                .chunks(size)
                .map(|piece| piece.iter().collect())
                .collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(shown(&pieces), whole);
        }
    }

    #[test]
    fn lines_break_between_words_and_stay_behind_the_gutter() {
        assert_eq!(
            shown(&["one two three four five six\n"]),
            "| one two three four five\n| six\n"
        );
        assert_eq!(
            shown(&["- one two three four five six\n"]),
            "| <d>•</> one two three four\n|   five six\n"
        );
        assert_eq!(
            shown(&[&"x".repeat(50), "\n"]),
            format!("| {}\n| {}\n| xx\n", "x".repeat(24), "x".repeat(24))
        );
        assert_eq!(
            shown(&["日本語日本語日本語日本語日本語\n"]),
            "| 日本語日本語日本語日本語\n| 日本語\n"
        );
        let long = shown(&[&"`y` ".repeat(MAX_LINE)]);
        assert!(long.lines().all(|row| row.starts_with("| ")));
    }

    #[test]
    fn escape_sequences_are_removed() {
        assert_eq!(shown(&["\x1b[2J*a*\x1b]0;evil\x07\r\n"]), "| *a*\n");
        assert_eq!(shown(&["`a\x1b[31mb`\n"]), "| <c>ab</>\n");
    }
}
