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
    fn a_cut_text_is_bounded_after_it_was_escaped() {
        let mut html = Html::default();
        let left = html.text_max(&"<".repeat(1000), 100);
        assert!(html.len() <= 100, "{}", html.len());
        assert_eq!(left, 1000 - html.len() / 4);
        assert_eq!(Html::default().text_max("short", 100), 0);
    }
}
