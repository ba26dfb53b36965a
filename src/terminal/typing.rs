//! How a text is typed at a terminal: pasted where the program can tell, and with nothing in it that is a key.

use std::fmt::Write;

/// A text without what a terminal would take for a key or a command: each control shows as its picture.
pub(crate) fn harmless(text: &str) -> String {
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

/// The keys that put a text in. The key that sends it comes later.
pub(crate) fn keys(text: &str, bracketed: bool) -> Vec<u8> {
    let text = harmless(text);
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
    fn what_would_be_a_key_is_a_picture() {
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
            assert_eq!(harmless(text), typed, "{text:?}");
        }
    }

    #[test]
    fn a_paste_has_its_brackets_where_the_program_knows_them() {
        assert_eq!(keys("a\n", true), b"\x1b[200~a\x1b[201~");
        assert_eq!(keys("a\n", false), b"a");
    }
}
