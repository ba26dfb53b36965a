//! Redacts the values of secret environment variables in everything that ralph writes.
//!
//! Each secret is replaced with its variable's name in brackets, such as `[ANTHROPIC_API_KEY]`.

use memchr::memmem;
use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Parts of a variable's name, between underscores, that mark its value as secret.
const SECRET_NAME_PARTS: [&str; 12] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
];
/// Minimum length of a value that is redacted, in bytes. Shorter values occur in other text by
/// chance.
const SECRET_MIN: usize = 8;

/// Replaces a fixed set of secrets with the names of their variables.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Arc<[Secret]>);

struct Secret {
    name: String,
    placeholder: String,
    finder: memmem::Finder<'static>,
}

impl Redactor {
    /// Creates a redactor for the secrets in this process's environment.
    pub(crate) fn from_env() -> Self {
        Self::from_vars(std::env::vars_os())
    }

    /// Creates a redactor for the secrets among `variables`.
    pub(crate) fn from_vars(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let secrets = variables.filter(|(name, value)| {
            let name = name.to_string_lossy().to_uppercase();
            is_secret_name(&name) && is_secret_value(value.as_bytes())
        });
        let mut secrets: Vec<Secret> = secrets
            .map(|(name, value)| Secret {
                name: name.to_string_lossy().into_owned(),
                placeholder: format!("[{}]", name.to_string_lossy()),
                finder: memmem::Finder::new(value.as_bytes()).into_owned(),
            })
            .collect();
        // One secret may be the prefix of another. The longer one must win.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.finder.needle().len()));
        Self(secrets.into())
    }

    /// Returns whether there are no secrets to redact.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Redacts all secrets. If secrets overlap, the first one is replaced; if they start at the
    /// same place, the longest one.
    pub(crate) fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.redact_before(bytes, 0, |_| bytes.len()).0
    }

    /// Redacts the secrets that start before an undecided tail. Also returns the offset at which
    /// the tail starts.
    ///
    /// `undecided_from` is called with the end of the last secret, and returns the offset of the
    /// first byte that may belong to an incomplete secret. The first `shown` bytes were returned
    /// before and are omitted.
    fn redact_before<'a>(
        &self,
        bytes: &'a [u8],
        shown: usize,
        undecided_from: impl Fn(usize) -> usize,
    ) -> (Cow<'a, [u8]>, usize) {
        let mut matches: Vec<Option<usize>> = self
            .0
            .iter()
            .map(|secret| secret.finder.find(bytes))
            .collect();
        let mut redacted = Vec::new();
        let (mut from, mut until) = (0, undecided_from(0));
        let unshown = |from: usize, to: usize| &bytes[from.max(shown).min(to)..to];
        while let Some((start, index)) = matches
            .iter()
            .enumerate()
            .filter_map(|(index, start)| Some(((*start)?, index)))
            .min()
            && start < until
        {
            let secret = &self.0[index];
            redacted.extend_from_slice(unshown(from, start));
            redacted.extend_from_slice(secret.placeholder.as_bytes());
            from = start + secret.finder.needle().len();
            if until < from {
                until = undecided_from(from);
            }
            for (next, secret) in matches.iter_mut().zip(&*self.0) {
                if next.is_some_and(|start| start < from) {
                    *next = secret.finder.find(&bytes[from..]).map(|at| from + at);
                }
            }
        }
        if from == 0 {
            return (Cow::Borrowed(unshown(0, until)), until);
        }
        redacted.extend_from_slice(unshown(from, until));
        (Cow::Owned(redacted), until)
    }

    /// Redacts all secrets in a text.
    pub(crate) fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Redacts several texts in place. Returns the names of the secrets that occurred.
    pub(crate) fn redact_all<'a>(
        &self,
        texts: impl Iterator<Item = &'a mut String>,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for text in texts {
            if let Cow::Owned(redacted) = self.redact_text(text) {
                let found = self
                    .0
                    .iter()
                    .filter(|secret| redacted.contains(&secret.placeholder));
                names.extend(found.map(|secret| secret.name.clone()));
                *text = redacted;
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Replaces the placeholders of the secrets `names` with their values.
    pub(crate) fn restore(&self, text: &str, names: &[String]) -> String {
        let known = self.0.iter().filter(|secret| names.contains(&secret.name));
        known.fold(text.to_owned(), |text, secret| {
            text.replace(
                &secret.placeholder,
                &String::from_utf8_lossy(secret.finder.needle()),
            )
        })
    }

    /// Returns the number of bytes at the end of `bytes` that may be the start of a secret.
    fn undecided_len(&self, bytes: &[u8]) -> usize {
        let longest = |secret: &Secret| {
            let needle = secret.finder.needle();
            let most = bytes.len().min(needle.len() - 1);
            (1..=most)
                .rev()
                .find(|count| bytes.ends_with(&needle[..*count]))
                .unwrap_or(0)
        };
        self.0.iter().map(longest).max().unwrap_or(0)
    }
}

fn is_secret_name(name: &str) -> bool {
    name.split('_')
        .any(|part| SECRET_NAME_PARTS.contains(&part))
}

/// Returns whether a value may be a secret. Paths, numbers and short values are not secrets.
fn is_secret_value(value: &[u8]) -> bool {
    value.len() >= SECRET_MIN && !value.starts_with(b"/") && !value.iter().all(u8::is_ascii_digit)
}

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
        if self.redactor.0.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let (mut whole, shown) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.shown),
        );
        if whole.is_empty() {
            return self.redact_decided(bytes, 0);
        }
        whole.extend_from_slice(bytes);
        Cow::Owned(self.redact_decided(&whole, shown).into_owned())
    }

    /// Returns the redacted bytes up to a possible start of a secret, and holds the rest. The first
    /// `shown` bytes were returned before.
    fn redact_decided<'a>(&mut self, bytes: &'a [u8], shown: usize) -> Cow<'a, [u8]> {
        let undecided_from =
            |from: usize| bytes.len() - self.redactor.undecided_len(&bytes[from..]);
        let (decided, until) = self.redactor.redact_before(bytes, shown, undecided_from);
        let undecided = &bytes[until..];
        self.held.extend_from_slice(undecided);
        self.shown = shown.saturating_sub(until);
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
        self.redactor
            .redact_before(&held, shown, |_| held.len())
            .0
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let all = [
            ("MY_API_KEY", "sk-abcdef-123456"),
            ("LONGER_TOKEN", "sk-abcdef-123456-and-more"),
            ("SSH_AUTH_SOCK", "/tmp/socket-of-agent"),
            ("KEY_COUNT", "1234567890"),
            ("KEYBOARD", "querty-layout"),
            ("SHORT_KEY", "abc"),
            ("EDITOR", "sk-some-editor"),
        ];
        Redactor::from_vars(
            all.into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        )
    }

    #[test]
    fn secrets_are_replaced_by_their_names_and_nothing_else_is() {
        for (text, redacted) in [
            ("the key sk-abcdef-123456.", "the key [MY_API_KEY]."),
            ("sk-abcdef-123456-and-more", "[LONGER_TOKEN]"),
            (
                "sk-abcdef-123456sk-abcdef-123456",
                "[MY_API_KEY][MY_API_KEY]",
            ),
            (
                "/tmp/socket-of-agent 1234567890 querty-layout abc",
                "/tmp/socket-of-agent 1234567890 querty-layout abc",
            ),
            ("sk-some-editor sk-abcdef", "sk-some-editor sk-abcdef"),
        ] {
            assert_eq!(redactor().redact_text(text), redacted);
        }
    }

    #[test]
    fn a_secret_is_redacted_however_the_bytes_are_split() {
        let text = b"a sk-abcdef-123456 b sk-abcdef-123456-and-more c sk-abc";
        for size in 1..text.len() {
            let mut stream_redactor = StreamRedactor::new(&redactor(), false);
            let mut shown = Vec::new();
            text.chunks(size)
                .for_each(|piece| shown.extend_from_slice(&stream_redactor.feed(piece)));
            shown.extend_from_slice(&stream_redactor.finish());
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, "a [MY_API_KEY] b [LONGER_TOKEN] c sk-abc", "{size}");
        }
    }

    #[test]
    fn a_secret_whose_end_may_start_another_is_redacted() {
        let all = [("A_KEY", "abcdefga"), ("B_KEY", "gabcdefgh")];
        let redactor = Redactor::from_vars(
            all.into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        for (text, redacted) in [
            ("abcdefga", "[A_KEY]"),
            ("abcdefga.", "[A_KEY]."),
            ("abcdefgabcdefga", "[A_KEY]bcdefga"),
            ("gabcdefga", "g[A_KEY]"),
            ("gabcdefgh", "[B_KEY]"),
        ] {
            assert_eq!(redactor.redact_text(text), redacted);
            for size in 1..=text.len() {
                let mut stream_redactor = StreamRedactor::new(&redactor, false);
                let mut shown = Vec::new();
                text.as_bytes()
                    .chunks(size)
                    .for_each(|piece| shown.extend_from_slice(&stream_redactor.feed(piece)));
                shown.extend_from_slice(&stream_redactor.finish());
                assert_eq!(
                    String::from_utf8(shown).unwrap(),
                    redacted,
                    "{text} by {size}"
                );
            }
        }
    }

    #[test]
    fn at_a_terminal_the_rest_of_a_secret_is_redacted_after_its_start_was_shown() {
        let mut stream_redactor = StreamRedactor::new(&redactor(), true);
        let mut shown = Vec::new();
        for byte in b"a sk-abcdef-123456 b sk-sk-abcdef-123456 sk-ab" {
            shown.extend_from_slice(&stream_redactor.feed(&[*byte]));
        }
        assert_eq!(
            String::from_utf8_lossy(&shown),
            "a sk-[MY_API_KEY] b sk-sk-[MY_API_KEY] sk-"
        );
        assert_eq!(stream_redactor.finish(), b"ab");
    }

    #[test]
    fn at_a_terminal_a_possible_start_of_a_secret_is_shown_if_it_is_short() {
        let mut stream_redactor = StreamRedactor::new(&redactor(), true);
        assert_eq!(&*stream_redactor.feed(b"$ s"), b"$ s");
        assert_eq!(
            &*StreamRedactor::new(&redactor(), true).feed(b"key sk-abc"),
            b"key "
        );
    }
}
