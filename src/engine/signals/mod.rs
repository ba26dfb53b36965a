//! Reads signals from an agent's final message: promises, `<blocked>`, `<changed>` and `<commit>`.
//!
//! A signal is a tag. It counts when it is alone on its lines, or when it is the last thing in the
//! message after the end of a sentence. Inside a sentence it may be a denial ("I cannot promise
//! that"), and inside code fences and quotations it may be someone else's text. In these places it
//! does not count.

mod echo;

pub(crate) use echo::EchoFilter;

use super::event::TextSignals;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum length of the reason for being blocked, or for a change, in characters.
const REASON_MAX: usize = 2000;

/// Maximum length of a commit message, in characters.
const COMMIT_MAX: usize = 16_000;

/// Maximum length of a note for the next iteration, in characters.
const NOTE_MAX: usize = 2000;
/// Maximum number of lines of such a note.
const NOTE_LINES: usize = 40;

/// Maximum length of the end of a message that has no note, in characters.
const NOTE_END_MAX: usize = 600;
/// Maximum number of lines of such an end.
const NOTE_END_LINES: usize = 12;

/// Only the last `TAIL_BYTES` bytes of a plain-text agent's output are searched for signals.
pub(crate) const TAIL_BYTES: usize = 64 * 1024;

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<(?P<slash>/?)(?P<name>promise|response|blocked|changed|commit|note)>")
        .expect("a constant pattern")
});

/// Reads the signals in an agent's final message. `text` must be cleaned already. `promises` are
/// the texts that count as a promise.
pub(crate) fn read(text: &str, promises: &[String]) -> TextSignals {
    let hidden = hidden_lines(text).ranges;
    let mut signals = TextSignals::default();
    for (tag, content) in tagged(text, "promise").chain(tagged(text, "response")) {
        if !promises.iter().any(|promise| same_text(promise, content)) {
            continue;
        }
        match tag_position(text, tag, &hidden) {
            TagPosition::Alone => signals.promised = true,
            TagPosition::InSentence => signals.promise_in_sentence = true,
            TagPosition::Hidden => {}
        }
    }
    signals.promise_in_sentence &= !signals.promised;
    let is_alone = |tag: Range<usize>| tag_position(text, tag, &hidden) == TagPosition::Alone;
    let reason = |name| {
        tagged(text, name).find_map(|(tag, content)| {
            let why = fold_whitespace(content);
            let counts = !why.is_empty() && is_alone(tag);
            counts.then(|| why.chars().take(REASON_MAX).collect())
        })
    };
    signals.blocked = reason("blocked");
    signals.changed = reason("changed");
    // The last commit message counts, unless it is the prompt's example `<commit>…</commit>`.
    signals.commit = tagged(text, "commit")
        .filter(|(tag, _)| is_alone(tag.clone()))
        .last()
        .map(|(_, content)| commit_lines(content))
        .filter(|message| message.contains(char::is_alphanumeric));
    signals
}

/// Returns the last `<note>` in an agent's final message, which has been cleaned; `None` if there is
/// none. It counts where a promise would.
pub(crate) fn read_note(text: &str) -> Option<String> {
    let hidden = hidden_lines(text).ranges;
    tagged(text, "note")
        .filter(|(tag, _)| tag_position(text, tag.clone(), &hidden) == TagPosition::Alone)
        .map(|(_, content)| content.trim())
        .filter(|content| content.contains(char::is_alphanumeric))
        .last()
        .map(|content| {
            let lines: Vec<&str> = content.lines().take(NOTE_LINES).collect();
            lines.join("\n").chars().take(NOTE_MAX).collect()
        })
}

/// Returns the end of a final message that has no note: its last lines. `None` for a blank message.
pub(crate) fn end_of_message(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.trim().lines().rev().take(NOTE_END_LINES).collect();
    let mut end = Vec::new();
    let mut left = NOTE_END_MAX;
    for line in lines {
        let length = line.chars().count();
        if length > left && !end.is_empty() {
            break;
        }
        end.push(
            line.chars()
                .skip(length.saturating_sub(left))
                .collect::<String>(),
        );
        left = left.saturating_sub(length);
    }
    end.reverse();
    Some(end.join("\n").trim().to_owned()).filter(|end| !end.is_empty())
}

/// Reads the signals in a message whose beginning was cut off.
///
/// If the cut is inside a code fence, the closing fence looks like an opening one, and the text
/// seems to end inside a fence. In that case, the missing opening fence is added.
pub(crate) fn read_tail(text: &str, promises: &[String]) -> TextSignals {
    match hidden_lines(text).open_fence {
        Some((mark, length)) => read(
            &format!("{}\n{text}", mark.to_string().repeat(length)),
            promises,
        ),
        None => read(text, promises),
    }
}

/// Returns the range and content of every pair of `name` tags. A closing tag belongs to the nearest
/// opening tag; a tag that is only mentioned therefore does not include the next one.
fn tagged<'a>(text: &'a str, name: &'static str) -> impl Iterator<Item = (Range<usize>, &'a str)> {
    let mut open: Option<Range<usize>> = None;
    TAG.captures_iter(text)
        .filter(move |tag| tag["name"].eq_ignore_ascii_case(name))
        .filter_map(move |tag| {
            let whole = tag.get_match();
            if tag["slash"].is_empty() {
                open = Some(whole.range());
                return None;
            }
            let open = open.take()?;
            Some((open.start..whole.end(), &text[open.end..whole.start()]))
        })
}

/// Replaces every run of whitespace with one space, and trims the text.
pub(crate) fn fold_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Trims the lines of a commit message, and cuts it to [`COMMIT_MAX`].
fn commit_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().map(str::trim_end).collect();
    let message: String = lines.join("\n").chars().take(COMMIT_MAX).collect();
    message.trim_end().to_owned()
}

/// Returns whether a tag's content is this promise. Runs of whitespace count as one space, and case
/// is ignored.
fn same_text(promise: &str, content: &str) -> bool {
    let content = fold_whitespace(content).to_lowercase();
    !content.is_empty() && content == fold_whitespace(promise).to_lowercase()
}

#[derive(PartialEq)]
enum TagPosition {
    /// Alone on its lines, or at the very end of the message after a sentence.
    Alone,
    InSentence,
    /// In a code fence or a quotation, where no signal counts.
    Hidden,
}

fn tag_position(text: &str, tag: Range<usize>, hidden: &[Range<usize>]) -> TagPosition {
    if hidden
        .iter()
        .any(|lines| lines.start.max(tag.start) < lines.end.min(tag.end))
    {
        return TagPosition::Hidden;
    }
    let line_start = text[..tag.start].rfind('\n').unwrap_or(0);
    let line_end = text[tag.end..]
        .find('\n')
        .map_or(text.len(), |at| tag.end + at);
    let before = trim_emphasis(&text[line_start..tag.start]);
    let after = trim_emphasis(&text[tag.end..line_end]);
    let is_last = trim_emphasis(&text[tag.end..]).is_empty();
    let after_sentence = before.ends_with(['.', '!', '?', '…', '。', '！', '？']);
    if after.is_empty() && (before.is_empty() || (is_last && after_sentence)) {
        TagPosition::Alone
    } else {
        TagPosition::InSentence
    }
}

/// Trims whitespace and Markdown emphasis from both ends.
fn trim_emphasis(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '*' || c == '_')
}

/// Lines in which no signal counts.
struct HiddenLines {
    /// The byte ranges of code fences and quotations.
    ranges: Vec<Range<usize>>,
    /// The character and length of a code fence that the text does not close; `None` if all are
    /// closed.
    open_fence: Option<(char, usize)>,
}

fn hidden_lines(text: &str) -> HiddenLines {
    let mut ranges = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let line = line.trim();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            // A line may also begin with inline code in three backticks, but then more backticks
            // follow.
            (None, Some(mark)) if run >= 3 && !line[run..].contains('`') => {
                fence = Some((mark, run));
            }
            (Some((open, length)), Some(mark))
                if mark == open && run >= length && line.len() == run =>
            {
                fence = None;
            }
            (None, _) if !line.starts_with('>') => continue,
            _ => {}
        }
        ranges.push(range);
    }
    HiddenLines {
        ranges,
        open_fence: fence,
    }
}

/// Replaces the tags in `text`. An agent that repeats the text then gives no signals.
pub(crate) fn defang(text: &str) -> String {
    TAG.replace_all(text, "‹$slash$name›").into_owned()
}
