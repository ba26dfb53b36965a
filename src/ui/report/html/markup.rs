//! Builds HTML in which only ralph's own literals are markup.

use crate::engine::plain_text::visible;
use std::fmt::Display;

/// HTML under construction.
#[derive(Default)]
pub(super) struct Html {
    text: String,
}

impl Html {
    /// Appends markup. It is a literal, so that no text from elsewhere can become markup.
    pub(super) fn tag(&mut self, markup: &'static str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// Appends text, escaped.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for c in visible(text).chars() {
            push_escaped(&mut self.text, c);
        }
        self
    }

    /// Appends text, escaped, until it takes `max` bytes. Returns how many bytes of the text were
    /// left out.
    pub(super) fn text_max(&mut self, text: &str, max: usize) -> usize {
        let (start, left) = super::super::cut(text, max);
        let end = self.text.len() + max;
        let shown = visible(start);
        for (at, c) in shown.char_indices() {
            if self.text.len() + 6 > end {
                return left + shown.len() - at;
            }
            push_escaped(&mut self.text, c);
        }
        left
    }

    /// Appends an agent's words like [`Self::text_max`], with `code` and **bold** as elements.
    pub(super) fn words_max(&mut self, text: &str, max: usize) -> usize {
        let (start, mut left) = super::super::cut(text, max);
        let end = self.text.len() + max;
        let mut rest = start;
        while !rest.is_empty() {
            let room = end.saturating_sub(self.text.len());
            // The tags around a part take less than this.
            if room < 32 {
                return left + rest.len();
            }
            let (plain, marked, after) = split_marked(rest);
            left += self.text_max(plain, room);
            let room = end.saturating_sub(self.text.len() + 24);
            match marked {
                Some(MarkedText::Code(text)) => {
                    self.tag("<code>");
                    left += self.text_max(text, room);
                    self.tag("</code>");
                }
                Some(MarkedText::Bold(text)) => {
                    self.tag("<b>");
                    left += self.text_max(text, room);
                    self.tag("</b>");
                }
                None => {}
            }
            rest = after;
        }
        left
    }

    /// Appends an attribute: a space, its name and its quoted value.
    pub(super) fn attr(&mut self, name: &'static str, value: impl Display) -> &mut Self {
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        self.text(&value.to_string());
        self.text.push('"');
        self
    }

    /// Appends an element with a class and nothing but text in it.
    pub(super) fn span(&mut self, class: &'static str, text: &str) -> &mut Self {
        self.tag("<span").attr("class", class).tag(">");
        self.text(text).tag("</span>")
    }

    /// Appends text in an element for code.
    pub(super) fn code(&mut self, text: &str) -> &mut Self {
        self.tag("<code>").text(text).tag("</code>")
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}

/// A part of an agent's words that is marked.
#[derive(Debug, PartialEq)]
enum MarkedText<'a> {
    Code(&'a str),
    Bold(&'a str),
}

/// Splits a text at its first marked part, which is within one line.
fn split_marked(text: &str) -> (&str, Option<MarkedText<'_>>, &str) {
    let starts = text.match_indices(['`', '*']);
    for (at, _) in starts {
        let rest = &text[at..];
        for mark in ["`", "**"] {
            let inner = rest.strip_prefix(mark);
            let found = inner.and_then(|inner| Some((inner, inner.find(mark)?)));
            let found = found.filter(|(inner, end)| {
                let part = &inner[..*end];
                !part.trim().is_empty() && !part.contains('\n')
            });
            if let Some((inner, end)) = found {
                let part = &inner[..end];
                let marked = if mark == "`" {
                    MarkedText::Code(part)
                } else {
                    MarkedText::Bold(part)
                };
                return (&text[..at], Some(marked), &inner[end + mark.len()..]);
            }
        }
    }
    (text, None, "")
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let mut html = Html::default();
        html.tag("<p").attr("title", "\"><script>").tag(">");
        html.text("</p><!-- \u{1b}[2J & 'x'").tag("</p>");
        let expected = "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;/p&gt;&lt;!-- \u{fffd}[2J &amp; &#39;x&#39;</p>";
        assert_eq!(html.into_string(), expected);
    }

    #[test]
    fn words_are_marked_and_bounded() {
        let shown = |text: &str, max: usize| {
            let mut html = Html::default();
            let left = html.words_max(text, max);
            (html.into_string(), left)
        };
        let words = "**Read** `<a>` and `b\nc` 2 * 3 ** 4\n** d **`";
        let html = "<b>Read</b> <code>&lt;a&gt;</code> and `b\nc` 2 * 3 ** 4\n<b> d </b>`";
        assert_eq!(shown(words, 1000), (html.to_owned(), 0));
        let long = "`<` ".repeat(1000);
        let (html, left) = shown(&long, 200);
        assert!(html.len() <= 200 && left > 3000, "{html} {left}");
        assert_eq!(
            html.matches("<code>").count(),
            html.matches("</code>").count()
        );
    }

    #[test]
    fn a_cut_text_is_bounded_after_it_was_escaped() {
        let mut html = Html::default();
        let left = html.text_max(&"<".repeat(1000), 100);
        assert!(html.len() <= 100, "{}", html.len());
        assert_eq!(left, 1000 - html.len() / 4);
        assert_eq!(Html::default().text_max("short", 100), 0);
    }
}
