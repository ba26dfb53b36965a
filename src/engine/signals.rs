//! What an agent's words mean: promises, blocked, the done pattern, and the echo of its own prompt.

use super::event::Said;
use super::plain_text::plain;
use regex::Regex;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

/// Longer words than these are no reason.
const WHY_MAX: usize = 2000;

/// More than this, in characters, is no commit message.
const COMMIT_MAX: usize = 16_000;

/// How much of a plain-text agent's output is read for signals, from its end.
pub const TAIL: usize = 64 * 1024;

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<(?P<slash>/?)(?P<name>promise|response|blocked|commit)>")
        .expect("a constant pattern")
});

/// Reads an agent's final words. `promises` are the texts that count now.
pub fn read(text: &str, promises: &[String]) -> Said {
    let (hidden, _) = hidden_lines(text);
    let mut said = Said::default();
    for (whole, content) in tagged(text, "promise").chain(tagged(text, "response")) {
        if !promises.iter().any(|promise| same_words(promise, content)) {
            continue;
        }
        match place(text, whole, &hidden) {
            Place::Alone => said.promised = true,
            Place::InSentence => said.promise_in_sentence = true,
            Place::Hidden => {}
        }
    }
    said.promise_in_sentence &= !said.promised;
    said.blocked = tagged(text, "blocked").find_map(|(whole, content)| {
        let why = fold(content);
        let is_said = !why.is_empty() && place(text, whole, &hidden) == Place::Alone;
        is_said.then(|| why.chars().take(WHY_MAX).collect())
    });
    // An agent may think twice about it: its last word counts.
    let commits = tagged(text, "commit")
        .filter(|(whole, _)| place(text, whole.clone(), &hidden) == Place::Alone);
    said.commit = commits.last().map(|(_, content)| lines_of(content));
    // Three dots stand for the words in the prompt; copied, they are none.
    said.commit = said
        .commit
        .filter(|lines| lines.contains(char::is_alphanumeric));
    said
}

/// Reads the end of words whose beginning was cut off. If a fence is left open there, it was closed by what
/// looks like its opening: the beginning stood inside one.
pub fn read_end(text: &str, promises: &[String]) -> Said {
    match hidden_lines(text).1 {
        Some((tick, length)) => read(
            &format!("{}\n{text}", tick.to_string().repeat(length)),
            promises,
        ),
        None => read(text, promises),
    }
}

/// Every pair of this tag: where it stands, and what it holds. A closing tag belongs to the nearest
/// opening one, so that a tag merely spoken of does not swallow the next.
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

/// The words of a promise, white space folded.
pub fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Several lines, each without controls, and not too many.
fn lines_of(text: &str) -> String {
    let lines: Vec<_> = text
        .trim()
        .lines()
        .map(|line| plain(line.trim_end()))
        .collect();
    lines
        .join("\n")
        .chars()
        .take(COMMIT_MAX)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn same_words(promise: &str, content: &str) -> bool {
    let content = fold(content).to_lowercase();
    !content.is_empty() && content == fold(promise).to_lowercase()
}

#[derive(PartialEq)]
enum Place {
    Alone,
    InSentence,
    Hidden,
}

/// Where a tag stands: alone or at the very end, inside a sentence, or where nothing counts.
fn place(text: &str, tag: Range<usize>, hidden: &[Range<usize>]) -> Place {
    if hidden
        .iter()
        .any(|lines| lines.start.max(tag.start) < lines.end.min(tag.end))
    {
        return Place::Hidden;
    }
    let line_start = text[..tag.start].rfind('\n').unwrap_or(0);
    let line_end = text[tag.end..]
        .find('\n')
        .map_or(text.len(), |at| tag.end + at);
    let before = bare(&text[line_start..tag.start]);
    let after = bare(&text[tag.end..line_end]);
    let is_last = bare(&text[tag.end..]).is_empty();
    let after_sentence = before.ends_with(['.', '!', '?', '…', '。', '！', '？']);
    if after.is_empty() && (before.is_empty() || (is_last && after_sentence)) {
        Place::Alone
    } else {
        Place::InSentence
    }
}

/// Text without the white space and emphasis around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '*' || c == '_')
}

/// The ranges of lines in which nothing counts: code fences and quotations.
fn hidden_lines(text: &str) -> (Vec<Range<usize>>, Option<(char, usize)>) {
    let mut hidden = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let words = line.trim();
        let tick = words.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = tick.map_or(0, |tick| words.chars().take_while(|c| *c == tick).count());
        match (fence, tick) {
            // Code within a line may begin with three ticks too, but then others follow.
            (None, Some(tick)) if run >= 3 && !words[run..].contains('`') => {
                fence = Some((tick, run))
            }
            (Some((open, length)), Some(tick))
                if tick == open && run >= length && words.len() == run =>
            {
                fence = None;
            }
            (None, _) if !words.starts_with('>') => continue,
            _ => {}
        }
        hidden.push(range);
    }
    (hidden, fence)
}

/// Knows the lines of the prompt, so that an agent that repeats them is not taken at their word.
///
/// A single line may be the agent's own even if the prompt holds it too (the prompt may ask for just
/// that line). Two lines in the prompt's order, or the whole of a one-line prompt, are an echo.
pub struct Echo {
    places: BTreeMap<u64, Vec<usize>>,
    count: usize,
    run: Vec<usize>,
    pending: bool,
}

impl Echo {
    /// Learns the prompt.
    pub fn of(prompt: &str) -> Self {
        let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut count = 0;
        for line in prompt.lines().filter_map(essence) {
            places.entry(line).or_default().push(count);
            count += 1;
        }
        Self {
            places,
            count,
            run: Vec::new(),
            pending: false,
        }
    }

    /// Takes the next line of output and whether it matches something; says whether a match is by now
    /// known to be the agent's own: on this line, or on the one before it.
    pub fn own(&mut self, line: &str, matches: bool) -> bool {
        let Some(line) = essence(line) else {
            return matches;
        };
        let before = std::mem::take(&mut self.pending);
        let Some(places) = self.places.get(&line) else {
            self.run.clear();
            return before || matches;
        };
        let goes_on = follow(&self.run, places);
        if goes_on.is_empty() {
            self.run.clone_from(places);
            self.pending = matches && self.count > 1;
            before
        } else {
            self.run = goes_on;
            false
        }
    }

    /// Whether the last match may still turn out to be the prompt's.
    pub fn is_unsure(&self) -> bool {
        self.pending
    }

    /// Whether the last line was a match of the agent's own, now that nothing follows it.
    pub fn finish(&mut self) -> bool {
        std::mem::take(&mut self.pending)
    }

    /// Cuts the echo out of a whole text.
    pub fn cut(&self, text: &str) -> String {
        let lines: Vec<(&str, Option<u64>)> = text
            .split_inclusive('\n')
            .map(|line| (line, essence(line)))
            .collect();
        let mut kept = String::with_capacity(text.len());
        let mut at = 0;
        while at < lines.len() {
            let (lines_taken, matched) = self.run_at(&lines[at..]);
            if matched >= 2 || (matched == 1 && self.count == 1) {
                at += lines_taken;
            } else {
                kept.push_str(lines[at].0);
                at += 1;
            }
        }
        kept
    }

    /// The longest run of prompt lines that these lines begin with: lines in all, lines that say something.
    fn run_at(&self, lines: &[(&str, Option<u64>)]) -> (usize, usize) {
        let Some(places) = lines[0].1.and_then(|first| self.places.get(&first)) else {
            return (1, 0);
        };
        let mut run = places.clone();
        let mut best = (1, 1);
        for (offset, (_, line)) in lines.iter().enumerate().skip(1) {
            let Some(line) = line else { continue };
            let Some(next) = self.places.get(line) else {
                break;
            };
            run = follow(&run, next);
            if run.is_empty() {
                break;
            }
            best = (offset + 1, best.1 + 1);
        }
        best
    }
}

/// Those of these places that come directly after one of the run. Both are in order.
fn follow(run: &[usize], places: &[usize]) -> Vec<usize> {
    let follows = |at: &usize| {
        at.checked_sub(1)
            .is_some_and(|before| run.binary_search(&before).is_ok())
    };
    places.iter().copied().filter(follows).collect()
}

/// A line without what an echo may change: white space and quotation marks at its start.
fn essence(line: &str) -> Option<u64> {
    let words = line
        .trim_start_matches(|c: char| c.is_whitespace() || c == '>' || c == '|')
        .trim_end();
    if words.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    Some(hasher.finish())
}

/// Makes borrowed text harmless: no tag in it can be read as a signal when an agent repeats it.
pub fn defang(text: &str) -> String {
    TAG.replace_all(text, "‹$slash$name›").into_owned()
}
