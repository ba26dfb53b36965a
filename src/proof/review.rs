//! Names lines that an agent added and that a person should read, by the rows of
//! `presets/review.toml`: suppressions, and lines that can make a check green without the work.

use super::patterns::PatternSet;
use crate::engine::review::{Review, ReviewList};
use crate::git::path_name;
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Number of bytes of a line that are read. The rest of a longer one is most likely data.
const LINE_MAX: usize = 1000;
/// Maximum number of lines that are kept until it is known which of them have only moved.
const FOUND_MAX: usize = 10_000;
/// Maximum time for reading a patch.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Maximum size of the compiled patterns of one language, in bytes.
const COMPILED_MAX: usize = 32 << 20;

/// The rows of `presets/review.toml`, whose header describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewRows {
    skip: Vec<String>,
    #[serde(rename = "language")]
    languages: Vec<LanguageRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageRow {
    #[expect(dead_code, reason = "the row's name in the table")]
    name: String,
    files: Vec<String>,
    #[serde(default)]
    suppressions: BTreeMap<String, String>,
    #[serde(default)]
    suspicious: BTreeMap<String, String>,
}

/// The languages, and the patterns of their files.
struct Languages {
    rows: Vec<LanguageRow>,
    files: Vec<PatternSet>,
    skip: PatternSet,
    /// The compiled rows of the languages that were needed so far.
    compiled: Vec<OnceLock<Language>>,
}

/// What to look for in the files of one language.
struct Language {
    /// The patterns for one line, and for a line with the next one.
    single: RowSet,
    double: RowSet,
}

struct RowSet {
    /// The name of each pattern, and whether it is a suppression.
    rows: Vec<(&'static str, bool)>,
    set: RegexSet,
}

/// A line that was found.
struct Found {
    path: String,
    number: u64,
    what: &'static str,
    is_suppression: bool,
    text: Vec<u8>,
}

/// Reads the lines that a patch adds. The patch has no context lines, and prefixes `a/` and `b/`.
/// Lines that it removes elsewhere have only moved, and are not named.
pub(crate) fn review(patch: &[u8]) -> Review {
    let mut reader = ReviewReader::default();
    let mut hunk = Hunk::default();
    let mut lines = patch.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if reader.is_full() {
            break;
        }
        match line.split_first() {
            Some((b'-', text)) if hunk.removed > 0 => {
                hunk.removed -= 1;
                reader.removed(text);
            }
            Some((b'+', text)) if hunk.added > 0 => {
                hunk.added -= 1;
                hunk.line += 1;
                let next = lines.peek().and_then(|next| next.strip_prefix(b"+"));
                let next = next.filter(|_| hunk.added > 0).unwrap_or_default();
                reader.added(hunk.line, text, next);
            }
            Some((b'\\', _)) => {}
            _ => {
                if let Some(next) = Hunk::parse(line) {
                    hunk = next;
                } else if let Some(path) = line.strip_prefix(b"+++ ") {
                    match new_path(path) {
                        Some(name) => reader.begin_file(name),
                        None => reader.file = None,
                    }
                } else if line.starts_with(b"diff --git ") {
                    reader.file = None;
                }
            }
        }
    }
    reader.finish()
}

/// Collects the lines to name, file by file.
pub(super) struct ReviewReader {
    started: Instant,
    found: Vec<Found>,
    /// Lines that were removed, and how often.
    removed: HashMap<Vec<u8>, u64>,
    file: Option<(&'static Language, String)>,
}

impl Default for ReviewReader {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            found: Vec::new(),
            removed: HashMap::new(),
            file: None,
        }
    }
}

impl ReviewReader {
    /// Returns whether no more lines are read.
    fn is_full(&self) -> bool {
        self.found.len() >= FOUND_MAX || self.started.elapsed() > TIME_MAX
    }

    /// Begins the file whose lines follow.
    pub(super) fn begin_file(&mut self, path: &[u8]) {
        let language = languages().of(path).filter(|_| !self.is_full());
        self.file = language.map(|language| (language, path_name(path)));
    }

    pub(super) fn removed(&mut self, text: &[u8]) {
        let Some((language, _)) = &self.file else {
            return;
        };
        if language.find(text, b"").is_some() {
            let text = cut(text).trim_ascii().to_vec();
            *self.removed.entry(text).or_default() += 1;
        }
    }

    /// Reads an added line, given the added line after it.
    pub(super) fn added(&mut self, number: u64, text: &[u8], next: &[u8]) {
        let Some((language, path)) = &self.file else {
            return;
        };
        if let Some((what, is_suppression)) = language.find(text, next) {
            self.found.push(Found {
                path: path.clone(),
                number,
                what,
                is_suppression,
                text: cut(text).to_vec(),
            });
        }
    }

    pub(super) fn finish(mut self) -> Review {
        let mut review = Review::default();
        if self.is_full() {
            review.incomplete = Some("there are too many".into());
        }
        for line in self.found {
            let same = self.removed.get_mut(line.text.trim_ascii());
            if let Some(count) = same.filter(|count| **count > 0) {
                *count -= 1;
                continue;
            }
            let list: &mut ReviewList = if line.is_suppression {
                &mut review.suppressions
            } else {
                &mut review.suspicious
            };
            let text = String::from_utf8_lossy(&line.text);
            list.add(&line.path, line.number, line.what, &text);
        }
        review
    }
}

/// Returns whether the lines of a file are read.
pub(super) fn is_reviewed(path: &[u8]) -> bool {
    languages().of(path).is_some()
}

/// A part of a patch: how many of its lines are left, and the number of the last added line.
#[derive(Default)]
struct Hunk {
    removed: u64,
    added: u64,
    line: u64,
}

impl Hunk {
    /// Parses `@@ -10,2 +12 @@`.
    fn parse(line: &[u8]) -> Option<Self> {
        let text = str::from_utf8(line.strip_prefix(b"@@ -")?).ok()?;
        let (old, rest) = text.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let parse = |range: &str| {
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((start.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let ((_, removed), (start, added)) = (parse(old)?, parse(new)?);
        Some(Self {
            removed,
            added,
            line: start.saturating_sub(1),
        })
    }
}

/// Returns the path in the line `+++ b/path`; `None` if the file was deleted.
fn new_path(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\t").unwrap_or(line);
    // Git quotes names with special characters. Only the name's end matters here.
    let quoted = line
        .strip_prefix(b"\"")
        .and_then(|line| line.strip_suffix(b"\""));
    quoted.unwrap_or(line).strip_prefix(b"b/")
}

fn cut(line: &[u8]) -> &[u8] {
    &line[..line.len().min(LINE_MAX)]
}

impl Language {
    /// Returns what a line is, given the added line after it.
    fn find(&self, line: &[u8], next: &[u8]) -> Option<(&'static str, bool)> {
        let line = cut(line);
        self.single.find(line).or_else(|| {
            let both = [line, b"\n", cut(next)].concat();
            (!self.double.rows.is_empty()).then(|| self.double.find(&both))?
        })
    }
}

impl RowSet {
    fn new(rows: Vec<(&'static str, bool, &str)>) -> Self {
        let set = RegexSetBuilder::new(rows.iter().map(|(_, _, pattern)| pattern))
            .unicode(false)
            .size_limit(COMPILED_MAX)
            .build();
        let rows = rows.into_iter().map(|(name, kind, _)| (name, kind));
        Self {
            rows: rows.collect(),
            set: set.expect("the embedded patterns are valid"),
        }
    }

    fn find(&self, text: &[u8]) -> Option<(&'static str, bool)> {
        let first = self.set.matches(text).iter().next()?;
        self.rows.get(first).copied()
    }
}

impl Languages {
    /// Returns the language of a file; `None` if its lines are not read.
    fn of(&'static self, path: &[u8]) -> Option<&'static Language> {
        if self.skip.is_match(path) {
            return None;
        }
        let index = self.files.iter().position(|files| files.is_match(path))?;
        let row = &self.rows[index];
        Some(self.compiled[index].get_or_init(|| {
            let suppressions = row.suppressions.iter().map(|row| (row, true));
            let suspicious = row.suspicious.iter().map(|row| (row, false));
            let all = suspicious.chain(suppressions);
            let all = all.map(|((name, pattern), kind)| (name.as_str(), kind, pattern.as_str()));
            let (double, single) = all.partition(|(_, _, pattern)| pattern.contains("\\n"));
            Language {
                single: RowSet::new(single),
                double: RowSet::new(double),
            }
        }))
    }
}

fn languages() -> &'static Languages {
    static LANGUAGES: OnceLock<Languages> = OnceLock::new();
    LANGUAGES.get_or_init(|| {
        let rows: ReviewRows = toml::from_str(include_str!("../../presets/review.toml"))
            .expect("the embedded table is valid");
        let files = rows.languages.iter().map(|row| PatternSet::new(&row.files));
        Languages {
            files: files.collect(),
            skip: PatternSet::new(&rows.skip),
            compiled: rows.languages.iter().map(|_| OnceLock::new()).collect(),
            rows: rows.languages,
        }
    })
}
