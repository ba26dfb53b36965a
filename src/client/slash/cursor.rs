//! Splits the arguments of a slash command into words, and handles their quotes.

use super::FLAGS;

/// A position in the arguments of a slash command.
#[derive(Clone)]
pub(super) struct ArgCursor<'a> {
    text: &'a str,
    position: usize,
    /// For `'` and `"`, whether the rest is known to contain no closing quote. Without this record,
    /// parsing would take quadratic time in the number of quotes.
    is_unclosed: [bool; 2],
}

impl<'a> ArgCursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            position: 0,
            is_unclosed: [false; 2],
        }
    }

    /// Returns the text that has not been consumed yet.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Consumes and returns the next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> &'a str {
        let taken = &self.rest()[..len];
        self.position += len;
        taken
    }

    /// Consumes and returns the whitespace that comes next.
    pub(super) fn space(&mut self) -> &'a str {
        self.take(self.rest().len() - self.rest().trim_start().len())
    }

    /// Consumes and returns everything up to the next whitespace.
    pub(super) fn bare_word(&mut self) -> &'a str {
        self.take(
            self.rest()
                .find(char::is_whitespace)
                .unwrap_or(self.rest().len()),
        )
    }

    /// Consumes and returns the next word as it was typed. Quoted text is one word. A flag is a
    /// word as well, without its `=` and value.
    pub(super) fn word(&mut self) -> &'a str {
        let Some(quote) = self.rest().chars().next() else {
            return "";
        };
        let index = match quote {
            '\'' => 0,
            '"' => 1,
            '-' => {
                let is_joined = |flag: &&&str| {
                    self.rest()
                        .strip_prefix(**flag)
                        .is_some_and(|rest| rest.starts_with('='))
                };
                return match FLAGS.iter().find(is_joined) {
                    Some(flag) => self.take(flag.len()),
                    None => self.bare_word(),
                };
            }
            _ => return self.bare_word(),
        };
        let end = if self.is_unclosed[index] {
            None
        } else {
            closing_index(self.rest(), quote)
        };
        self.is_unclosed[index] |= end.is_none();
        // A quote that is never closed is an apostrophe, as in "'tis".
        match end {
            Some(end) => self.take(end + quote.len_utf8()),
            None => self.bare_word(),
        }
    }
}

/// Returns the index of the quote that closes the one at the start of `text`; `None` if it is not
/// closed. Whitespace or the end of the text must follow the closing quote.
fn closing_index(text: &str, quote: char) -> Option<usize> {
    let start = quote.len_utf8();
    let close = closing_quote(quote);
    text[start..]
        .match_indices(close)
        .map(|(index, _)| start + index)
        .find(|index| {
            let next = text[index + close.len_utf8()..].chars().next();
            next.is_none_or(char::is_whitespace)
                && !(close == '"' && ends_with_escape(&text[start..*index]))
        })
}

/// Returns whether the text ends with an odd number of backslashes. Backslashes matter only before
/// a quote, so paths need not be escaped.
fn ends_with_escape(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// Returns the quote character that closes `quote`. Editors may replace plain quotes with
/// typographic ones.
pub(super) fn closing_quote(quote: char) -> char {
    match quote {
        '“' => '”',
        '‘' => '’',
        other => other,
    }
}

/// Parses the quoted text at the start of `text`. Returns its content and its length in bytes,
/// quotes included; `None` if the quote is never closed.
pub(super) fn parse_quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let end = closing_index(text, quote)?;
    let content = &text[quote.len_utf8()..end];
    let len = end + closing_quote(quote).len_utf8();
    Some((
        if quote == '"' {
            unescape(content)
        } else {
            content.to_owned()
        },
        len,
    ))
}

/// Resolves `\"` and the doubled backslashes before a quote.
fn unescape(content: &str) -> String {
    let halve_backslashes = |piece: &str| {
        let text = piece.trim_end_matches('\\');
        let backslashes = piece.len() - text.len();
        format!("{text}{}", &piece[text.len()..text.len() + backslashes / 2])
    };
    content
        .split('"')
        .map(halve_backslashes)
        .collect::<Vec<_>>()
        .join("\"")
}

/// Removes the quotes around a prompt, as a shell would; `None` if the prompt is not quoted as a
/// whole.
pub(super) fn strip_outer_quotes(prompt: &str) -> Option<String> {
    let quote = prompt.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (content, len) = parse_quoted(prompt, quote)?;
    (len == prompt.len()).then(|| content.trim().to_owned())
}

/// Closes the gap that a flag leaves in the prompt: no double space between words, and no empty
/// line in place of a line that contained only flags.
pub(super) fn close_gap(prompt: &mut String, cursor: &mut ArgCursor<'_>) {
    let is_blank = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
    let len = prompt.trim_end_matches(is_blank).len();
    if len == 0 || prompt[..len].ends_with(['\n', '\r']) {
        let rest = cursor.rest().trim_start_matches(is_blank);
        cursor.take(cursor.rest().len() - rest.len());
        let newline = ["\r\n", "\n"]
            .into_iter()
            .find(|newline| rest.starts_with(*newline));
        if let Some(newline) = newline {
            prompt.truncate(len);
            cursor.take(newline.len());
        }
    } else {
        prompt.truncate(len);
    }
}
