//! Encodes text to type into a terminal, without control characters, and as a bracketed paste if
//! the program supports it.

use std::fmt::Write;

/// Replaces control characters, which a terminal would treat as keys, with visible symbols.
pub(crate) fn escape_controls(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end_matches('\n').chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => out.push('\n'),
            '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + c as u32)),
            '\x7f' => out.push('\u{2421}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns the bytes that type `text`, without the Enter that submits it. If `bracketed`, the text
/// is sent as a bracketed paste.
pub(crate) fn keys(text: &str, bracketed: bool) -> Vec<u8> {
    let text = escape_controls(text);
    let mut out = String::with_capacity(text.len() + 12);
    let _ = if bracketed {
        write!(out, "\x1b[200~{text}\x1b[201~")
    } else {
        write!(out, "{text}")
    };
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible_symbols() {
        for (text, typed) in [
            (
                "two\nlines\tand \"quotes\" 'é日'\n",
                "two\nlines\tand \"quotes\" 'é日'",
            ),
            ("end\x1b[201~\rrm -rf", "end␛[201~\nrm -rf"),
            ("a\r\nb", "a\nb"),
            ("\x03\x04\x1a\x7f\u{9b}2J", "␃␄␚␡\u{fffd}2J"),
            ("", ""),
        ] {
            assert_eq!(escape_controls(text), typed, "{text:?}");
        }
    }

    #[test]
    fn a_paste_is_bracketed_where_the_program_supports_it() {
        assert_eq!(keys("a\n", true), b"\x1b[200~a\x1b[201~");
        assert_eq!(keys("a\n", false), b"a");
    }
}
