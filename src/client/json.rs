//! Parses JSON written by clients. A client may cut a string in the middle of a character, which
//! leaves half of a UTF-16 surrogate pair and makes the JSON invalid.

use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Parses JSON, replacing incomplete characters with U+FFFD.
pub(super) fn from_slice_lossy<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| match replace_partial_chars(bytes) {
        Cow::Owned(repaired) => serde_json::from_slice(&repaired),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Replaces invalid UTF-8 and escaped lone surrogates; borrows the input if it contains neither.
fn replace_partial_chars(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut text = match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(_) => Cow::Borrowed(bytes),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        at += match (
            utf16_escape(&text[at..]),
            text.get(at + 6..).and_then(utf16_escape),
        ) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                text.to_mut()[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            _ => 2.min(text.len() - at),
        };
    }
    text
}

/// Returns the UTF-16 code unit of the JSON `\u` escape at the start of `text`; `None` if there is
/// none.
fn utf16_escape(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_and_invalid_utf8_are_replaced_and_nothing_else() {
        for (json, text) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (
                r#""\udc00\ud83d\ude00\ud83d\ud83d""#,
                "\u{fffd}😀\u{fffd}\u{fffd}",
            ),
            (r#""\\ud83d \ud83d\n""#, "\\ud83d \u{fffd}\n"),
            (r#""\ud83d\\ude00""#, "\u{fffd}\\ude00"),
            (r#""\uD83D\u0041""#, "\u{fffd}A"),
        ] {
            assert_eq!(
                from_slice_lossy::<String>(json.as_bytes()).unwrap(),
                text,
                "{json}"
            );
        }
        assert_eq!(
            from_slice_lossy::<String>(b"\"a\xff\xf0\x9f\"").unwrap(),
            "a\u{fffd}\u{fffd}"
        );
        for broken in [
            r#""\"#,
            r#""\u"#,
            r#""\ud8"#,
            r#""\ud83d"#,
            r#""\ud83d\"#,
            r#""\ud83d\ude""#,
            "",
            "\\",
        ] {
            assert!(
                from_slice_lossy::<String>(broken.as_bytes()).is_err(),
                "{broken}"
            );
        }
    }
}
