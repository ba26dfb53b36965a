//! Replaces ralph's own symbols with ASCII characters where the terminal or the locale may not show
//! them. Output that scripts read is never changed.

use super::tty::is_dumb;
use std::sync::OnceLock;

/// Each symbol and a character of the same width.
const SYMBOLS: [(char, char); 15] = [
    ('✔', '+'),
    ('✘', 'x'),
    ('■', '#'),
    ('▸', '>'),
    ('│', '|'),
    ('·', '-'),
    ('…', '~'),
    ('–', '-'),
    ('—', '-'),
    ('−', '-'),
    ('×', 'x'),
    ('└', '`'),
    ('█', '#'),
    ('▌', '-'),
    // Stands for a character that must not be printed.
    ('\u{fffd}', '?'),
];

/// Returns whether this process should print ASCII only.
pub(super) fn use_ascii() -> bool {
    static USE_ASCII: OnceLock<bool> = OnceLock::new();
    *USE_ASCII.get_or_init(|| is_dumb() || locale_is_ascii(|name| std::env::var(name).ok()))
}

/// Replaces the symbols in a text for people if this process should print ASCII only.
pub(crate) fn adapt(text: String) -> String {
    if use_ascii() {
        replace_symbols(&text)
    } else {
        text
    }
}

/// Returns the ASCII character for one of ralph's own symbols; `None` for any other character.
pub(super) fn ascii_symbol(c: char) -> Option<char> {
    let found = SYMBOLS.iter().find(|(symbol, _)| *symbol == c);
    found.map(|(_, ascii)| *ascii)
}

fn replace_symbols(text: &str) -> String {
    text.chars().map(|c| ascii_symbol(c).unwrap_or(c)).collect()
}

/// Returns whether the locale has a character set other than UTF-8. The first variable that is set
/// counts. Without any, as in many containers, the output is usually read as UTF-8.
fn locale_is_ascii(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_lowercase();
        !value.contains("utf-8") && !value.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_variable_that_is_set_counts() {
        for (all, lang, ascii) in [
            ("", "", false),
            ("C", "en_US.UTF-8", true),
            ("POSIX", "", true),
            ("C.UTF-8", "C", false),
            ("", "de_DE.utf8", false),
            ("", "de_DE.ISO-8859-1", true),
        ] {
            let variable = |name: &str| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            };
            assert_eq!(locale_is_ascii(variable), ascii, "{all} {lang}");
        }
    }

    #[test]
    fn replaced_symbols_keep_their_width() {
        for (symbol, ascii) in SYMBOLS {
            let widths = [symbol, ascii].map(crate::engine::display::char_width);
            assert_eq!(widths[0], widths[1], "{symbol}");
        }
        assert_eq!(replace_symbols("✔ done · é"), "+ done - é");
    }
}
