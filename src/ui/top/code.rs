//! Highlights the lines of a patch: the words that changed, and the keywords, strings and comments of
//! common languages.

use std::ops::Range;

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodePart {
    /// The words in which a removed line and the added line in its place differ.
    Changed,
    Keyword,
    String,
    Comment,
}

/// A line of a patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PatchLine {
    /// The line's number in the new file; `None` if it is not there.
    pub(super) number: Option<u32>,
    /// The line with its sign, without control characters.
    pub(super) text: String,
    /// The parts that are not plain, as byte ranges of the text. Later ones are drawn over earlier
    /// ones.
    pub(super) parts: Vec<(Range<usize>, CodePart)>,
}

/// A longer line, in bytes, is not highlighted.
const LINE_MAX: usize = 1000;

/// How comments begin, by the ends of files' names.
const COMMENTS: [(&str, &[&str]); 3] = [
    (
        "//",
        &[
            "rs", "c", "h", "cc", "cpp", "hpp", "cs", "go", "java", "js", "jsx", "mjs", "ts",
            "tsx", "kt", "swift", "scala", "dart", "zig", "php", "proto", "jsonc",
        ],
    ),
    (
        "#",
        &[
            "py",
            "sh",
            "bash",
            "zsh",
            "fish",
            "rb",
            "pl",
            "toml",
            "yaml",
            "yml",
            "nix",
            "tf",
            "r",
            "jl",
            "ex",
            "exs",
            "Makefile",
            "mk",
            "Dockerfile",
            "justfile",
            "cfg",
            "conf",
        ],
    ),
    ("--", &["sql", "lua", "hs", "elm", "adb", "ads"]),
];

/// The keywords of all these languages, sorted.
const KEYWORDS: [&str; 86] = [
    "abstract",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "begin",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "goto",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "pub",
    "public",
    "raise",
    "return",
    "select",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "use",
    "var",
    "where",
    "while",
    "with",
];

/// The syntax of a file, as far as it is highlighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeSyntax {
    comment: &'static str,
}

impl CodeSyntax {
    /// Returns the syntax of a file; `None` if it is unknown.
    pub(super) fn of_file(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let end = name.rsplit('.').next().unwrap_or(name);
        let mut known = COMMENTS.iter();
        let (comment, _) = known.find(|(_, ends)| ends.contains(&end))?;
        Some(Self { comment })
    }

    /// Returns the keywords, strings and comments of a line of a patch.
    fn parts(self, line: &str) -> Vec<(Range<usize>, CodePart)> {
        let mut parts = Vec::new();
        // The first character is the sign.
        let mut at = line.chars().next().map_or(0, char::len_utf8);
        let starts_comment = |at: usize| {
            let is_word_before = line[..at].ends_with(|c: char| !c.is_whitespace());
            // A URL, a shell's `$#` and the like are no comments.
            line[at..].starts_with(self.comment) && (at == 1 || !is_word_before)
        };
        while let Some(c) = line[at..].chars().next() {
            let rest = &line[at..];
            let next = at + c.len_utf8();
            if starts_comment(at) {
                parts.push((at..line.len(), CodePart::Comment));
                break;
            }
            at = if matches!(c, '"' | '\'' | '`') {
                match string_end(rest, c) {
                    Some(length) => {
                        parts.push((at..at + length, CodePart::String));
                        at + length
                    }
                    None => next,
                }
            } else if is_word(c) {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if KEYWORDS.binary_search(&&rest[..length]).is_ok() {
                    parts.push((at..at + length, CodePart::Keyword));
                }
                at + length
            } else {
                next
            };
        }
        parts
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a string that begins with this quote; `None` if it does not end.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

/// Adds the parts and the numbers to the lines of one file's patch.
pub(super) fn highlight(lines: &mut [PatchLine], syntax: Option<CodeSyntax>) {
    let mut number = None::<u32>;
    for line in &mut *lines {
        let is_short = line.text.len() <= LINE_MAX;
        match line.text.as_bytes().first() {
            Some(b'@') => number = first_line(&line.text),
            Some(b'+' | b' ') => {
                line.number = number;
                number = number.map(|number| number.saturating_add(1));
            }
            _ => {}
        }
        let is_code = matches!(line.text.as_bytes().first(), Some(b'+' | b'-' | b' '));
        if let Some(syntax) = syntax.filter(|_| is_short && is_code) {
            line.parts = syntax.parts(&line.text);
        }
    }
    let mut at = 0;
    while at < lines.len() {
        let count = |from: usize, sign: u8| {
            let rest = lines[from..].iter();
            rest.take_while(|line| line.text.as_bytes().first() == Some(&sign))
                .count()
        };
        let removed = count(at, b'-');
        let added = count(at + removed, b'+');
        // Lines are compared in pairs only if there are as many of each.
        if removed == added {
            for line in at..at + removed {
                mark_changes(lines, line, line + removed);
            }
        }
        at += (removed + added).max(1);
    }
}

/// Returns the number of the new file's first line in a hunk: `@@ -1,2 +3,4 @@`.
fn first_line(header: &str) -> Option<u32> {
    let (_, new) = header.split_once(" +")?;
    let end = new.find(|c: char| !c.is_ascii_digit());
    new[..end.unwrap_or(new.len())].parse().ok()
}

/// Marks the words in which a removed and an added line differ, unless most of them do.
fn mark_changes(lines: &mut [PatchLine], removed: usize, added: usize) {
    let (old, new) = (&lines[removed].text[1..], &lines[added].text[1..]);
    if old.len().max(new.len()) > LINE_MAX {
        return;
    }
    let ends = |one: &str, other: &str| {
        let pairs = one.chars().zip(other.chars());
        let same = pairs.take_while(|(a, b)| a == b);
        same.map(|(c, _)| c.len_utf8()).sum::<usize>()
    };
    let mut start = ends(old, new);
    while start > 0 && old[..start].ends_with(is_word) && is_inside_word(old, new, start) {
        start -= old[..start].chars().next_back().map_or(0, char::len_utf8);
    }
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let reversed = |text: &str| text.chars().rev().collect::<String>();
    let mut end = ends(&reversed(old_rest), &reversed(new_rest));
    let (old_end, new_end) = (old_rest.len() - end, new_rest.len() - end);
    let tail = &old_rest[old_end..];
    // The end of a word belongs to the change.
    if old_rest[..old_end].ends_with(is_word) || new_rest[..new_end].ends_with(is_word) {
        end -= tail.find(|c| !is_word(c)).unwrap_or(tail.len());
    }
    let (old_changed, new_changed) = (old_rest.len() - end, new_rest.len() - end);
    let is_small = |changed: usize, text: &str| changed * 3 <= text.trim().len() * 2;
    if !is_small(old_changed, old) || !is_small(new_changed, new) {
        return;
    }
    for (line, changed) in [(removed, old_changed), (added, new_changed)] {
        if changed > 0 {
            let range = start + 1..start + 1 + changed;
            lines[line].parts.push((range, CodePart::Changed));
        }
    }
}

/// Returns whether a word continues at this offset in one of the texts.
fn is_inside_word(old: &str, new: &str, at: usize) -> bool {
    old[at..].starts_with(is_word) || new[at..].starts_with(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str], path: &str) -> Vec<PatchLine> {
        let mut lines: Vec<_> = texts
            .iter()
            .map(|text| PatchLine {
                text: (*text).to_owned(),
                ..PatchLine::default()
            })
            .collect();
        highlight(&mut lines, CodeSyntax::of_file(path));
        lines
    }

    fn parts(line: &PatchLine, part: CodePart) -> Vec<&str> {
        let of_kind = line.parts.iter().filter(|(_, kind)| *kind == part);
        of_kind
            .map(|(range, _)| &line.text[range.clone()])
            .collect()
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn keywords_strings_and_comments_are_found() {
        let found = lines(&["+    let url = \"http://x\"; // fn"], "src/a.rs");
        assert_eq!(parts(&found[0], CodePart::Keyword), ["let"]);
        assert_eq!(parts(&found[0], CodePart::String), ["\"http://x\""]);
        assert_eq!(parts(&found[0], CodePart::Comment), ["// fn"]);
        let shell = lines(&["+if test $# = 'é'; then # why", "+# all"], "lib/a.sh");
        assert_eq!(parts(&shell[0], CodePart::Keyword), ["if", "then"]);
        assert_eq!(parts(&shell[0], CodePart::String), ["'é'"]);
        assert_eq!(parts(&shell[0], CodePart::Comment), ["# why"]);
        assert_eq!(parts(&shell[1], CodePart::Comment), ["# all"]);
        assert_eq!(lines(&["+if true"], "notes.md")[0].parts, []);
        assert_eq!(lines(&["+fn it's 'a", "é", "", "+"], "a.rs").len(), 4);
    }

    #[test]
    fn changed_words_are_marked_and_lines_have_numbers() {
        let found = lines(
            &[
                "@@ -4,3 +7,3 @@ fn a()",
                " same",
                "-    total(price, 19) + shipping",
                "-two",
                "+    total(prices, 19) + shipping",
                "+nothing in common",
                " end",
            ],
            "a.rs",
        );
        assert_eq!(parts(&found[2], CodePart::Changed), ["price"]);
        assert_eq!(parts(&found[4], CodePart::Changed), ["prices"]);
        assert!(parts(&found[5], CodePart::Changed).is_empty());
        let numbers: Vec<_> = found.iter().map(|line| line.number).collect();
        assert_eq!(
            numbers,
            [None, Some(7), None, None, Some(8), Some(9), Some(10)]
        );
        let uneven = lines(&["-a = 1", "+a = 2", "+b = 2"], "a.py");
        assert!(parts(&uneven[1], CodePart::Changed).is_empty());
    }
}
