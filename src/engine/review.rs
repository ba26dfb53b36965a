//! Lines that a person should read before trusting green checks. They are named and decide nothing.

use super::display::{one_line, truncate_to_width};
use super::format::plural;
use serde::{Deserialize, Serialize};

/// Maximum number of lines that a list names. Its total counts all of them.
const NAMED_MAX: usize = 20;
/// Maximum width of a line's text.
const TEXT_MAX: usize = 120;

/// The lines that were added since the start of a loop and that a person should read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Review {
    /// Lines that silence a linter, a compiler or a test.
    #[serde(skip_serializing_if = "ReviewList::is_empty")]
    pub suppressions: ReviewList,
    /// Lines that can make a check green without the work.
    #[serde(skip_serializing_if = "ReviewList::is_empty")]
    pub suspicious: ReviewList,
    /// Why not all added lines were read; `None` if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Lines of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReviewList {
    /// How many lines there are.
    pub total: u64,
    /// The first of them.
    pub lines: Vec<ReviewLine>,
}

/// A line that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReviewLine {
    /// The file's path in the repository.
    pub path: String,
    /// The line's number, from 1.
    pub line: u64,
    /// What was found, such as `noqa`.
    pub what: String,
    /// The line, shortened.
    pub text: String,
}

impl ReviewList {
    /// Returns whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Counts a line, and names it if there is room.
    pub(crate) fn add(&mut self, path: &str, line: u64, what: &str, text: &str) {
        self.total += 1;
        if self.lines.len() < NAMED_MAX {
            self.lines.push(ReviewLine {
                path: path.to_owned(),
                line,
                what: what.trim().to_owned(),
                text: truncate_to_width(&one_line(text.trim()), TEXT_MAX),
            });
        }
    }
}

impl Review {
    /// Returns the review of changes that could not be read.
    pub(crate) fn unread(why: String) -> Self {
        Self {
            incomplete: Some(why),
            ..Self::default()
        }
    }

    /// Returns whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.suppressions.is_empty() && self.suspicious.is_empty() && self.incomplete.is_none()
    }

    /// Describes the lines in one sentence, and names the first `max`; `None` if there are none.
    pub(crate) fn describe(&self, max: usize) -> Option<String> {
        let (suppressions, suspicious) = (self.suppressions.total, self.suspicious.total);
        let counts = [
            (suppressions > 0).then(|| format!("{} added", plural(suppressions, "suppression"))),
            (suspicious > 0).then(|| plural(suspicious, "suspicious line")),
        ];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        let mut text = counts.join(", ");
        let all = self.suspicious.lines.iter().chain(&self.suppressions.lines);
        let mut names: Vec<String> = all
            .take(max)
            .map(|line| format!("{}:{} {}", line.path, line.line, line.what))
            .collect();
        if suppressions + suspicious > names.len() as u64 && max > 0 {
            names.push("…".into());
        }
        if !names.is_empty() {
            text = format!("{text}: {}", names.join(", "));
        }
        if let Some(why) = &self.incomplete {
            let separator = if text.is_empty() { "" } else { "; " };
            text = format!("{text}{separator}not every added line was read: {why}");
        }
        (!text.is_empty()).then_some(text)
    }

    /// Applies `edit` to every text.
    pub(super) fn edit_texts(&mut self, edit: &mut dyn FnMut(&mut String)) {
        let lists = [&mut self.suppressions, &mut self.suspicious];
        for line in lists.into_iter().flat_map(|list| &mut list.lines) {
            edit(&mut line.path);
            edit(&mut line.text);
        }
        self.incomplete.iter_mut().for_each(edit);
    }
}
