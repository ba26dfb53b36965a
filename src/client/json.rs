//! JSON as clients write it: their texts may be cut in the middle of a character, which strict JSON forbids.

use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// The value in these bytes. Halves of characters become replacement characters.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| match mended(bytes) {
        Cow::Owned(mended) => serde_json::from_slice(&mended),
        Cow::Borrowed(_) => Err(error),
    })
}

/// The same bytes without halves of characters; borrowed if there were none.
fn mended(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut text = match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(_) => Cow::Borrowed(bytes),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        at += match (unit(&text[at..]), text.get(at + 6..).and_then(unit)) {
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

/// The number of an escaped unit of UTF-16 that a text begins with.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
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
            assert_eq!(read::<String>(json.as_bytes()).unwrap(), text, "{json}");
        }
        assert_eq!(
            read::<String>(b"\"a\xff\xf0\x9f\"").unwrap(),
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
            assert!(read::<String>(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
