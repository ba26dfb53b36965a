//! Terminal text without its controls: what is left is safe to show and to match against.

use std::borrow::Cow;

/// Removes escape sequences and control characters, and marks characters that reorder text.
/// Tabs stay; whoever calls has cut the text into lines.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte == b'\t' || (0x20..0x7f).contains(&byte))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\t' => out.push(c),
            c if c.is_control() => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.next() {
        Some('[') => skip_control_sequence(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next();
        }
        _ => {}
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// Up to the bell or the string terminator; an unterminated one swallows the rest of the line.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next() {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_gone_and_words_stay() {
        for (raw, shown) in [
            ("plain\ttext", "plain\ttext"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]0;title\x1b\\after", "after"),
            ("\u{9d}8;;evil\u{9c}link", "link"),
            ("\x1bP+q544e\x1b\\x", "x"),
            ("\u{90}dcs\u{9c}x", "x"),
            ("\u{9b}2Jx", "x"),
            ("\x1b[2J\x1b[Hspoof", "spoof"),
            ("\x1b(Bx", "x"),
            ("\x1b#8x", "x"),
            ("\x1bcreset", "reset"),
            ("bell\x07 back\x08 del\x7f", "bell back del"),
            ("over\rwritten", "overwritten"),
            ("\u{202e}txt.exe", "\u{fffd}txt.exe"),
            ("\u{2066}a\u{200f}b", "\u{fffd}a\u{fffd}b"),
            ("\x1b]0;never ends", ""),
            ("\x1b[31", ""),
            ("\x1b", ""),
            ("日本語 ✓ é", "日本語 ✓ é"),
        ] {
            assert_eq!(plain(raw), shown, "{raw:?}");
        }
    }
}
