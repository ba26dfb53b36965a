//! Splits a patch into the changes of each file, and limits their length.

use crate::engine::plain_text::plain_lines;
use serde_json::{Value, json};

/// Files that are returned.
const FILES_MAX: usize = 400;
/// The longest patch of one file, in bytes.
const FILE_MAX: usize = 200 << 10;
/// The longest patch of all files, in bytes.
const TOTAL_MAX: usize = 3 << 20;
/// The longest line, in bytes.
const LINE_MAX: usize = 2000;

/// Returns the files of a patch as JSON, and how many were left out.
pub(super) fn files(patch: &str) -> (Vec<Value>, usize) {
    let (mut left, mut omitted, mut files) = (TOTAL_MAX, 0, Vec::new());
    for section in sections(patch) {
        if files.len() == FILES_MAX || left == 0 {
            omitted += 1;
            continue;
        }
        let (text, is_cut) = limited(section, left.min(FILE_MAX));
        left -= text.len().min(left);
        let (added, removed) = count(section);
        files.push(json!({
            "path": path(section),
            "added": added,
            "removed": removed,
            "patch": plain_lines(&text),
            "cut": is_cut,
        }));
    }
    (files, omitted)
}

fn sections(patch: &str) -> impl Iterator<Item = &str> {
    let mut rest = patch;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find("\ndiff --git ").map_or(rest.len(), |end| end + 1);
        let (section, after) = rest.split_at(end);
        rest = after;
        Some(section)
    })
}

/// Returns the path of a section's file, quoted as git quotes it.
fn path(section: &str) -> &str {
    let head = section.lines().take_while(|line| !line.starts_with("@@"));
    let mut old = None;
    for line in head {
        if let Some(path) = line
            .strip_prefix("+++ ")
            .filter(|path| *path != "/dev/null")
        {
            return unprefixed(path, "b/");
        }
        let renamed = line.strip_prefix("rename to ");
        if renamed.is_some() {
            return renamed.unwrap_or_default();
        }
        old = old.or_else(|| {
            line.strip_prefix("--- ")
                .filter(|path| *path != "/dev/null")
        });
    }
    if let Some(old) = old {
        return unprefixed(old, "a/");
    }
    // A file without text: the first line is `diff --git a/PATH b/PATH`.
    let first = section.lines().next().unwrap_or_default();
    let both = first.strip_prefix("diff --git ").unwrap_or(first);
    let half = both.get(..both.len().saturating_sub(1) / 2);
    unprefixed(half.unwrap_or(both), "a/")
}

fn unprefixed<'a>(path: &'a str, prefix: &str) -> &'a str {
    // A name with a space ends with a tab.
    let path = path.trim_end_matches('\t');
    path.strip_prefix(prefix).unwrap_or(path)
}

/// Returns how many lines were added and removed.
fn count(section: &str) -> (usize, usize) {
    let hunks = section.find("\n@@").map_or("", |at| &section[at + 1..]);
    let starting = |mark: char| hunks.lines().filter(|line| line.starts_with(mark)).count();
    (starting('+'), starting('-'))
}

/// Returns the whole lines within `max` bytes, with long lines cut, and whether something is missing.
fn limited(section: &str, max: usize) -> (String, bool) {
    let (mut text, mut is_cut) = (String::new(), false);
    for line in section.lines() {
        let mut end = line.len().min(LINE_MAX);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        if text.len() + end >= max {
            return (text, true);
        }
        text.push_str(&line[..end]);
        if end < line.len() {
            text.push('…');
            is_cut = true;
        }
        text.push('\n');
    }
    (text, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_path_and_its_counts() {
        let patch = "diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\t\n+++ b/a b\t\n@@ -1,2 +1,1 @@\n-x\n--- y\n+z\n\
            diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n\
            diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n";
        let (files, omitted) = files(patch);
        let found: Vec<_> = files
            .iter()
            .map(|file| {
                (
                    file["path"].as_str().unwrap(),
                    file["added"].clone(),
                    file["removed"].clone(),
                )
            })
            .collect();
        assert_eq!(omitted, 0);
        let expected = [
            ("a b", 1, 2),
            ("gone", 0, 1),
            ("p.png", 0, 0),
            ("new", 0, 0),
        ];
        assert_eq!(
            found,
            expected.map(|(path, a, r)| (path, json!(a), json!(r)))
        );
    }

    #[test]
    fn long_lines_and_long_files_are_cut() {
        let line = format!("+{}\n", "ä".repeat(LINE_MAX));
        let patch = format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n{line}");
        let (files_, _) = files(&patch);
        assert_eq!(files_[0]["cut"], true);
        assert!(files_[0]["patch"].as_str().unwrap().len() < LINE_MAX + 100);
        let (files_, _) = files(&(patch + &"+y\n".repeat(FILE_MAX)));
        assert!(files_[0]["patch"].as_str().unwrap().len() < FILE_MAX);
        assert_eq!(files_[0]["added"], FILE_MAX + 1);
    }
}
