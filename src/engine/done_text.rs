//! Says what the result of a loop that is done rests on: the second look, what was changed, and what
//! a person accepted.

use super::format::plural;
use super::look::LookVerdict;
use super::state::State;
use super::touched::TouchedFiles;

/// Maximum number of files that each part names.
const NAMED_MAX: usize = 5;

impl State {
    /// Describes what the result of a loop that is done rests on; empty if there is nothing to say.
    pub(super) fn describe_basis(&self) -> String {
        self.describe_look() + &self.describe_change() + &self.describe_accepted()
    }

    fn describe_look(&self) -> String {
        let look = &self.look;
        match self.look_verdict() {
            LookVerdict::Agreed => {
                let touched = look.touched.as_ref();
                let files = touched.map(TouchedFiles::describe).unwrap_or_default();
                let changed = match &*files {
                    "" => String::new(),
                    files => format!(" ({files} changed)"),
                };
                let is_any_accepted = touched.is_some_and(|touched| !touched.accepted.is_empty());
                let other = if is_any_accepted { "other " } else { "" };
                let mut text = format!(", by the {other}original tests too{changed}");
                if !look.weaknesses.is_empty() {
                    let why = look.weaknesses.join(", ");
                    text.extend(["; the original files were not fully restored: ", &why]);
                }
                text
            }
            LookVerdict::Skipped => {
                let why = look.reason_against().unwrap_or_default();
                format!("; the original tests were not asked: {why}")
            }
            _ => String::new(),
        }
    }

    /// Says that no source file was changed; empty if one was, or if it is not known.
    pub(super) fn describe_change(&self) -> String {
        let change = match &self.look.touched {
            Some(touched) => touched.describe_without_sources(),
            None if self.has_same_files() => Some("nothing was changed".to_owned()),
            None => None,
        };
        match change {
            None => String::new(),
            Some(change) if self.red_at_start == Some(true) => {
                format!("; red turned green and {change}")
            }
            Some(change) => format!("; {change}"),
        }
    }

    /// Returns whether the files are known to be those of the start.
    fn has_same_files(&self) -> bool {
        let start = self.checkpoint.start.as_ref().map(|files| &files.tree);
        let stored = self.checkpoint.stored.as_ref().map(|files| &files.tree);
        let now = stored.filter(|_| self.has_checkpoint());
        self.iteration > 0 && start.is_some() && start == now
    }

    fn describe_accepted(&self) -> String {
        let look = &self.look;
        let accepted = look.touched.as_ref().map(|touched| &touched.accepted);
        match accepted.filter(|list| !list.is_empty()) {
            _ if look.accepted.is_empty() => String::new(),
            Some(list) => {
                let paths = list.files.iter().map(|file| file.path.as_str());
                let files = name_first(paths, list.total);
                format!("; a person accepted the change of {files}")
            }
            // Nothing that judges the work was changed, but other tests ran.
            None => {
                let globs = look.accepted.join(", ");
                format!("; a person accepted the changes of {globs}")
            }
        }
    }
}

impl TouchedFiles {
    /// Says which files were changed if none of them is a source; `None` if one is.
    fn describe_without_sources(&self) -> Option<String> {
        // Files that the task may change count among the sources.
        if self.sources.total > self.allowed.total {
            return None;
        }
        let allowed = self.allowed.files.iter().map(|file| file.path.as_str());
        let names = self.names().chain(allowed);
        let lists = [
            &self.guards,
            &self.first_guards,
            &self.ignored,
            &self.outside,
            &self.allowed,
        ];
        Some(match lists.iter().map(|list| list.total).sum() {
            0 => "nothing was changed".to_owned(),
            total => format!("no source file changed: only {}", name_first(names, total)),
        })
    }
}

/// Names the first files: `a.py, b.py and 3 more files`.
fn name_first<'a>(names: impl Iterator<Item = &'a str>, total: u64) -> String {
    let names: Vec<&str> = names.take(NAMED_MAX).collect();
    let more = total.saturating_sub(names.len() as u64);
    let names = names.join(", ");
    match more {
        0 => names,
        more => format!("{names} and {}", plural(more, "more file")),
    }
}
