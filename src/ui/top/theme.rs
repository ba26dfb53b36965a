//! The colors and symbols of `ralph top`.
//!
//! Every color has the same contrast on light and on dark terminals, good and bad differ for
//! color-blind people, too, and each meaning has a symbol or a word of its own.

use super::code::CodePart;
use crate::engine::Status;
use crate::ui::TextStyle;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// How many colors the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorDepth {
    Monochrome,
    Sixteen,
    Indexed,
}

/// How things are shown on this terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) colors: ColorDepth,
    /// Whether only ASCII characters are shown.
    pub(crate) ascii: bool,
}

impl Theme {
    /// A theme for measuring.
    pub(super) const PLAIN: Self = Self {
        colors: ColorDepth::Monochrome,
        ascii: false,
    };

    /// Returns the theme for the terminal that the environment describes.
    pub(crate) fn detect() -> Self {
        let term = std::env::var("TERM").unwrap_or_default();
        let is_indexed = std::env::var_os("COLORTERM").is_some()
            || ["256", "kitty", "alacritty", "ghostty", "foot", "wezterm"]
                .iter()
                .any(|name| term.contains(name));
        let colors = if !crate::ui::tty::use_color() {
            ColorDepth::Monochrome
        } else if is_indexed {
            ColorDepth::Indexed
        } else {
            ColorDepth::Sixteen
        };
        Self {
            colors,
            ascii: crate::ui::ascii::use_ascii(),
        }
    }

    fn color(self, indexed: u8, basic: Color) -> Style {
        match self.colors {
            ColorDepth::Monochrome => Style::new(),
            ColorDepth::Sixteen => Style::new().fg(basic),
            ColorDepth::Indexed => Style::new().fg(Color::Indexed(indexed)),
        }
    }

    /// Green checks, done loops and added lines: blue.
    pub(super) fn good(self) -> Style {
        self.color(32, Color::Cyan)
    }

    /// Red checks, failures and removed lines: orange.
    pub(super) fn bad(self) -> Style {
        self.color(166, Color::Red)
    }

    /// What needs a person: magenta, and bold.
    pub(super) fn attention(self) -> Style {
        self.color(133, Color::Magenta).add_modifier(Modifier::BOLD)
    }

    /// What is less important.
    pub(super) fn dim(self) -> Style {
        match self.colors {
            ColorDepth::Indexed => Style::new().fg(Color::Indexed(245)),
            _ => Style::new().add_modifier(Modifier::DIM),
        }
    }

    #[expect(clippy::unused_self, reason = "a style like all others")]
    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected row, tab or cell.
    #[expect(clippy::unused_self, reason = "a style like all others")]
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of a part of a line of code that is drawn with `line`.
    pub(super) fn code(self, part: CodePart, line: Style) -> Style {
        let is_context = line == Style::new();
        match part {
            CodePart::Changed => line.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            CodePart::Keyword => line.add_modifier(Modifier::BOLD),
            CodePart::Comment if is_context => self.dim(),
            CodePart::String if is_context => self.color(65, Color::Reset),
            CodePart::Comment | CodePart::String => line,
        }
    }

    /// The style of a line that the console would print with `style`.
    pub(super) fn of(self, style: TextStyle) -> Style {
        match style {
            TextStyle::Green => self.good(),
            TextStyle::Red => self.bad(),
            TextStyle::Yellow => self.attention(),
            TextStyle::Dim => self.dim(),
            TextStyle::Bold | TextStyle::Cyan => self.bold(),
        }
    }

    /// Returns the symbol and the style of a status.
    pub(super) fn status(self, status: Status) -> (&'static str, Style) {
        match status {
            Status::Starting | Status::Running => ("▶", self.good().add_modifier(Modifier::BOLD)),
            Status::Paused => ("‖", self.attention()),
            Status::Blocked | Status::Waiting => ("?", self.attention()),
            Status::Done => ("✔", self.good()),
            Status::Stopped => ("■", self.dim()),
            Status::Crashed => ("!", self.bad().add_modifier(Modifier::BOLD)),
            Status::Failed => ("✘", self.bad()),
        }
    }

    /// Replaces everything in the buffer that this terminal may not show, and every character that
    /// could act on it.
    pub(super) fn filter(self, buffer: &mut Buffer) {
        for cell in &mut buffer.content {
            let symbol = cell.symbol();
            let is_plain = symbol.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if is_plain {
                continue;
            }
            if symbol.chars().any(char::is_control) {
                cell.set_symbol("?");
            } else if self.ascii {
                let first = symbol.chars().next().unwrap_or(' ');
                cell.set_char(ascii_symbol(first));
            }
        }
    }
}

/// The symbols of `ralph top`, each with an ASCII character of the same width.
const SYMBOLS: [(char, char); 30] = [
    ('●', '*'),
    ('◐', '/'),
    ('○', 'o'),
    ('▶', '>'),
    ('‖', '='),
    ('▾', 'v'),
    ('≥', '>'),
    ('→', '>'),
    ('←', '<'),
    ('↑', '^'),
    ('↓', 'v'),
    ('─', '-'),
    ('┬', '+'),
    ('┴', '+'),
    ('├', '|'),
    ('┤', '|'),
    ('┌', '+'),
    ('┐', '+'),
    ('┘', '+'),
    ('╭', '+'),
    ('╮', '+'),
    ('╰', '+'),
    ('╯', '+'),
    ('▁', '_'),
    ('▂', '_'),
    ('▃', '.'),
    ('▄', '='),
    ('▅', '='),
    ('▆', '#'),
    ('▇', '#'),
];

fn ascii_symbol(c: char) -> char {
    let own = SYMBOLS.iter().find(|(symbol, _)| *symbol == c);
    let own = own.map(|(_, ascii)| *ascii);
    own.or_else(|| crate::ui::ascii::ascii_symbol(c))
        .unwrap_or(match c {
            '█' => '#',
            _ => '?',
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::display::char_width;
    use ratatui::layout::Rect;

    #[test]
    fn replaced_symbols_keep_their_width() {
        for (symbol, ascii) in SYMBOLS {
            assert_eq!((char_width(symbol), char_width(ascii)), (1, 1), "{symbol}");
        }
    }

    #[test]
    fn an_ascii_terminal_gets_only_ascii_and_no_terminal_gets_control_characters() {
        let theme = |ascii| Theme {
            colors: ColorDepth::Monochrome,
            ascii,
        };
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "●é│█a", Style::new());
        buffer.content[5].set_symbol("\u{1b}[2J");
        let mut same = buffer.clone();
        theme(false).filter(&mut same);
        let shown = |buffer: &Buffer| -> String {
            buffer
                .content
                .iter()
                .map(ratatui::buffer::Cell::symbol)
                .collect()
        };
        assert_eq!(shown(&same), "●é│█a?  ");
        theme(true).filter(&mut buffer);
        assert_eq!(shown(&buffer), "*?|#a?  ");
    }
}
