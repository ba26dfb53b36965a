//! Lays out rows for a terminal: text is broken between words, and commands stay whole, so that they
//! can be copied.

use super::{display_width, hang};

/// What separates commands in a row.
const SEPARATOR: &str = " · ";

/// What separates a check from its result in a row of the status.
pub(super) const RESULT: &str = " — ";

/// The indent of a command that is longer than a row. The terminal breaks it.
const LONG_INDENT: usize = 4;

/// Where a row's value is: after `first` columns in the first row, and after `indent` in the others.
#[derive(Clone, Copy)]
pub(super) struct RowLayout {
    /// The terminal's width; `None` if the rows are not for a terminal, and stay as they are.
    pub(super) width: Option<usize>,
    pub(super) first: usize,
    pub(super) indent: usize,
}

impl RowLayout {
    fn fits(self, columns: usize) -> bool {
        self.width.is_none_or(|width| columns <= width)
    }

    fn new_row(self) -> String {
        format!("\n{}", " ".repeat(self.indent))
    }

    /// Breaks a text between words.
    pub(super) fn text(self, text: &str) -> String {
        hang(text, self.width, self.first, self.indent).into_owned()
    }

    /// Lays out commands that ` · ` separates. If they do not fit in one row, each gets its own.
    pub(super) fn commands(self, text: &str) -> String {
        if self.fits(self.first + display_width(text)) {
            return text.to_owned();
        }
        let is_command = |part: &str| part.starts_with("ralph ") || part.starts_with("git ");
        if !text.split(SEPARATOR).all(is_command) {
            return self.text(text);
        }
        let mut rows = String::new();
        for (index, command) in text.split(SEPARATOR).enumerate() {
            let at = if index == 0 { self.first } else { self.indent };
            rows.push_str(&self.whole(command, at, index == 0));
        }
        rows
    }

    /// Lays out a command and its result. Returns them with what is before each of them.
    pub(super) fn result(self, command: &str, gap: &str, result: &str) -> (String, String) {
        let columns = display_width(command) + display_width(gap) + display_width(result);
        if self.fits(self.first + columns) {
            return (command.to_owned(), format!("{gap}{result}"));
        }
        let command = self.whole(command, self.first, true);
        let text = format!("{}{result}", gap.trim_start());
        let below = Self {
            first: self.indent,
            ..self
        };
        (command, format!("{}{}", self.new_row(), below.text(&text)))
    }

    /// Returns a command that begins in this column, or in a row of its own.
    fn whole(self, command: &str, at: usize, is_first: bool) -> String {
        if !self.fits(at + display_width(command)) {
            return format!("\n{}{command}", " ".repeat(LONG_INDENT));
        }
        let before = if is_first {
            String::new()
        } else {
            self.new_row()
        };
        before + command
    }
}

/// Returns the value of a row of the status, which begins after `indent` columns. It begins with a
/// line end if its first word does not fit there.
pub(super) fn status_value(
    label: &str,
    value: &str,
    width: Option<usize>,
    indent: usize,
) -> String {
    let layout = RowLayout {
        width,
        first: indent,
        indent,
    };
    match (label, value.rsplit_once(RESULT)) {
        ("Check", Some((command, result))) => {
            let (command, result) = layout.result(command, RESULT, result);
            command + &result
        }
        ("Inspect" | "Commit" | "Merge" | "Remove" | "Next", _) => layout.commands(value),
        _ => layout.text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::RowLayout;

    fn layout(width: usize) -> RowLayout {
        RowLayout {
            width: Some(width),
            first: 6,
            indent: 6,
        }
    }

    #[test]
    fn commands_are_never_broken() {
        let text = "ralph resume a · ralph logs a";
        assert_eq!(layout(40).commands(text), text);
        assert_eq!(
            layout(30).commands(text),
            "ralph resume a\n      ralph logs a"
        );
        // One that is longer than a row is alone on its line.
        assert_eq!(
            layout(19).commands(text),
            "\n    ralph resume a\n      ralph logs a"
        );
        let unlimited = RowLayout {
            width: None,
            ..layout(0)
        };
        assert_eq!(unlimited.commands(text), text);
        let prose = "to end it, run `ralph stop a`";
        assert_eq!(
            layout(26).commands(prose),
            "to end it, run\n      `ralph stop a`"
        );
    }

    #[test]
    fn a_result_follows_its_command_or_begins_a_row() {
        let result = |width| {
            let (command, result) = layout(width).result("cargo test", " — ", "red (exit 1)");
            command + &result
        };
        assert_eq!(result(31), "cargo test — red (exit 1)");
        assert_eq!(result(30), "cargo test\n      — red (exit 1)");
        assert_eq!(result(16), "cargo test\n      — red\n      (exit 1)");
        assert_eq!(result(14), "\n    cargo test\n      — red\n      (exit 1)");
    }
}
