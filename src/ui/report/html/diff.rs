//! Shows a patch, one folded part for each file.

use super::markup::Html;

/// A part of a patch: the changes of one file.
struct FileDiff<'a> {
    path: &'a str,
    insertions: u64,
    deletions: u64,
    /// The hunks, without the header.
    body: &'a str,
}

/// Appends a patch until it takes `max` bytes. Returns how many bytes of it were left out.
pub(super) fn patch(html: &mut Html, patch: &str, max: usize) -> usize {
    let end = html.len() + max;
    let mut left = 0;
    for file in files(patch) {
        let room = end.saturating_sub(html.len() + 400);
        if room == 0 {
            left += file.body.len();
            continue;
        }
        html.tag("<details class=\"file\"><summary>")
            .code(super::super::cut(file.path, 300).0);
        html.tag(" ").span("plus", &format!("+{}", file.insertions));
        html.tag(" ").span("minus", &format!("−{}", file.deletions));
        html.tag("</summary><pre class=\"diff\">");
        left += hunks(html, file.body, room);
        html.tag("</pre></details>");
    }
    left
}

/// Appends hunks. Neighboring lines of one kind share an element, which keeps the page small.
fn hunks(html: &mut Html, body: &str, max: usize) -> usize {
    let end = html.len() + max;
    let mut open = None;
    let mut left = 0;
    for line in body.split_inclusive('\n') {
        let kind = match line.as_bytes().first() {
            Some(b'+') => Some("<span class=\"add\">"),
            Some(b'-') => Some("<span class=\"del\">"),
            Some(b'@') => Some("<span class=\"hunk\">"),
            _ => None,
        };
        let room = end.saturating_sub(html.len() + 64);
        if room < 16 {
            left += line.len();
            continue;
        }
        if kind != open {
            if open.is_some() {
                html.tag("</span>");
            }
            if let Some(kind) = kind {
                html.tag(kind);
            }
            open = kind;
        }
        left += html.text_max(line, room);
    }
    if open.is_some() {
        html.tag("</span>");
    }
    left
}

/// Splits a patch by files. Lines of content begin with a space, a sign or a backslash, so they
/// cannot look like a header.
fn files(patch: &str) -> Vec<FileDiff<'_>> {
    let mut starts: Vec<usize> = patch
        .match_indices("diff --git ")
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || patch.as_bytes()[at - 1] == b'\n')
        .collect();
    starts.push(patch.len());
    let parts = starts.windows(2).map(|ends| &patch[ends[0]..ends[1]]);
    parts.map(file).collect()
}

fn file(part: &str) -> FileDiff<'_> {
    let at = part.find("\n@@").map_or(part.len(), |at| at + 1);
    let (header, body) = part.split_at(at);
    let name = |prefix: &str| {
        let mut lines = header.lines();
        let line = lines.find_map(|line| line.strip_prefix(prefix))?;
        Some(line.trim_end_matches('\t')).filter(|name| *name != "/dev/null")
    };
    let first = header.lines().next().unwrap_or_default();
    let path = name("+++ b/")
        .or_else(|| name("--- a/"))
        .or_else(|| name("rename to "))
        .unwrap_or_else(|| first.trim_start_matches("diff --git "));
    let count = |sign: char| body.lines().filter(|line| line.starts_with(sign)).count() as u64;
    FileDiff {
        path,
        insertions: count('+'),
        deletions: count('-'),
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n one\n\
        -diff --git a/fake b/fake\n+<script>\n+two\n\\ No newline at end of file\n\
        diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";

    #[test]
    fn a_patch_is_split_by_its_headers_only() {
        let files = files(PATCH);
        let shown: Vec<_> = files
            .iter()
            .map(|file| (file.path, file.insertions, file.deletions))
            .collect();
        assert_eq!(shown, [("x", 2, 1), ("gone", 0, 1)]);
    }

    #[test]
    fn a_patch_is_escaped_and_cut() {
        let mut html = Html::default();
        assert_eq!(patch(&mut html, PATCH, 10_000), 0);
        let text = html.into_string();
        assert!(
            text.contains("<span class=\"add\">+&lt;script&gt;\n+two\n</span>"),
            "{text}"
        );
        let long = format!("{PATCH}{}", "+<<<<<<<<<<<<<<\n".repeat(10_000));
        let mut html = Html::default();
        assert!(patch(&mut html, &long, 5000) > 100_000);
        assert!(html.len() <= 5000, "{}", html.len());
    }
}
