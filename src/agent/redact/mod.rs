//! Redacts the values of secret environment variables in everything that ralph writes.
//!
//! Each secret is replaced with its variable's name in brackets, such as `[ANTHROPIC_API_KEY]`. It is
//! found however it was escaped for JSON, printed in colors, or folded to one line. The lines of a
//! value with several lines, such as a private key, are also secrets of their own.
//!
//! Output is redacted where it arrives: bytes before they are logged or decoded ([`StreamRedactor`]),
//! and acts right after they were decoded ([`ActRedactor`]), because a stream may spread a text over
//! many events. Everything else is redacted where it enters: events before they are recorded, and
//! texts of people before they are written.

mod acts;
mod canonical;
mod needle;
mod stream;

#[cfg(test)]
mod tests;

pub(crate) use acts::ActRedactor;
pub(crate) use stream::StreamRedactor;

use crate::engine::Plan;
use crate::engine::signals::fold_whitespace;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, packed};
use canonical::Canonical;
use needle::{Needle, RUN_MIN};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
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
/// Minimum length of a line that is redacted without the rest of its value, in bytes.
const LINE_MIN: usize = 16;

/// Replaces a fixed set of secrets with the names of their variables.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Option<Arc<Secrets>>);

struct Secrets {
    needles: Vec<Needle>,
    /// Finds the needles in a text in canonical form.
    finder: AhoCorasick,
    /// Finds a run of characters of each needle, which escaping does not change, much faster. `None`
    /// if a needle has no such run, or if there are too many.
    runs: Option<packed::Searcher>,
    /// The texts that stand for secrets in a plan, and what they are restored to.
    exact: Vec<Exact>,
    /// Maximum number of bytes that may be the start of a secret.
    undecided_max: usize,
}

/// A text that can be replaced with a placeholder and restored exactly.
struct Exact {
    name: String,
    text: String,
    placeholder: String,
}

/// The secrets in a text.
struct Scan {
    /// The places of the secrets, in order, and their needles.
    found: Vec<(Range<usize>, usize)>,
    /// Where the text begins that may be the start of a secret, or the text's length.
    undecided_from: usize,
}

impl Redactor {
    /// Creates a redactor for the secrets in this process's environment.
    pub(crate) fn from_env() -> Self {
        Self::from_vars(std::env::vars_os())
    }

    /// Creates a redactor for the secrets in this process's environment, and for those that a plan
    /// sets for its agents.
    pub(crate) fn for_plan(plan: &Plan) -> Self {
        let own = Self::from_env();
        let mut set = plan.agents().flat_map(|agent| &agent.env).peekable();
        if set.peek().is_none() {
            return own;
        }
        let set = set.map(|(name, value)| (name.into(), own.restore(value, &plan.redacted).into()));
        Self::from_vars(std::env::vars_os().chain(set))
    }

    /// Creates a redactor for the secrets among `variables`.
    pub(crate) fn from_vars(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let secrets = variables.filter(|(name, value)| {
            let name = name.to_string_lossy().to_uppercase();
            is_secret_name(&name) && is_secret_value(value.as_bytes())
        });
        let (mut needles, mut runs, mut exact) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in secrets {
            let name = name.to_string_lossy();
            for (placeholder, text) in texts_of(&name, &value) {
                if let Some(needle) = Needle::new(placeholder, &text) {
                    runs.push(needle.run.clone());
                    needles.push(needle);
                }
            }
            exact.extend(
                value
                    .to_str()
                    .into_iter()
                    .flat_map(|value| Exact::all(&name, value)),
            );
        }
        // Of two variables with the same value, the first one names it.
        let canonical: Vec<&[u8]> = needles.iter().map(|needle| &needle.canonical[..]).collect();
        let longest = canonical.iter().map(|form| form.len()).max();
        let finder = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&canonical);
        let (Some(longest), Ok(finder)) = (longest, finder) else {
            return Self::default();
        };
        let has_runs = runs.iter().all(|run| run.len() >= RUN_MIN);
        Self(Some(Arc::new(Secrets {
            runs: has_runs.then(|| packed::Searcher::new(&runs)).flatten(),
            needles,
            finder,
            exact,
            // Each character may be an escape of six.
            undecided_max: 6 * longest + 256,
        })))
    }

    /// Returns whether there are no secrets to redact.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Redacts all secrets. If secrets overlap, the first one is replaced; if they start at the
    /// same place, the longest one.
    pub(crate) fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(secrets) = &self.0 else {
            return Cow::Borrowed(bytes);
        };
        let scan = secrets.scan(bytes, true);
        secrets.replace(bytes, &scan, 0)
    }

    /// Redacts all secrets in a text.
    pub(crate) fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Redacts all secrets in a text whose end was cut off. Leaves out what may be the start of a
    /// secret at its end.
    pub(crate) fn redact_cut<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(secrets) = &self.0 else {
            return Cow::Borrowed(text);
        };
        let scan = secrets.scan(text.as_bytes(), false);
        let bytes = secrets.replace(text.as_bytes(), &scan, 0);
        Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Redacts a text in place.
    pub(crate) fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact_text(text) {
            *text = redacted;
        }
    }

    /// Redacts all texts in a JSON value.
    pub(crate) fn redact_json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.redact_string(text),
            serde_json::Value::Array(items) => {
                for item in items {
                    self.redact_json(item);
                }
            }
            serde_json::Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.redact_json(field);
                }
            }
            _ => {}
        }
    }

    /// Redacts several texts in place such that [`Redactor::restore`] can undo it. Returns the names
    /// of the secrets that occurred.
    pub(crate) fn redact_all<'a>(
        &self,
        texts: impl Iterator<Item = &'a mut String>,
    ) -> Vec<String> {
        let Some(secrets) = &self.0 else {
            return Vec::new();
        };
        let mut names = Vec::new();
        let exact: Vec<&Exact> = secrets.exact.iter().collect();
        for text in texts.filter(|text| !secrets.scan(text.as_bytes(), true).found.is_empty()) {
            *text = substitute(text, &exact, |exact| (&exact.text, &exact.placeholder));
            self.redact_string(text);
            let found = exact
                .iter()
                .filter(|exact| text.contains(&exact.placeholder));
            names.extend(found.map(|exact| exact.name.clone()));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Redacts a regular expression in place such that it matches redacted output. Returns the names
    /// of the secrets that occurred.
    pub(crate) fn redact_pattern(&self, pattern: &mut String) -> Vec<String> {
        let Some(secrets) = &self.0 else {
            return Vec::new();
        };
        let bytes = pattern.as_bytes();
        // A value has backslashes in a pattern, which a fast search does not find.
        let scan = secrets.scan_from(0, bytes, true, false);
        let (mut redacted, mut names, mut from) = (Vec::new(), Vec::new(), 0);
        for (place, needle) in scan.found {
            let placeholder = &secrets.needles[needle].placeholder;
            redacted.extend_from_slice(&bytes[from..place.start]);
            redacted.extend_from_slice(regex::escape(placeholder).as_bytes());
            let name = placeholder.trim_start_matches('[').split([':', ']']).next();
            names.extend(name.map(str::to_owned));
            from = place.end;
        }
        redacted.extend_from_slice(&bytes[from..]);
        *pattern = String::from_utf8_lossy(&redacted).into_owned();
        names
    }

    /// Replaces the placeholders of the secrets `names` with their values.
    pub(crate) fn restore(&self, text: &str, names: &[String]) -> String {
        let exact = self.0.iter().flat_map(|secrets| &secrets.exact);
        let exact: Vec<&Exact> = exact.filter(|exact| names.contains(&exact.name)).collect();
        substitute(text, &exact, |exact| (&exact.placeholder, &exact.text))
    }
}

impl Secrets {
    /// Finds the secrets in a text. Unless the text `is_complete`, more may follow: then a secret is
    /// only found if what follows cannot make it another one.
    fn scan(&self, bytes: &[u8], is_complete: bool) -> Scan {
        let may_match = self
            .runs
            .as_ref()
            .is_none_or(|runs| runs.find(bytes).is_some())
            || canonical::may_split_runs(bytes);
        let end = bytes.len().saturating_sub(self.undecided_max);
        let from = match (may_match, is_complete) {
            (true, _) => 0,
            (false, true) => bytes.len(),
            (false, false) => end,
        };
        self.scan_from(from, bytes, is_complete, true)
    }

    /// Finds the secrets in a text after its first `from` bytes, as [`Secrets::scan`] does. With
    /// `needs_run`, those without their run of characters are left out.
    fn scan_from(&self, from: usize, bytes: &[u8], is_complete: bool, needs_run: bool) -> Scan {
        let end = bytes.len().saturating_sub(self.undecided_max);
        let form = Canonical::new(&bytes[from..]);
        let undecided = |after: usize| {
            let len = if is_complete {
                0
            } else {
                self.undecided_len(&form.text[after..])
            };
            form.text.len() - len
        };
        let (mut found, mut search_from, mut until) = (Vec::new(), 0, undecided(0));
        while let Some(hit) = self
            .finder
            .find(Input::new(&form.text).range(search_from..))
            && hit.start() < until
        {
            let accept = |needle: usize| {
                let candidate = &self.needles[needle];
                let len = candidate.canonical.len();
                let place = form.original(hit.start()..hit.start() + len);
                let has_run = !needs_run || candidate.has_run(&bytes[from..][place.clone()]);
                let is_accepted = has_run && candidate.is_plausible(&bytes[from..], &place);
                (is_accepted, place, needle)
            };
            let (mut is_accepted, mut place, mut needle) = accept(hit.pattern().as_usize());
            if !is_accepted {
                let after = &bytes[from + place.end..];
                if !is_complete && after.iter().all(|byte| *byte == b'\\') {
                    // More backslashes may follow.
                    until = hit.start();
                    break;
                }
                // Another secret of the same form, or a shorter one, may begin here.
                let others = self.needles_at(&form.text[hit.range()]).into_iter();
                let accepted = others.map(accept).find(|(is_accepted, ..)| *is_accepted);
                if let Some(accepted) = accepted {
                    (is_accepted, place, needle) = accepted;
                }
            }
            if !is_accepted {
                search_from = hit.start() + 1;
                continue;
            }
            found.push((from + place.start..from + place.end, needle));
            search_from = hit.start() + self.needles[needle].canonical.len();
            if until < search_from {
                until = undecided(search_from);
            }
        }
        let mut undecided_from = bytes.len();
        if !is_complete {
            let start = (until < form.text.len()).then(|| form.start(until));
            let start = start.into_iter().chain(form.incomplete_from).min();
            undecided_from = start.map_or(bytes.len(), |start| from + start);
            // The backslashes before it belong to what may be a secret.
            let decided = found.last().map_or(from, |(place, _)| place.end);
            while (decided + 1..bytes.len()).contains(&undecided_from)
                && bytes[undecided_from - 1] == b'\\'
            {
                undecided_from -= 1;
            }
            // Endless escapes must not be held back forever.
            if undecided_from < end {
                undecided_from = bytes.len();
            }
        }
        Scan {
            found,
            undecided_from,
        }
    }

    /// Returns all needles that begin where a match does, the longest first.
    fn needles_at(&self, matched: &[u8]) -> Vec<usize> {
        let all = self.needles.iter().enumerate();
        let mut needles: Vec<usize> = all
            .filter(|(_, needle)| matched.starts_with(&needle.canonical))
            .map(|(at, _)| at)
            .collect();
        needles.sort_by_key(|at| std::cmp::Reverse(self.needles[*at].canonical.len()));
        needles
    }

    /// Returns the number of bytes at the end of a text in canonical form that may be the start of a
    /// secret.
    fn undecided_len(&self, text: &[u8]) -> usize {
        let longest = |needle: &Needle| {
            let needle = &needle.canonical;
            let tail = &text[text.len().saturating_sub(needle.len() - 1)..];
            let mut starts = memchr::memchr_iter(needle[0], tail);
            let start = starts.find(|start| needle.starts_with(&tail[*start..]));
            start.map_or(0, |start| tail.len() - start)
        };
        self.needles.iter().map(longest).max().unwrap_or(0)
    }

    /// Returns the text before the undecided part, redacted. The first `shown` bytes were returned
    /// before and are left out.
    fn replace<'a>(&self, bytes: &'a [u8], scan: &Scan, shown: usize) -> Cow<'a, [u8]> {
        let unshown = |from: usize, to: usize| &bytes[from.max(shown).min(to)..to];
        if scan.found.is_empty() {
            return Cow::Borrowed(unshown(0, scan.undecided_from));
        }
        let (mut redacted, mut from) = (Vec::with_capacity(bytes.len()), 0);
        for (place, needle) in &scan.found {
            redacted.extend_from_slice(unshown(from, place.start));
            redacted.extend_from_slice(self.needles[*needle].placeholder.as_bytes());
            from = place.end;
        }
        redacted.extend_from_slice(unshown(from, scan.undecided_from));
        Cow::Owned(redacted)
    }
}

impl Exact {
    /// Returns the texts of a secret that can be restored: its value, its value in a JSON string,
    /// and its lines.
    fn all(name: &str, value: &str) -> Vec<Self> {
        let exact = |text: &str, suffix: &str| Self {
            name: name.to_owned(),
            text: text.to_owned(),
            placeholder: format!("[{name}{suffix}]"),
        };
        let mut all = vec![exact(value, "")];
        let json = serde_json::to_string(value).unwrap_or_default();
        let json = json
            .strip_prefix('"')
            .and_then(|json| json.strip_suffix('"'));
        let json = json.unwrap_or_default();
        all.extend((json != value && !json.is_empty()).then(|| exact(json, ":json")));
        all.extend(lines_of(value).map(|(number, line)| exact(line, &format!(":{number}"))));
        all
    }
}

/// Replaces texts. `pair` returns a text and its replacement.
fn substitute<'e>(
    text: &str,
    all: &[&'e Exact],
    pair: impl Fn(&'e Exact) -> (&'e String, &'e String),
) -> String {
    let (from, to): (Vec<_>, Vec<_>) = all.iter().map(|exact| pair(exact)).unzip();
    let finder = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(&from);
    finder.map_or_else(|_| text.to_owned(), |finder| finder.replace_all(text, &to))
}

fn is_secret_name(name: &str) -> bool {
    name.split('_')
        .any(|part| SECRET_NAME_PARTS.contains(&part))
}

/// Returns whether a value may be a secret. Paths, numbers and short values are not secrets.
fn is_secret_value(value: &[u8]) -> bool {
    value.len() >= SECRET_MIN && !value.starts_with(b"/") && !value.iter().all(u8::is_ascii_digit)
}

/// Returns the texts by which a secret is recognized, each with its placeholder: its value, the
/// value without whitespace at its ends, the value on one line, and each of its lines.
fn texts_of(name: &str, value: &OsStr) -> Vec<(String, Vec<u8>)> {
    let whole = format!("[{name}]");
    let text = value.to_string_lossy();
    let mut texts = vec![(whole.clone(), value.as_bytes().to_owned())];
    // Settings and shells trim what they are given.
    let trimmed = text.trim();
    let is_trimmed = trimmed.len() < text.len() && is_secret_value(trimmed.as_bytes());
    texts.extend(is_trimmed.then(|| (whole.clone(), trimmed.as_bytes().to_owned())));
    let folded = fold_whitespace(&text.replace("\\n", "\n"));
    let is_folded = folded != text && is_secret_value(folded.as_bytes());
    texts.extend(is_folded.then(|| (whole.clone(), folded.into_bytes())));
    texts.extend(matches!(text, Cow::Owned(_)).then(|| (whole, text.as_bytes().to_owned())));
    texts.extend(
        lines_of(&text)
            .map(|(number, line)| (format!("[{name}:{number}]"), line.as_bytes().to_owned())),
    );
    texts
}

/// Returns the long lines of a value that has several, with their numbers. A value may contain its
/// line ends as `\n`. The first and last lines of a PEM file are no secrets.
fn lines_of(value: &str) -> impl Iterator<Item = (usize, &str)> {
    let has_several = value.trim().contains(['\n']) || value.contains("\\n");
    let lines = value.split('\n').flat_map(|line| line.split("\\n"));
    let lines = lines.map(str::trim).enumerate();
    lines.filter_map(move |(index, line)| {
        let is_secret = line.len() >= LINE_MIN && is_secret_value(line.as_bytes());
        (has_several && is_secret && !line.starts_with("-----")).then_some((index + 1, line))
    })
}
