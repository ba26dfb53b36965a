//! Names lines to read where no checkpoints can be compared: in files that differ from their copies.

use super::baseline::{Baseline, COPIES, SOURCES, walk_workspace, was_ignored};
use super::guards::is_in_ignored_directory;
use super::manifest::{Change, as_path, is_below};
use super::review::{ReviewReader, is_reviewed};
use crate::engine::graded::name_files;
use crate::engine::review::Review;
use crate::git;
use crate::os::regular_file;
use std::collections::HashMap;
use std::io;

/// Maximum size of a file whose lines are read, in bytes.
pub(super) const FILE_MAX: u64 = 1 << 20;

impl Baseline {
    /// Reads the lines that were added to the files of the workspace since the start.
    pub(crate) fn review(&self) -> io::Result<Review> {
        let now = walk_workspace(&self.scope.workspace)?;
        let ignored = git::ignored::ignored_paths(&self.scope.workspace).unwrap_or_default();
        let is_ignored = |path: &[u8]| {
            was_ignored(&self.scope, path, false)
                || ignored.iter().any(|ignored| is_below(path, ignored))
                || is_in_ignored_directory(path, false, self.scope.has_git)
        };
        let mut reader = ReviewReader::default();
        let mut unread = Vec::new();
        for change in self.workspace.changes(&now) {
            let path = change.path();
            if change.is_dir() || !is_reviewed(path) || is_ignored(path) {
                continue;
            }
            match self.texts_of(&change) {
                Some((before, after)) => read_file(&mut reader, path, &before, &after),
                None => unread.push(git::path_name(path)),
            }
        }
        let mut review = reader.finish();
        if review.incomplete.is_none() && !unread.is_empty() {
            let names = name_files(&unread);
            review.incomplete = Some(format!("ralph has no copy of the original of {names}"));
        }
        Ok(review)
    }

    /// Returns the content of a file at the start and now, each empty if there was none; `None` if it
    /// is not known.
    fn texts_of(&self, change: &Change<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        let absolute = self.absolute(change.path());
        let before = match change.before {
            Some(_) => {
                let (copies, sources) = (self.dir.join(COPIES), self.dir.join(SOURCES));
                let copy = self.copies.read(&copies, &absolute);
                copy.or_else(|_| self.sources.read(&sources, &absolute))
                    .ok()?
            }
            None => Vec::new(),
        };
        let after = match change.after {
            Some(entry) if entry.is_file() => {
                let read = regular_file::read(as_path(&absolute), FILE_MAX, false);
                let (text, is_longer) = read.ok()?;
                (!is_longer).then_some(text)?
            }
            _ => Vec::new(),
        };
        Some((before, after))
    }
}

/// Reads the lines of a file that it did not have before, wherever they were then.
fn read_file(reader: &mut ReviewReader, path: &[u8], before: &[u8], after: &[u8]) {
    let lines = |text: &[u8]| -> Vec<Vec<u8>> {
        let lines = text.split(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    let (before, after) = (lines(before), lines(after));
    let mut known: HashMap<&[u8], u64> = HashMap::new();
    for line in &before {
        *known.entry(line).or_default() += 1;
    }
    let mut is_added = Vec::new();
    for line in &after {
        let count = known.get_mut(line.as_slice()).filter(|count| **count > 0);
        is_added.push(count.is_none());
        if let Some(count) = count {
            *count -= 1;
        }
    }
    reader.begin_file(path);
    for (line, count) in known {
        (0..count).for_each(|_| reader.removed(line));
    }
    for (index, line) in after
        .iter()
        .enumerate()
        .filter(|(index, _)| is_added[*index])
    {
        let next = after.get(index + 1).filter(|_| is_added[index + 1]);
        reader.added(index as u64 + 1, line, next.map_or(b"", Vec::as_slice));
    }
}
