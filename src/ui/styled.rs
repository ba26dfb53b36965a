//! Styles text for a terminal. The text cannot contain escape sequences of its own.

use crate::engine::plain_text::visible;

/// A text style on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextStyle {
    Green,
    Red,
    Yellow,
    Dim,
    Bold,
}

/// Wraps `text` in the escape sequences for `style`; without any if `color` is false.
pub(crate) fn styled(text: &str, style: TextStyle, color: bool) -> String {
    let text = visible(text);
    if !color || text.is_empty() {
        return text.into_owned();
    }
    let code = match style {
        TextStyle::Green => 32,
        TextStyle::Red => 31,
        TextStyle::Yellow => 33,
        TextStyle::Dim => 2,
        TextStyle::Bold => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Text whose only escape sequences are those of its styles, so that it can be printed as it is.
pub(crate) struct StyledText {
    text: String,
    color: bool,
}

impl StyledText {
    /// Creates an empty text. If `color` is false, styles have no effect.
    pub(crate) fn new(color: bool) -> Self {
        Self {
            text: String::new(),
            color,
        }
    }

    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(&visible(text));
        self
    }

    /// Adds a line in one style.
    pub(crate) fn push_line(&mut self, text: &str, style: TextStyle) -> &mut Self {
        self.push_styled(text, style).push("\n")
    }

    pub(crate) fn push_styled(&mut self, text: &str, style: TextStyle) -> &mut Self {
        self.text.push_str(&styled(text, style, self.color));
        self
    }

    /// Adds text that has been cleaned, and may have styles of its own.
    pub(super) fn push_cleaned(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}
