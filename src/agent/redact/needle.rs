//! A secret's text, as it is searched for in output.

use super::canonical::{self, Canonical};
use std::ops::Range;

/// Minimum and maximum length of a run of characters by which a secret is found fast, in bytes.
pub(super) const RUN_MIN: usize = 4;
const RUN_MAX: usize = 16;
/// A canonical form of at least this length does not occur by chance, whatever it leaves out.
const SHORT_FORM: usize = 6;

/// A text to be redacted.
pub(super) struct Needle {
    pub(super) canonical: Vec<u8>,
    pub(super) placeholder: String,
    /// A run of characters that a match must contain unless an escape splits it. The canonical form
    /// alone cannot tell a line break from the letter of its escape.
    pub(super) run: Vec<u8>,
    /// Number of backslashes that a match must contain, because the canonical form alone is too
    /// short.
    backslashes: usize,
}

impl Needle {
    /// Returns `None` if nothing is left of the text in canonical form.
    pub(super) fn new(placeholder: String, text: &[u8]) -> Option<Self> {
        let canonical = Canonical::new(text).text;
        let is_short = canonical.len() < SHORT_FORM;
        let backslashes = memchr::memchr_iter(b'\\', text).count();
        (!canonical.is_empty()).then_some(Self {
            canonical,
            placeholder,
            run: plain_run(text).to_vec(),
            backslashes: if is_short { backslashes } else { 0 },
        })
    }

    /// Returns whether a text with this canonical form has the run of characters, or may have it.
    pub(super) fn has_run(&self, text: &[u8]) -> bool {
        self.run.len() < RUN_MIN
            || memchr::memmem::find(text, &self.run).is_some()
            || canonical::may_split_runs(text)
    }

    /// Returns whether the text at `place` is this secret and not a short word like it.
    pub(super) fn is_plausible(&self, bytes: &[u8], place: &Range<usize>) -> bool {
        if self.backslashes == 0 {
            return true;
        }
        let is_other = |byte: &u8| *byte != b'\\';
        let start = bytes[..place.start].iter().rposition(is_other);
        let end = bytes[place.end..].iter().position(is_other);
        let start = start.map_or(0, |at| at + 1);
        let end = end.map_or(bytes.len(), |at| place.end + at);
        memchr::memchr_iter(b'\\', &bytes[start..end]).count() >= self.backslashes
    }
}

/// Returns the longest run of characters that no escaping changes, or its beginning.
fn plain_run(text: &[u8]) -> &[u8] {
    let (mut longest, mut start) = (&text[..0], 0);
    let mut at = 0;
    while at <= text.len() {
        let is_plain = text.get(at).is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || b"-_.+=:,;@#%*()[]{}|~!?$^".contains(byte)
        });
        if is_plain {
            at += 1;
            continue;
        }
        if at - start > longest.len() {
            longest = &text[start..at];
        }
        // What follows a backslash may itself be part of an escape.
        at += if text.get(at) == Some(&b'\\') { 6 } else { 1 };
        start = at;
    }
    &longest[..longest.len().min(RUN_MAX)]
}
