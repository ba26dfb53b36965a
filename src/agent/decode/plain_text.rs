//! Decodes plain text: everything printed is the agent's message, and matching lines are denials.

use super::ActSink;
use crate::agent::pattern::PatternScanner;
use crate::engine::Act;
use regex::RegexSet;
use std::borrow::Cow;

/// Compiles an agent's patterns for lines. `None` if there are none.
pub(super) fn pattern_set(patterns: &[String]) -> Option<RegexSet> {
    // Even an empty set takes time to compile, and most commands have no patterns.
    let patterns = Some(patterns).filter(|patterns| !patterns.is_empty())?;
    RegexSet::new(patterns).ok()
}

/// Decodes plain text. Without denial patterns, the output is neither copied nor split into lines.
pub(crate) struct TextDecoder {
    /// The first bytes of a character whose other bytes have not arrived yet.
    partial_char: Vec<u8>,
    denials: Option<PatternScanner>,
}

impl TextDecoder {
    pub(super) fn new(denials: Option<RegexSet>, prompt: impl FnOnce() -> String) -> Self {
        let denials = denials.map(|patterns| PatternScanner::new(patterns, &prompt()));
        Self {
            partial_char: Vec::new(),
            denials,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], emit: &mut ActSink<'_>) {
        let mut rest = bytes;
        while !self.partial_char.is_empty()
            && let Some((first, others)) = rest.split_first()
        {
            self.partial_char.push(*first);
            if is_partial_char(&self.partial_char) {
                rest = others;
                continue;
            }
            // A byte that does not continue this character may start the next one.
            if std::str::from_utf8(&self.partial_char).is_ok() {
                rest = others;
            } else {
                self.partial_char.pop();
            }
            let character = std::mem::take(&mut self.partial_char);
            emit(Act::Text(String::from_utf8_lossy(&character)));
        }
        let cut = (1..=rest.len().min(3))
            .find(|tail| is_partial_char(&rest[rest.len() - tail..]))
            .unwrap_or(0);
        let (whole, partial) = rest.split_at(rest.len() - cut);
        self.partial_char.extend_from_slice(partial);
        if !whole.is_empty() {
            emit(Act::Text(decode_utf8(whole)));
        }
        if let Some(scanner) = &mut self.denials {
            scanner.feed(bytes, &mut |line| emit(Act::Denied(line.into())));
        }
    }

    pub(super) fn finish(&mut self, emit: &mut ActSink<'_>) {
        if !self.partial_char.is_empty() {
            emit(Act::Text(Cow::Borrowed("\u{fffd}")));
        }
        if let Some(scanner) = &mut self.denials {
            scanner.finish(&mut |line| emit(Act::Denied(line.into())));
        }
    }
}

/// Decodes UTF-8 lossily. Validates the whole text first, which is many times faster for valid
/// text.
fn decode_utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Returns whether `bytes` are the first part of exactly one character.
fn is_partial_char(bytes: &[u8]) -> bool {
    matches!(
        std::str::from_utf8(bytes),
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(denied: &[&str], prompt: &str, pieces: &[&[u8]]) -> (String, Vec<String>) {
        let denied: Vec<String> = denied.iter().map(|p| (*p).to_owned()).collect();
        let mut decoder = TextDecoder::new(pattern_set(&denied), || prompt.to_owned());
        let (mut text_so_far, mut denials) = (String::new(), Vec::new());
        let mut emit = |act: Act<'_>| match act {
            Act::Text(text) => text_so_far.push_str(&text),
            Act::Denied(line) => denials.push(line.into_owned()),
            other => panic!("{other:?}"),
        };
        for piece in pieces {
            decoder.feed(piece, &mut emit);
        }
        decoder.finish(&mut emit);
        (text_so_far, denials)
    }

    #[test]
    fn text_is_emitted_whole_however_the_bytes_are_split() {
        let text = "aé日𝄞 end\n".as_bytes();
        for size in 1..=text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(
                decode(&[], "", &pieces),
                ("aé日𝄞 end\n".into(), vec![]),
                "{size}"
            );
        }
    }

    #[test]
    fn invalid_utf8_becomes_replacement_characters() {
        assert_eq!(decode(&[], "", &[b"a\xff", b"b"]).0, "a\u{fffd}b");
        assert_eq!(decode(&[], "", &[b"a\xe6\x97"]).0, "a\u{fffd}");
        assert_eq!(decode(&[], "", &[b"a\xe6", b"b"]).0, "a\u{fffd}b");
        for cut in 0..=6 {
            let (one, other) = b"\xdf\xe4\xa4\xe6\x97\xa5".split_at(cut);
            assert_eq!(
                decode(&[], "", &[one, other]).0,
                "\u{fffd}\u{fffd}日",
                "{cut}"
            );
        }
    }

    #[test]
    fn a_matching_line_is_a_denial_unless_it_echoes_the_prompt() {
        let pieces: [&[u8]; 2] = [b"work\nPermission den", b"ied: Bash\nmore\n"];
        assert_eq!(
            decode(&["(?i)permission denied"], "go", &pieces).1,
            ["Permission denied: Bash"]
        );
        let prompt = "First line.\nPermission denied: Bash\n";
        assert_eq!(
            decode(
                &["(?i)permission denied"],
                prompt,
                &[prompt.as_bytes(), b"ok\n"]
            )
            .1,
            [""; 0]
        );
    }

    #[test]
    fn an_invalid_pattern_matches_nothing() {
        assert_eq!(decode(&["("], "", &[b"(\n"]).1, [""; 0]);
    }
}
