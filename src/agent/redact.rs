//! Secrets of the environment do not get into anything that ralph writes: their values are covered by their names.

use memchr::memmem;
use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Parts of a variable's name that make it look like a secret's.
const SECRET: [&str; 12] = [
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
/// What is shorter occurs by chance.
const SHORTEST: usize = 8;

/// The secrets that are covered.
#[derive(Clone, Default)]
pub struct Mask(Arc<[Secret]>);

struct Secret {
    name: String,
    cover: String,
    finder: memmem::Finder<'static>,
}

impl Mask {
    /// The secrets of this process' environment.
    pub fn of_environment() -> Self {
        Self::of(std::env::vars_os())
    }

    /// The secrets among these variables; the longest first, since one may begin with another.
    pub fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let secrets = variables.filter(|(name, value)| {
            let name = name.to_string_lossy().to_uppercase();
            looks_secret(&name) && is_worth_covering(value.as_bytes())
        });
        let mut secrets: Vec<Secret> = secrets
            .map(|(name, value)| Secret {
                name: name.to_string_lossy().into_owned(),
                cover: format!("[{}]", name.to_string_lossy()),
                finder: memmem::Finder::new(value.as_bytes()).into_owned(),
            })
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.finder.needle().len()));
        Self(secrets.into())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes with every secret covered: of those that overlap the first, of those that begin alike the longest.
    pub fn cover<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.cover_before(bytes, 0, |_| bytes.len()).0
    }

    /// Covers the secrets that begin before what is in doubt, and says where that is. `doubt` is asked from which place
    /// on, past what is covered, a secret may have begun. Bytes that were seen before are not told again.
    fn cover_before<'a>(
        &self,
        bytes: &'a [u8],
        seen: usize,
        doubt: impl Fn(usize) -> usize,
    ) -> (Cow<'a, [u8]>, usize) {
        let mut places: Vec<Option<usize>> = self
            .0
            .iter()
            .map(|secret| secret.finder.find(bytes))
            .collect();
        let mut clean = Vec::new();
        let (mut from, mut until) = (0, doubt(0));
        let unseen = |from: usize, to: usize| &bytes[from.max(seen).min(to)..to];
        while let Some((at, which)) = places
            .iter()
            .enumerate()
            .filter_map(|(which, at)| Some(((*at)?, which)))
            .min()
            && at < until
        {
            let secret = &self.0[which];
            clean.extend_from_slice(unseen(from, at));
            clean.extend_from_slice(secret.cover.as_bytes());
            from = at + secret.finder.needle().len();
            if until < from {
                until = doubt(from);
            }
            for (place, secret) in places.iter_mut().zip(&*self.0) {
                if place.is_some_and(|at| at < from) {
                    *place = secret.finder.find(&bytes[from..]).map(|at| from + at);
                }
            }
        }
        if from == 0 {
            return (Cow::Borrowed(unseen(0, until)), until);
        }
        clean.extend_from_slice(unseen(from, until));
        (Cow::Owned(clean), until)
    }

    /// The text with every secret covered.
    pub fn cover_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.cover(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Covers the secrets in all of these, and says which there were.
    pub fn cover_all<'a>(&self, texts: impl Iterator<Item = &'a mut String>) -> Vec<String> {
        let mut names = Vec::new();
        for text in texts {
            if let Cow::Owned(covered) = self.cover_text(text) {
                let found = self
                    .0
                    .iter()
                    .filter(|secret| covered.contains(&secret.cover));
                names.extend(found.map(|secret| secret.name.clone()));
                *text = covered;
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The text as it was, with the values of these variables in it.
    pub fn uncover(&self, text: &str, names: &[String]) -> String {
        let known = self.0.iter().filter(|secret| names.contains(&secret.name));
        known.fold(text.to_owned(), |text, secret| {
            text.replace(
                &secret.cover,
                &String::from_utf8_lossy(secret.finder.needle()),
            )
        })
    }

    /// How much of the end of these bytes may be the beginning of a secret.
    fn unsure(&self, bytes: &[u8]) -> usize {
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

fn looks_secret(name: &str) -> bool {
    name.split('_').any(|part| SECRET.contains(&part))
}

/// A path, a number or a short word is no secret, whatever its name.
fn is_worth_covering(value: &[u8]) -> bool {
    value.len() >= SHORTEST && !value.starts_with(b"/") && !value.iter().all(u8::is_ascii_digit)
}

/// Covers secrets in bytes that come piece by piece.
pub struct Veil {
    mask: Mask,
    /// The beginning of what may be a secret.
    held: Vec<u8>,
    /// How much of that was shown nevertheless.
    seen: usize,
    /// An ending that may be the beginning of a secret is held back from this length on.
    hold_from: usize,
}

impl Veil {
    /// For output. At a terminal, where a person waits for the last character, a short beginning is not held back.
    pub fn new(mask: &Mask, terminal: bool) -> Self {
        Self {
            mask: mask.clone(),
            held: Vec::new(),
            seen: 0,
            hold_from: if terminal { 4 } else { 1 },
        }
    }

    /// The next bytes that can be shown.
    pub fn feed<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.mask.0.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let (mut whole, seen) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.seen),
        );
        if whole.is_empty() {
            return self.go_on(bytes, 0);
        }
        whole.extend_from_slice(bytes);
        Cow::Owned(self.go_on(&whole, seen).into_owned())
    }

    /// Shows what is sure of these bytes, of which so many were seen before, and holds the rest.
    fn go_on<'a>(&mut self, bytes: &'a [u8], seen: usize) -> Cow<'a, [u8]> {
        let unsure_from = |from: usize| bytes.len() - self.mask.unsure(&bytes[from..]);
        let (sure, until) = self.mask.cover_before(bytes, seen, unsure_from);
        let doubtful = &bytes[until..];
        self.held.extend_from_slice(doubtful);
        self.seen = seen.saturating_sub(until);
        if doubtful.len() >= self.hold_from {
            return sure;
        }
        let more = &doubtful[std::mem::replace(&mut self.seen, doubtful.len())..];
        match sure {
            Cow::Borrowed(_) => Cow::Borrowed(&bytes[seen..]),
            Cow::Owned(sure) => Cow::Owned([&sure, more].concat()),
        }
    }

    /// What was held back, now that nothing follows.
    pub fn finish(&mut self) -> Vec<u8> {
        let (held, seen) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.seen),
        );
        self.mask
            .cover_before(&held, seen, |_| held.len())
            .0
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        let all = [
            ("MY_API_KEY", "sk-abcdef-123456"),
            ("LONGER_TOKEN", "sk-abcdef-123456-and-more"),
            ("SSH_AUTH_SOCK", "/tmp/socket-of-agent"),
            ("KEY_COUNT", "1234567890"),
            ("KEYBOARD", "querty-layout"),
            ("SHORT_KEY", "abc"),
            ("EDITOR", "sk-some-editor"),
        ];
        Mask::of(
            all.into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        )
    }

    #[test]
    fn a_secret_is_covered_by_its_name_and_nothing_else_is() {
        for (text, covered) in [
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
            assert_eq!(mask().cover_text(text), covered);
        }
    }

    #[test]
    fn a_secret_is_covered_however_it_is_cut() {
        let text = b"a sk-abcdef-123456 b sk-abcdef-123456-and-more c sk-abc";
        for size in 1..text.len() {
            let mut veil = Veil::new(&mask(), false);
            let mut shown = Vec::new();
            text.chunks(size)
                .for_each(|piece| shown.extend_from_slice(&veil.feed(piece)));
            shown.extend_from_slice(&veil.finish());
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, "a [MY_API_KEY] b [LONGER_TOKEN] c sk-abc", "{size}");
        }
    }

    #[test]
    fn a_secret_that_ends_as_one_begins_is_covered() {
        let all = [("A_KEY", "abcdefga"), ("B_KEY", "gabcdefgh")];
        let mask = Mask::of(
            all.into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        for (text, covered) in [
            ("abcdefga", "[A_KEY]"),
            ("abcdefga.", "[A_KEY]."),
            ("abcdefgabcdefga", "[A_KEY]bcdefga"),
            ("gabcdefga", "g[A_KEY]"),
            ("gabcdefgh", "[B_KEY]"),
        ] {
            assert_eq!(mask.cover_text(text), covered);
            for size in 1..=text.len() {
                let mut veil = Veil::new(&mask, false);
                let mut shown = Vec::new();
                text.as_bytes()
                    .chunks(size)
                    .for_each(|piece| shown.extend_from_slice(&veil.feed(piece)));
                shown.extend_from_slice(&veil.finish());
                assert_eq!(
                    String::from_utf8(shown).unwrap(),
                    covered,
                    "{text} by {size}"
                );
            }
        }
    }

    #[test]
    fn at_a_terminal_what_follows_a_beginning_that_was_shown_is_covered() {
        let mut veil = Veil::new(&mask(), true);
        let mut shown = Vec::new();
        for byte in b"a sk-abcdef-123456 b sk-sk-abcdef-123456 sk-ab" {
            shown.extend_from_slice(&veil.feed(&[*byte]));
        }
        assert_eq!(
            String::from_utf8_lossy(&shown),
            "a sk-[MY_API_KEY] b sk-sk-[MY_API_KEY] sk-"
        );
        assert_eq!(veil.finish(), b"ab");
    }

    #[test]
    fn at_a_terminal_a_short_ending_is_not_held_back() {
        let mut veil = Veil::new(&mask(), true);
        assert_eq!(&*veil.feed(b"$ s"), b"$ s");
        assert_eq!(&*Veil::new(&mask(), true).feed(b"key sk-abc"), b"key ");
    }
}
