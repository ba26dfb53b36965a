//! Counts the lines that a tool call changes in files, from its input or its result.

use super::json_path::str_at;
use crate::engine::act::ChangedLines;
use serde_json::Value;
use similar::{Algorithm, ChangeTag, capture_diff_slices};

/// The fields with the text before and after an edit, under the names that different agents use.
const EDITS: [(&str, &str); 4] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];
/// Fields with the whole content of a file.
const CONTENTS: [&str; 5] = ["content", "contents", "file_text", "fileText", "new_source"];
/// Fields with a file's path. Without one, a field named `content` may be anything.
const PATHS: [&str; 6] = [
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "notebook_path",
    "target_file",
];
/// Fields with a patch.
const PATCHES: [&str; 5] = ["patch", "patchText", "patch_text", "diff", "input"];
/// Parts of the names of tools that write whole files.
const WRITERS: [&str; 5] = ["write", "create", "edit", "save", "notebook"];
/// The most lines of an edit that are compared with each other. Of a longer one, only the lines that
/// its two texts have in common at their start and end count as unchanged.
const COMPARED_MAX: usize = 1000;

/// Returns the lines that a tool call with this input changes; `None` if it is not an edit.
pub(super) fn of_input(tool: &str, input: &Value) -> Option<ChangedLines> {
    let edits = input["edits"].as_array().into_iter().flatten();
    let counts = std::iter::once(input).chain(edits).filter_map(of_edit);
    if let Some(counts) = counts.reduce(add) {
        return Some(counts);
    }
    let patches = PATCHES.iter().filter_map(|name| input[name].as_str());
    if let Some(counts) = patches.into_iter().find_map(of_patch) {
        return Some(counts);
    }
    let tool = tool.to_lowercase();
    let is_writer = WRITERS.iter().any(|part| tool.contains(part));
    let has_path = PATHS.iter().any(|name| input[name].is_string());
    let content = CONTENTS.iter().find_map(|name| input[name].as_str())?;
    (is_writer && has_path).then(|| of_new_file(content))
}

/// Returns the lines of a patch: a unified diff, or one that begins with `*** Begin Patch`. `None`
/// if the text is neither.
pub(super) fn of_patch(patch: &str) -> Option<ChangedLines> {
    let is_patch = |line: &str| line.starts_with("@@") || line.starts_with("*** Begin Patch");
    if !patch.lines().any(is_patch) {
        return None;
    }
    let mut counts = ChangedLines::default();
    // A unified diff names the files in two lines that look like changes.
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let is_header =
            line.starts_with("--- ") && lines.next_if(|next| next.starts_with("+++ ")).is_some();
        if !is_header {
            count_line(line, &mut counts);
        }
    }
    Some(counts)
}

/// Returns the lines of a list of hunks, each of which has its lines with a leading `+`, `-` or
/// space. `None` if the value is no such list, or an empty one.
pub(super) fn of_hunks(hunks: &Value) -> Option<ChangedLines> {
    let hunks = hunks.as_array().filter(|hunks| !hunks.is_empty())?;
    let mut counts = ChangedLines::default();
    for line in hunks
        .iter()
        .filter_map(|hunk| hunk["lines"].as_array())
        .flatten()
    {
        count_line(line.as_str().unwrap_or_default(), &mut counts);
    }
    Some(counts)
}

/// Returns counts that the agent itself reports; `None` if one of the fields is missing.
pub(super) fn reported(value: &Value, added: &str, removed: &str) -> Option<ChangedLines> {
    let count = |name| u32::try_from(value[name].as_u64()?).ok();
    Some(ChangedLines {
        added: count(added)?,
        removed: count(removed)?,
    })
}

/// Returns the lines of a file that did not exist before.
pub(super) fn of_new_file(content: &str) -> ChangedLines {
    ChangedLines {
        added: to_u32(content.lines().count()),
        removed: 0,
    }
}

fn of_edit(edit: &Value) -> Option<ChangedLines> {
    let is_pair = |(old, new): &&(&str, &str)| edit[*old].is_string() && edit[*new].is_string();
    let (old, new) = EDITS.iter().find(is_pair)?;
    Some(compare(str_at(edit, &[*old]), str_at(edit, &[*new])))
}

fn compare(old: &str, new: &str) -> ChangedLines {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let both = || old.iter().zip(&new);
    let start = both().take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[start..], &new[start..]);
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    if old.len() + new.len() > COMPARED_MAX {
        return ChangedLines {
            added: to_u32(new.len()),
            removed: to_u32(old.len()),
        };
    }
    let mut counts = ChangedLines::default();
    for operation in capture_diff_slices(Algorithm::Myers, old, new) {
        for change in operation.iter_changes(old, new) {
            match change.tag() {
                ChangeTag::Insert => counts.added += 1,
                ChangeTag::Delete => counts.removed += 1,
                ChangeTag::Equal => {}
            }
        }
    }
    counts
}

fn count_line(line: &str, counts: &mut ChangedLines) {
    match line.as_bytes().first() {
        Some(b'+') => counts.added = counts.added.saturating_add(1),
        Some(b'-') => counts.removed = counts.removed.saturating_add(1),
        _ => {}
    }
}

fn add(one: ChangedLines, other: ChangedLines) -> ChangedLines {
    ChangedLines {
        added: one.added.saturating_add(other.added),
        removed: one.removed.saturating_add(other.removed),
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lines_of_an_edit_are_counted() {
        let long = |text: &str| text.repeat(COMPARED_MAX);
        for (tool, input, expected) in [
            (
                "Edit",
                json!({"old_string": "a\nb\nc", "new_string": "a\nB\nc"}),
                Some((1, 1)),
            ),
            (
                "edit",
                json!({"oldString": "a\nb\nc\nd", "newString": "A\nb\nc\nD\nE"}),
                Some((3, 2)),
            ),
            (
                "Edit",
                json!({"old_str": "", "new_str": "a\n"}),
                Some((1, 0)),
            ),
            (
                "Edit",
                json!({"old_string": long("a\n"), "new_string": long("b\nc\n")}),
                Some((2000, 1000)),
            ),
            (
                "MultiEdit",
                json!({"file_path": "a", "edits": [
                    {"old_string": "a", "new_string": "b"}, {"oldText": "c\nd", "newText": "c"},
                ]}),
                Some((1, 2)),
            ),
            (
                "Write",
                json!({"file_path": "a", "content": "1\n2\n3"}),
                Some((3, 0)),
            ),
            (
                "create",
                json!({"path": "a", "file_text": "1\n"}),
                Some((1, 0)),
            ),
            (
                "ApplyPatch",
                json!({"input": "*** Begin Patch\n*** Update File: a\n@@ fn\n a\n-b\n+c\n+--d\n*** End Patch"}),
                Some((2, 1)),
            ),
            (
                "patch",
                json!({"patch": "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n--- x\n+y\n+z\n"}),
                Some((2, 1)),
            ),
            ("Read", json!({"file_path": "a", "content": "1"}), None),
            ("SendMessage", json!({"content": "1"}), None),
            ("Bash", json!({"command": "ls", "input": "+1\n-2"}), None),
            ("Edit", json!({"old_string": 1, "new_string": null}), None),
            ("Edit", json!("text"), None),
        ] {
            let counts = of_input(tool, &input).map(|counts| (counts.added, counts.removed));
            assert_eq!(counts, expected, "{tool} {input}");
        }
    }

    #[test]
    fn the_lines_of_a_result_are_counted() {
        let hunks = json!([{"lines": ["-41", "+42", " 43"]}, {"lines": ["+44"]}]);
        assert_eq!(
            of_hunks(&hunks),
            Some(ChangedLines {
                added: 2,
                removed: 1
            })
        );
        assert_eq!(of_hunks(&json!([])), None);
        let metrics = json!({"linesAdded": 7, "linesRemoved": 0});
        let counts = reported(&metrics, "linesAdded", "linesRemoved");
        assert_eq!(
            counts,
            Some(ChangedLines {
                added: 7,
                removed: 0
            })
        );
        assert_eq!(reported(&metrics, "linesAdded", "gone"), None);
        assert_eq!(of_patch("no patch\n+ at all"), None);
    }
}
