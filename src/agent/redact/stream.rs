//! Redacts bytes that arrive in pieces.

use super::Redactor;
use std::borrow::Cow;

/// Redacts secrets in bytes that arrive in pieces, even if a secret is split between two pieces.
pub(crate) struct StreamRedactor {
    redactor: Redactor,
    /// The last bytes, which may be the start of a secret.
    held: Vec<u8>,
    /// Number of held bytes that were already shown.
    shown: usize,
    /// Minimum length of a possible start of a secret that is held back, in bytes.
    hold_min: usize,
}

impl StreamRedactor {
    /// Creates a redactor for a stream. On a terminal, where a person waits for every character, a
    /// short possible start of a secret is not held back.
    pub(crate) fn new(redactor: &Redactor, is_terminal: bool) -> Self {
        Self {
            redactor: redactor.clone(),
            held: Vec::new(),
            shown: 0,
            hold_min: if is_terminal { 4 } else { 1 },
        }
    }

    /// Adds the next bytes. Returns the bytes that can be shown.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.redactor.is_empty() {
            return Cow::Borrowed(bytes);
        }
        if self.held.is_empty() {
            return self.redact_decided(bytes, 0);
        }
        let (mut whole, shown) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.shown),
        );
        whole.extend_from_slice(bytes);
        Cow::Owned(self.redact_decided(&whole, shown).into_owned())
    }

    /// Returns the redacted bytes up to a possible start of a secret, and holds the rest. The first
    /// `shown` bytes were returned before.
    fn redact_decided<'a>(&mut self, bytes: &'a [u8], shown: usize) -> Cow<'a, [u8]> {
        let Some(secrets) = &self.redactor.0 else {
            return Cow::Borrowed(bytes);
        };
        let scan = secrets.scan(bytes, false);
        let decided = secrets.replace(bytes, &scan, shown);
        let undecided = &bytes[scan.undecided_from..];
        self.held.extend_from_slice(undecided);
        self.shown = shown.saturating_sub(scan.undecided_from);
        if undecided.len() >= self.hold_min {
            return decided;
        }
        let more = &undecided[std::mem::replace(&mut self.shown, undecided.len())..];
        match decided {
            Cow::Borrowed(_) => Cow::Borrowed(&bytes[shown..]),
            Cow::Owned(decided) => Cow::Owned([&decided, more].concat()),
        }
    }

    /// Returns the bytes that are still held, at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let (held, shown) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.shown),
        );
        let Some(secrets) = self.redactor.0.as_ref().filter(|_| !held.is_empty()) else {
            return Vec::new();
        };
        let scan = secrets.scan(&held, true);
        secrets.replace(&held, &scan, shown).into_owned()
    }
}
