//! Where a word typed in a session begins and ends, and what its quotes hold.

use super::FLAGS;

/// The words as they were typed, and how far they were read.
#[derive(Clone)]
pub struct Text<'a> {
    all: &'a str,
    at: usize,
    /// Whether no `'` and no `"` from here on closes anything: what was looked for in vain is not looked for again.
    unclosed: [bool; 2],
}

impl<'a> Text<'a> {
    pub fn of(all: &'a str) -> Self {
        Self {
            all,
            at: 0,
            unclosed: [false; 2],
        }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a str {
        &self.all[self.at..]
    }

    /// So many bytes of it.
    pub fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    /// The white space that comes next.
    pub fn space(&mut self) -> &'a str {
        self.take(self.rest().len() - self.rest().trim_start().len())
    }

    /// The bare word that comes next.
    pub fn bare(&mut self) -> &'a str {
        self.take(
            self.rest()
                .find(char::is_whitespace)
                .unwrap_or(self.rest().len()),
        )
    }

    /// The word that comes next, as it was typed: all between quotes is one, and so is a flag without its `=` and value.
    pub fn word(&mut self) -> &'a str {
        let Some(quote) = self.rest().chars().next() else {
            return "";
        };
        let known = match quote {
            '\'' => 0,
            '"' => 1,
            '-' => {
                let joined = |flag: &&&str| {
                    self.rest()
                        .strip_prefix(**flag)
                        .is_some_and(|behind| behind.starts_with('='))
                };
                return match FLAGS.iter().find(joined) {
                    Some(flag) => self.take(flag.len()),
                    None => self.bare(),
                };
            }
            _ => return self.bare(),
        };
        let end = if self.unclosed[known] {
            None
        } else {
            closing(self.rest(), quote)
        };
        self.unclosed[known] |= end.is_none();
        // Without its like, a quote is an apostrophe: 'tis text.
        match end {
            Some(end) => self.take(end + quote.len_utf8()),
            None => self.bare(),
        }
    }
}

/// Where a text that begins with a quotation mark has the closing one, which white space or the end must follow.
fn closing(text: &str, quote: char) -> Option<usize> {
    let inside = quote.len_utf8();
    let close = other_side(quote);
    text[inside..]
        .match_indices(close)
        .map(|(at, _)| inside + at)
        .find(|at| {
            let behind = text[at + close.len_utf8()..].chars().next();
            behind.is_none_or(char::is_whitespace)
                && !(close == '"' && is_escaped(&text[inside..*at]))
        })
}

/// Whether what follows this text is escaped by it. As backslashes only matter there, a path needs no more of them.
fn is_escaped(before: &str) -> bool {
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
}

/// The mark that closes what this one opens; editors make typographic ones of plain ones.
pub fn other_side(quote: char) -> char {
    match quote {
        '“' => '”',
        '‘' => '’',
        other => other,
    }
}

/// What stands between the quotes that a text begins with, and how long it is with them.
pub fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let end = closing(text, quote)?;
    let inner = &text[quote.len_utf8()..end];
    let whole = end + other_side(quote).len_utf8();
    Some((
        if quote == '"' {
            without_escapes(inner)
        } else {
            inner.to_owned()
        },
        whole,
    ))
}

/// `\"` as `"`, and a backslash that must stand before a quotation mark as itself.
fn without_escapes(inner: &str) -> String {
    let halved = |piece: &str| {
        let text = piece.trim_end_matches('\\');
        let backslashes = piece.len() - text.len();
        format!("{text}{}", &piece[text.len()..text.len() + backslashes / 2])
    };
    inner.split('"').map(halved).collect::<Vec<_>>().join("\"")
}

/// A prompt that is one quotation, without its quotes: so a shell would have handed it over.
pub fn unquoted_whole(prompt: &str) -> Option<String> {
    let quote = prompt.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (inner, length) = quoted(prompt, quote)?;
    (length == prompt.len()).then(|| inner.trim().to_owned())
}

/// Closes the gap that a flag leaves: no second space between words, no empty line where it had one of its own.
pub fn heal(prompt: &mut String, text: &mut Text<'_>) {
    let is_blank = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
    let line = prompt.trim_end_matches(is_blank).len();
    if line == 0 || prompt[..line].ends_with(['\n', '\r']) {
        let rest = text.rest().trim_start_matches(is_blank);
        text.take(text.rest().len() - rest.len());
        let end = ["\r\n", "\n"]
            .into_iter()
            .find(|end| rest.starts_with(*end));
        if let Some(end) = end {
            prompt.truncate(line);
            text.take(end.len());
        }
    } else {
        prompt.truncate(line);
    }
}
