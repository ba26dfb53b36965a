//! Plain text: what is printed is said, and lines that say so are denials.

use crate::agent::pattern::Scanner;
use crate::engine::Act;
use crate::engine::plan::Agent;
use regex::RegexSet;
use std::borrow::Cow;

/// The patterns of the lines by which an agent says that it was not allowed something. Made once for all of a
/// loop's iterations: that takes its time.
pub fn denials(agent: &Agent) -> Option<RegexSet> {
    // An empty set takes time as well, and most commands have none.
    let patterns = Some(&agent.denied).filter(|patterns| !patterns.is_empty())?;
    RegexSet::new(patterns).ok()
}

/// Reads plain text. A flood of it is neither copied nor cut into lines unless denials are looked for.
pub struct Text {
    /// The beginning of a character whose end has not come yet.
    torn: Vec<u8>,
    denied: Option<Scanner>,
}

impl Text {
    /// A reader of plain text in answer to this prompt, in which denials look like this.
    pub fn new(denied: Option<RegexSet>, prompt: impl FnOnce() -> String) -> Self {
        let denied = denied.map(|patterns| Scanner::new(patterns, &prompt()));
        Self {
            torn: Vec::new(),
            denied,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Act<'_>)) {
        let mut rest = bytes;
        while !self.torn.is_empty()
            && let Some((first, others)) = rest.split_first()
        {
            self.torn.push(*first);
            if is_torn(&self.torn) {
                rest = others;
                continue;
            }
            // A byte that does not belong to the torn character may begin another.
            if std::str::from_utf8(&self.torn).is_ok() {
                rest = others;
            } else {
                self.torn.pop();
            }
            let character = std::mem::take(&mut self.torn);
            tell(Act::Said(String::from_utf8_lossy(&character)));
        }
        let cut = (1..=rest.len().min(3))
            .find(|tail| is_torn(&rest[rest.len() - tail..]))
            .unwrap_or(0);
        let (whole, torn) = rest.split_at(rest.len() - cut);
        self.torn.extend_from_slice(torn);
        if !whole.is_empty() {
            tell(Act::Said(text_of(whole)));
        }
        if let Some(scanner) = &mut self.denied {
            scanner.feed(bytes, &mut |line| tell(Act::Denied(line.into())));
        }
    }

    pub(crate) fn finish(&mut self, tell: &mut dyn FnMut(Act<'_>)) {
        if !self.torn.is_empty() {
            tell(Act::Said(Cow::Borrowed("\u{fffd}")));
        }
        if let Some(scanner) = &mut self.denied {
            scanner.finish(&mut |line| tell(Act::Denied(line.into())));
        }
    }
}

/// The bytes as text. Checked as a whole first, which is many times faster where nothing has to be mended.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Whether these bytes are the beginning of one character, and no more than that.
fn is_torn(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(denied: &[&str], prompt: &str, pieces: &[&[u8]]) -> (String, Vec<String>) {
        let agent = Agent {
            denied: denied.iter().map(|p| (*p).to_owned()).collect(),
            ..Agent::default()
        };
        let mut reader = Text::new(denials(&agent), || prompt.to_owned());
        let (mut said, mut refused) = (String::new(), Vec::new());
        let mut take = |act: Act<'_>| match act {
            Act::Said(text) => said.push_str(&text),
            Act::Denied(line) => refused.push(line.into_owned()),
            other => panic!("{other:?}"),
        };
        for piece in pieces {
            reader.feed(piece, &mut take);
        }
        reader.finish(&mut take);
        (said, refused)
    }

    #[test]
    fn what_is_printed_is_said_however_it_is_cut() {
        let text = "aé日𝄞 end\n".as_bytes();
        for size in 1..=text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(
                read(&[], "", &pieces),
                ("aé日𝄞 end\n".into(), vec![]),
                "{size}"
            );
        }
    }

    #[test]
    fn what_is_no_text_is_marked() {
        assert_eq!(read(&[], "", &[b"a\xff", b"b"]).0, "a\u{fffd}b");
        assert_eq!(read(&[], "", &[b"a\xe6\x97"]).0, "a\u{fffd}");
        assert_eq!(read(&[], "", &[b"a\xe6", b"b"]).0, "a\u{fffd}b");
        for cut in 0..=6 {
            let (one, other) = b"\xdf\xe4\xa4\xe6\x97\xa5".split_at(cut);
            assert_eq!(
                read(&[], "", &[one, other]).0,
                "\u{fffd}\u{fffd}日",
                "{cut}"
            );
        }
    }

    #[test]
    fn a_line_that_says_so_is_a_denial_unless_the_prompt_says_it() {
        let pieces: [&[u8]; 2] = [b"work\nPermission den", b"ied: Bash\nmore\n"];
        assert_eq!(
            read(&["(?i)permission denied"], "go", &pieces).1,
            ["Permission denied: Bash"]
        );
        let prompt = "First line.\nPermission denied: Bash\n";
        assert_eq!(
            read(
                &["(?i)permission denied"],
                prompt,
                &[prompt.as_bytes(), b"ok\n"]
            )
            .1,
            [""; 0]
        );
    }

    #[test]
    fn a_pattern_that_is_none_finds_nothing() {
        assert_eq!(read(&["("], "", &[b"(\n"]).1, [""; 0]);
    }
}
