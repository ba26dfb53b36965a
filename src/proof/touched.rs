//! Compares the current state with the baseline, and prepares the view in which the guards are as
//! they were at the start.

use super::baseline::{Baseline, COPIES, ORIGINALS, walk_workspace, was_ignored};
use super::guards::{is_in_ignored_directory, table};
use super::manifest::{Change, Entry, Manifest, as_path, is_below};
use super::patterns::PatternSet;
use super::recorded::RecordedState;
use super::{ViewChange, ViewContent, merge, outside, rust_items, rust_tests};
use crate::engine::touched::{FileChange, TouchedFiles, TouchedList};
use crate::git;
use crate::git::ignored::IgnoredPaths;
use crate::os::regular_file;
use std::collections::HashMap;
use std::io;

/// Maximum size of a manifest or Rust file that is compared by its content, in bytes.
const TEXT_MAX: u64 = 4 << 20;

/// What differs from the baseline.
pub(crate) struct Touched {
    pub(crate) files: TouchedFiles,
    /// How the view differs from the current state, by absolute paths.
    restores: Vec<(Vec<u8>, Restore)>,
}

/// How a path is put back in the view.
enum Restore {
    Original,
    Text(Vec<u8>),
    Absent,
}

/// The ring of a touched file of the workspace.
enum Ring {
    Guard(Option<Restore>),
    FirstGuard,
    Ignored,
    Source,
    /// A guard that the task may change.
    Allowed,
    /// A Rust source with tests that was deleted. It is not put back, because a file in the old
    /// place would break a module that has moved.
    DeletedTests,
    /// A guard whose original cannot be put back, and why.
    Unknown(String),
}

impl Baseline {
    /// Compares the current state with the baseline. `allow` has the patterns of files that the
    /// task may change, and `accepted` those of files whose change a person has accepted: they count
    /// as sources.
    pub(crate) fn touched(&self, allow: &[String], accepted: &[String]) -> io::Result<Touched> {
        self.touched_in(&RecordedState::default(), allow, accepted)
    }

    /// Compares a recorded state with the baseline.
    pub(crate) fn touched_in(
        &self,
        recorded: &RecordedState<'_>,
        allow: &[String],
        accepted: &[String],
    ) -> io::Result<Touched> {
        let mut now = walk_workspace(&self.scope.workspace)?;
        recorded.apply_to(&mut now);
        let comparison = Comparison {
            baseline: self,
            recorded,
            allow: PatternSet::new(allow.iter().chain(accepted)),
            accepted: PatternSet::new(accepted),
            protect: PatternSet::new(&self.scope.protect),
            ignored: git::ignored::ignored_paths(&self.scope.workspace).unwrap_or_default(),
        };
        let mut touched = Touched {
            files: TouchedFiles::default(),
            restores: Vec::new(),
        };
        comparison.compare_workspace(&now, &mut touched);
        let mut refused = Vec::new();
        let outside = outside::list(&self.scope, &mut refused);
        comparison.compare_outside(&outside, &refused, &mut touched);
        if now.unread > self.workspace.unread {
            let count = now.unread - self.workspace.unread;
            let noun = if count == 1 {
                "directory"
            } else {
                "directories"
            };
            touched
                .files
                .unknown
                .push(format!("{count} {noun} of the workspace cannot be read"));
        }
        Ok(touched)
    }

    /// Returns how the view in which the guards are as at the start differs from the current state.
    /// Writes the originals that it needs to the loop's directory.
    pub(crate) fn changes_for_view(&self, touched: &Touched) -> io::Result<Vec<ViewChange>> {
        let (copies, originals) = (self.dir.join(COPIES), self.dir.join(ORIGINALS));
        let changes = touched.restores.iter().map(|(path, restore)| {
            let content = match restore {
                Restore::Original => {
                    ViewContent::Original(self.copies.extract(&copies, path, &originals)?)
                }
                Restore::Text(text) => ViewContent::Text(text.clone()),
                Restore::Absent => ViewContent::Absent,
            };
            Ok(ViewChange {
                path: as_path(path).to_owned(),
                content,
            })
        });
        changes.collect()
    }
}

/// Rust sources from which, and to which, tests may have moved.
#[derive(Default)]
struct RustMoves<'a> {
    /// Deleted sources with tests.
    deleted: Vec<Change<'a>>,
    /// New and changed sources that the view shows as they are.
    shown: Vec<Change<'a>>,
}

struct Comparison<'a> {
    baseline: &'a Baseline,
    recorded: &'a RecordedState<'a>,
    /// What the task may change, or a person has accepted.
    allow: PatternSet,
    accepted: PatternSet,
    protect: PatternSet,
    /// What git ignores now.
    ignored: IgnoredPaths,
}

impl Comparison<'_> {
    fn compare_workspace(&self, now: &Manifest, touched: &mut Touched) {
        let changes = self.baseline.workspace.changes(now);
        let mut moves = RustMoves::default();
        let mut rest = changes.as_slice();
        while let Some((change, after)) = rest.split_first() {
            rest = after;
            let path = change.path();
            if change.is_dir() {
                let below = below(after, path);
                let files = below.iter().filter(|change| !change.is_dir()).count();
                let is_touched = self.recorded.has_touched_ignored(path);
                if files > 0 && is_touched && self.is_new_ignored(change, below) {
                    touched.add_directory(&self.baseline.absolute(path), path, files, false);
                    rest = &after[below.len()..];
                }
                continue;
            }
            self.add_file(change, touched, &mut moves);
        }
        for change in self.lost_tests(&moves) {
            let name = || git::path_name(change.path());
            touched.files.lost_tests.add(name, change.kind(), 1);
        }
    }

    /// Returns the deleted sources whose tests are not all in another source.
    fn lost_tests<'c>(&self, moves: &RustMoves<'c>) -> Vec<Change<'c>> {
        if moves.deleted.is_empty() {
            return Vec::new();
        }
        let mut found: HashMap<String, usize> = HashMap::new();
        let shown = moves.shown.iter().filter_map(|change| {
            let text = self.candidate(change, &self.baseline.absolute(change.path()))?;
            rust_tests::test_texts(&String::from_utf8(text).ok()?).ok()
        });
        for text in shown.flatten() {
            *found.entry(text).or_default() += 1;
        }
        let mut is_found = |text: String| match found.get_mut(&text) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        };
        let mut has_moved = |change: &Change<'c>| {
            let original = self.original_text(&self.baseline.absolute(change.path()))?;
            let texts = rust_tests::test_texts(&String::from_utf8(original).ok()?).ok()?;
            texts.into_iter().all(&mut is_found).then_some(())
        };
        let deleted = moves.deleted.iter().copied();
        deleted
            .filter(|change| has_moved(change).is_none())
            .collect()
    }

    fn add_file<'c>(&self, change: &Change<'c>, touched: &mut Touched, moves: &mut RustMoves<'c>) {
        let path = change.path();
        let absolute = self.baseline.absolute(path);
        let files = &mut touched.files;
        if self.accepted.is_match(path) && self.can_decide(change, &absolute) {
            let name = || git::path_name(path);
            files.accepted.add(name, change.kind(), 1);
        }
        let (list, restore) = match self.ring(change, &absolute) {
            Ring::Guard(restore) => (&mut files.guards, restore),
            Ring::FirstGuard => (&mut files.first_guards, None),
            Ring::Ignored if !self.recorded.has_touched_ignored(path) => return,
            Ring::Ignored => {
                let is_there = change.after.is_some();
                (&mut files.ignored, is_there.then_some(Restore::Absent))
            }
            Ring::Source => {
                if path.ends_with(b".rs") && change.after.is_some_and(Entry::is_file) {
                    moves.shown.push(*change);
                }
                (&mut files.sources, None)
            }
            Ring::DeletedTests => {
                moves.deleted.push(*change);
                (&mut files.guards, None)
            }
            Ring::Allowed => {
                files.allowed.add(|| git::path_name(path), change.kind(), 1);
                (&mut files.sources, None)
            }
            Ring::Unknown(why) => {
                files
                    .unknown
                    .push(format!("{}: {why}", git::path_name(path)));
                (&mut files.guards, None)
            }
        };
        list.add(|| git::path_name(path), change.kind(), 1);
        touched
            .restores
            .extend(restore.map(|restore| (absolute, restore)));
    }

    /// Returns whether everything in a new directory is ignored, and nothing in it is allowed.
    fn is_new_ignored(&self, dir: &Change<'_>, below: &[Change<'_>]) -> bool {
        dir.kind() == FileChange::New
            && self.is_ignored_now(dir.path(), true)
            && !below.iter().any(|change| self.is_chosen(change.path()))
    }

    /// Returns whether the user or a check named the path.
    fn is_chosen(&self, path: &[u8]) -> bool {
        self.allow.is_match(path)
            || self.protect.is_match(path)
            || self.is_script(&self.baseline.absolute(path))
    }

    fn is_script(&self, absolute: &[u8]) -> bool {
        self.baseline
            .scope
            .scripts
            .iter()
            .any(|script| script == as_path(absolute))
    }

    fn is_ignored_now(&self, path: &[u8], is_dir: bool) -> bool {
        was_ignored(&self.baseline.scope, path, is_dir)
            || self.ignored.contains(path)
            // An agent can change what git ignores.
            || is_in_ignored_directory(path, is_dir, self.baseline.scope.has_git)
    }

    fn ring(&self, change: &Change<'_>, absolute: &[u8]) -> Ring {
        let path = change.path();
        let before = change.before;
        let is_new = before.is_none();
        if self.allow.is_match(path) {
            return if self.is_guard(path, absolute, is_new) {
                Ring::Allowed
            } else {
                Ring::Source
            };
        }
        if self.is_script(absolute) {
            return if is_new {
                Ring::FirstGuard
            } else {
                self.original(absolute)
            };
        }
        if self.protect.is_match(path) {
            return if is_new {
                Ring::Guard(Some(Restore::Absent))
            } else {
                self.original(absolute)
            };
        }
        if self.is_ignored(change) {
            return Ring::Ignored;
        }
        let matches = table().matches(path);
        if matches.is_guard(is_new) {
            return match before {
                None if self.baseline.ecosystems.is_first(&matches) => Ring::FirstGuard,
                None => Ring::Guard(Some(Restore::Absent)),
                Some(_) if matches.is_manifest() => self.manifest(change, absolute),
                Some(_) => self.original(absolute),
            };
        }
        if self.baseline.copies.contains(absolute) && path.ends_with(b".rs") {
            return self.rust_source(change, absolute);
        }
        Ring::Source
    }

    /// Returns whether the change of a file would matter if it was not allowed.
    fn can_decide(&self, change: &Change<'_>, absolute: &[u8]) -> bool {
        let path = change.path();
        self.is_guard(path, absolute, change.before.is_none()) || self.is_ignored(change)
    }

    fn is_ignored(&self, change: &Change<'_>) -> bool {
        let path = change.path();
        match change.before {
            Some(_) => was_ignored(&self.baseline.scope, path, false),
            None => self.is_ignored_now(path, false),
        }
    }

    /// Returns whether a file judges the work, or has tests in it.
    fn is_guard(&self, path: &[u8], absolute: &[u8], is_new: bool) -> bool {
        self.is_script(absolute)
            || self.protect.is_match(path)
            || table().matches(path).is_guard(is_new)
            || self.baseline.copies.contains(absolute)
    }

    fn original(&self, absolute: &[u8]) -> Ring {
        if self.baseline.copies.contains(absolute) {
            Ring::Guard(Some(Restore::Original))
        } else {
            Ring::Unknown(
                "ralph has no copy of the original: it is too large or could not be read".into(),
            )
        }
    }

    fn manifest(&self, change: &Change<'_>, absolute: &[u8]) -> Ring {
        let texts = || {
            let row = merge::merge_row(change.path())?;
            let (original, candidate) = self.texts(change, absolute)?;
            let merged = merge::merge(row, &original, &candidate)?;
            Some((merge::is_same(row, &merged, &candidate), merged))
        };
        match texts() {
            Some((true, _)) => Ring::Source,
            Some((false, merged)) => Ring::Guard(Some(Restore::Text(merged))),
            None => self.original(absolute),
        }
    }

    fn rust_source(&self, change: &Change<'_>, absolute: &[u8]) -> Ring {
        if change.after.is_none() {
            return Ring::DeletedTests;
        }
        let texts = self
            .texts(change, absolute)
            .and_then(|(original, candidate)| {
                Some((
                    String::from_utf8(original).ok()?,
                    String::from_utf8(candidate).ok()?,
                ))
            });
        let restored = texts
            .map(|(original, candidate)| rust_tests::with_original_tests(&original, &candidate));
        match restored {
            Some(Ok(None)) => Ring::Source,
            Some(Ok(Some(text))) => Ring::Guard(Some(Restore::Text(text.into_bytes()))),
            Some(Err(rust_items::Unsure)) | None => Ring::Unknown(
                "the original tests in it cannot be told from the code around them".into(),
            ),
        }
    }

    /// Returns the original and the current content of a file.
    fn texts(&self, change: &Change<'_>, absolute: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((
            self.original_text(absolute)?,
            self.candidate(change, absolute)?,
        ))
    }

    fn original_text(&self, absolute: &[u8]) -> Option<Vec<u8>> {
        let copies = self.baseline.dir.join(COPIES);
        self.baseline.copies.read(&copies, absolute).ok()
    }

    /// Returns the current content of a file.
    fn candidate(&self, change: &Change<'_>, absolute: &[u8]) -> Option<Vec<u8>> {
        change.after.filter(|entry| entry.is_file())?;
        let path = self.recorded.file(change.path());
        let path = path.unwrap_or_else(|| as_path(absolute));
        let (candidate, more) = regular_file::read(path, TEXT_MAX, false).ok()?;
        (!more).then_some(candidate)
    }

    fn compare_outside(&self, now: &Manifest, refused: &[Vec<u8>], touched: &mut Touched) {
        let changes = self.baseline.outside.changes(now);
        let mut rest = changes.as_slice();
        while let Some((change, after)) = rest.split_first() {
            rest = after;
            let path = change.path();
            if !self.recorded.has_touched_outside(path) {
                continue;
            }
            if change.is_dir() {
                let below = below(after, path);
                // What is not watched, as a cache, stays in the view.
                let is_partial = refused.iter().any(|refused| is_below(refused, path))
                    || below
                        .iter()
                        .any(|change| self.is_allowed_outside(change.path()));
                let files = below.iter().filter(|change| !change.is_dir()).count();
                if change.kind() == FileChange::New && !is_partial && files > 0 {
                    touched.add_directory(path, path, files, true);
                    rest = &after[below.len()..];
                }
                continue;
            }
            if self.is_allowed_outside(path) {
                if self.accepted.is_match(without_slash(path)) {
                    let name = || git::path_name(path);
                    touched.files.accepted.add(name, change.kind(), 1);
                }
                continue;
            }
            let has_copy = change.before.is_some() && self.baseline.copies.contains(path);
            let restore = match change.after {
                _ if has_copy => Some(Restore::Original),
                // A check cannot run without the script that the agent wrote.
                Some(_) if change.before.is_none() && self.is_script(path) => None,
                Some(_) => Some(Restore::Absent),
                None => None,
            };
            touched
                .files
                .outside
                .add(|| git::path_name(path), change.kind(), 1);
            touched
                .restores
                .extend(restore.map(|restore| (path.to_vec(), restore)));
        }
    }

    fn is_allowed_outside(&self, path: &[u8]) -> bool {
        self.allow.is_match(without_slash(path))
    }
}

/// Returns an absolute path as patterns match it.
fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_prefix(b"/").unwrap_or(path)
}

impl Touched {
    /// Adds a directory in which everything is new and will be absent.
    fn add_directory(&mut self, absolute: &[u8], path: &[u8], files: usize, is_outside: bool) {
        let list: &mut TouchedList = if is_outside {
            &mut self.files.outside
        } else {
            &mut self.files.ignored
        };
        let name = || format!("{}/", git::path_name(path));
        list.add(name, FileChange::New, files as u64);
        self.restores.push((absolute.to_vec(), Restore::Absent));
    }
}

/// Returns the changes below a directory, which are the next ones.
fn below<'a, 'b>(changes: &'b [Change<'a>], dir: &[u8]) -> &'b [Change<'a>] {
    let count = changes
        .iter()
        .take_while(|change| is_below(change.path(), dir))
        .count();
    &changes[..count]
}
