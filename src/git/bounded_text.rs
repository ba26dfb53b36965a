//! Collects a patch and cuts it to a maximum number of characters: files that a reader needs come
//! first, lock files and generated and binary files last.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of files that the list of a cut patch names.
const FILES_MAX: usize = 100;

/// Endings of the names of files that a program writes.
const GENERATED_ENDINGS: [&str; 16] = [
    ".lock",
    ".lockb",
    "-lock.json",
    "-lock.yaml",
    "-lock.yml",
    "go.sum",
    "go.work.sum",
    "npm-shrinkwrap.json",
    "packages.lock.json",
    ".min.js",
    ".min.css",
    ".map",
    ".snap",
    ".pb.go",
    "_pb2.py",
    ".g.dart",
];
/// Directories of files that a program writes.
const GENERATED_DIRS: [&str; 6] = [
    "node_modules",
    "vendor",
    "dist",
    "generated",
    "__generated__",
    "__snapshots__",
];

/// A patch that is cut when it is complete.
pub(super) struct BoundedText {
    text: String,
    max_chars: usize,
}

impl BoundedText {
    pub(super) fn new(max_chars: usize) -> Self {
        Self {
            text: String::new(),
            max_chars,
        }
    }

    /// Appends a part of the patch.
    pub(super) fn push(&mut self, more: &str) {
        self.text.push_str(more);
    }

    /// Returns the patch, cut to the maximum length, and what it changes.
    pub(super) fn finish(self) -> CutPatch {
        let mut files = split_files(&self.text);
        files.sort_by_key(FilePatch::is_generated);
        let hashes = files
            .iter()
            .map(|file| (file.name().to_owned(), file.hash()));
        let hashes = hashes.collect();
        let ordered: String = files.iter().map(|file| file.text).collect();
        let Some((end, _)) = ordered.char_indices().nth(self.max_chars) else {
            return CutPatch {
                text: ordered,
                hashes,
                ..CutPatch::default()
            };
        };
        let mut list: Vec<String> = files.iter().take(FILES_MAX).map(FilePatch::line).collect();
        if let Some(more) = files.len().checked_sub(FILES_MAX).filter(|more| *more > 0) {
            list.push(format!("and {more} more"));
        }
        CutPatch {
            text: ordered[..end].to_owned(),
            dropped: ordered[end..].chars().count() as u64,
            files: list,
            hashes,
        }
    }
}

/// A patch that was cut to a maximum length.
#[derive(Default)]
pub(super) struct CutPatch {
    pub(super) text: String,
    /// Number of characters that did not fit.
    pub(super) dropped: u64,
    /// If characters were cut off: all changed files with their numbers of added and removed lines.
    pub(super) files: Vec<String>,
    /// A hash of the changes of each file, by its name.
    pub(super) hashes: BTreeMap<String, u64>,
}

/// The changes of one file in a patch.
struct FilePatch<'a> {
    text: &'a str,
}

impl FilePatch<'_> {
    /// Returns the file's path, or its new path after a rename.
    fn name(&self) -> &str {
        let header = self.text.lines().next().unwrap_or_default();
        let name = header.rfind(" b/").map(|at| &header[at + 3..]);
        let quoted = || header.rfind(" \"b/").map(|at| &header[at + 4..]);
        name.or_else(quoted).unwrap_or(header).trim_end_matches('"')
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }

    fn hunks(&self) -> impl Iterator<Item = &str> {
        self.text.lines().skip_while(|line| !line.starts_with("@@"))
    }

    fn is_generated(&self) -> bool {
        let name = self.name();
        let is_binary = self.hunks().next().is_none()
            && (self.text.contains("\nBinary files ") || self.text.contains("\nGIT binary patch"));
        is_binary
            || GENERATED_ENDINGS.iter().any(|end| name.ends_with(end))
            || name
                .split('/')
                .rev()
                .skip(1)
                .any(|dir| GENERATED_DIRS.contains(&dir))
    }

    /// Returns the file's name and its numbers of added and removed lines: `src/a.rs +3 −1`.
    fn line(&self) -> String {
        let count = |sign| self.hunks().filter(|line| line.starts_with(sign)).count();
        format!("{} +{} −{}", self.name(), count('+'), count('-'))
    }
}

/// Splits a patch before each file's header. Lines of a file's content begin with a sign or a
/// space, so none looks like a header.
fn split_files(patch: &str) -> Vec<FilePatch<'_>> {
    let starts = patch.match_indices("diff --git ").map(|(at, _)| at);
    let starts = starts.filter(|at| *at == 0 || patch[..*at].ends_with('\n'));
    let mut starts: Vec<usize> = starts.collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    let parts = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &patch[*start..end]);
    parts
        .filter(|text| !text.is_empty())
        .map(|text| FilePatch { text })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::BoundedText;

    fn bounded(max_chars: usize, parts: &[&str]) -> (String, u64, Vec<String>) {
        let mut text = BoundedText::new(max_chars);
        for part in parts {
            text.push(part);
        }
        let patch = text.finish();
        (patch.text, patch.dropped, patch.files)
    }

    fn patch(name: &str, lines: &str) -> String {
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n{lines}")
    }

    #[test]
    fn the_text_is_cut_between_characters() {
        for (max, text, dropped) in [(0, "", 3), (2, "añ", 1), (3, "añ🦀", 0), (4, "añ🦀", 0)]
        {
            let (kept, cut, files) = bounded(max, &["añ🦀"]);
            assert_eq!((kept.as_str(), cut), (text, dropped));
            assert_eq!(files.is_empty(), dropped == 0);
        }
        assert_eq!(bounded(4, &["añ🦀", "", "🦀🦀", "x"]).1, 2);
    }

    #[test]
    fn lock_files_and_generated_and_binary_files_come_last() {
        let lock = patch("web/package-lock.json", "+1\n+2\n");
        let vendored = patch("vendor/x/a.go", "+1\n");
        let binary = "diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n";
        let source = patch(
            "src/Binary files.rs",
            "-Binary files differ\n+++ 1\n--- 2\n",
        );
        let parts = [lock.as_str(), &vendored, binary, &source];
        let (text, dropped, files) = bounded(usize::MAX, &parts);
        assert_eq!(
            (text, dropped, files.len()),
            ([&source, lock.as_str(), &vendored, binary].concat(), 0, 0)
        );
        let (text, dropped, files) = bounded(source.chars().count(), &parts);
        assert_eq!(text, source);
        assert_eq!(dropped as usize, lock.len() + vendored.len() + binary.len());
        assert_eq!(
            files,
            [
                "src/Binary files.rs +1 −2",
                "web/package-lock.json +2 −0",
                "vendor/x/a.go +1 −0",
                "i.png +0 −0"
            ]
        );
    }

    #[test]
    fn the_list_of_files_is_bounded() {
        let parts: Vec<String> = (0..103).map(|n| patch(&format!("f{n}"), "+x\n")).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (_, _, files) = bounded(10, &parts);
        assert_eq!((files.len(), files[100].as_str()), (101, "and 3 more"));
    }
}
