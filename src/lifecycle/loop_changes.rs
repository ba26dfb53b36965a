//! Reads what a loop changed since its start: the files, the tests among them, and the lines that a
//! person should read.

use super::history::LoopHistory;
use crate::engine::review::Review;
use crate::git::checkpoint::Checkpoints;
use crate::proof;
use std::collections::BTreeSet;

/// What a loop changed between its first and its newest checkpoint.
#[derive(Debug, Default)]
pub(crate) struct LoopChanges {
    /// The changed files, by name.
    pub(crate) files: Vec<LoopFileChange>,
    /// The added lines to read; `None` if there are none.
    pub(crate) review: Option<Review>,
    /// Why the changes are not known; `None` if they are.
    pub(crate) failure: Option<String>,
}

/// A file that is not as it was at the start.
#[derive(Debug)]
pub(crate) struct LoopFileChange {
    pub(crate) path: String,
    pub(crate) insertions: u64,
    pub(crate) deletions: u64,
    pub(crate) is_deleted: bool,
    /// Whether it contains tests, judged by its name.
    pub(crate) is_test: bool,
}

impl LoopChanges {
    /// Compares a loop's first and newest checkpoints.
    pub(crate) fn read(history: &LoopHistory) -> Self {
        let recorded = history.view.state.review.clone();
        let Some((from, to)) = history.trees_of_all() else {
            return Self {
                review: recorded,
                failure: Some("it has no checkpoints".into()),
                ..Self::default()
            };
        };
        if from == to {
            return Self {
                review: recorded,
                ..Self::default()
            };
        }
        let checkpoints = Checkpoints::find(&history.dir.git_scratch());
        let found = checkpoints.map_or_else(
            || Err("its checkpoints are gone".to_owned()),
            |all| Ok((all.changes(from, to)?, all.patch(from, to)?)),
        );
        let (changes, (patch, is_cut)) = match found {
            Ok(found) => found,
            Err(why) => {
                return Self {
                    review: recorded,
                    failure: Some(why),
                    ..Self::default()
                };
            }
        };
        let deleted = deleted_files(&patch);
        let files = changes.into_iter().map(|change| LoopFileChange {
            is_deleted: deleted.contains(change.path.as_bytes()),
            is_test: proof::is_test_path(&change.path),
            path: change.path,
            insertions: change.insertions,
            deletions: change.deletions,
        });
        Self {
            files: files.collect(),
            review: recorded.or_else(|| read_lines(history, &patch, is_cut)),
            failure: None,
        }
    }
}

/// Reads the added lines of a loop that has not judged its work. Others have recorded them.
fn read_lines(history: &LoopHistory, patch: &[u8], is_cut: bool) -> Option<Review> {
    if history.view.state.outcome().is_some() {
        return None;
    }
    let mut review = proof::review::review(patch);
    if is_cut {
        review.incomplete = Some("there are too many".into());
    }
    (!review.is_empty()).then_some(review)
}

/// Returns the paths of the files that a patch deletes. Names that git quotes are left out.
fn deleted_files(patch: &[u8]) -> BTreeSet<&[u8]> {
    let mut deleted = BTreeSet::new();
    let mut name = None;
    for line in patch.split(|byte| *byte == b'\n') {
        if let Some(names) = line.strip_prefix(b"diff --git a/") {
            // Both names are the same: `x b/x`.
            name = names.get(..names.len().saturating_sub(3) / 2);
        } else if line.starts_with(b"deleted file mode ") {
            deleted.extend(name.take());
        }
    }
    deleted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_of_a_patch_delete_files() {
        let patch = b"diff --git a/a b.txt b/a b.txt\ndeleted file mode 100644\n--- a/a b.txt\n\
            +++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/c b/c\nindex 1..2 100644\n--- a/c\n+++ b/c\n\
            @@ -1 +1 @@\n-deleted file mode 100644\n+y\n";
        let deleted: Vec<&[u8]> = deleted_files(patch).into_iter().collect();
        assert_eq!(deleted, [b"a b.txt"]);
    }
}
