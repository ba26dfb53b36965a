//! Separates an agent's own text on a terminal screen from frames, bullets and the prompt that was
//! typed there.

use super::fnv;
use std::borrow::Cow;

/// Minimum number of letters and digits in a line that is recognized as the start of the prompt.
const BEGINNING_MIN: usize = 12;

/// Maximum number of occurrences of a line in the prompt that are considered.
const OCCURRENCES_MAX: usize = 64;

/// Returns the agent's own text on a screen.
///
/// Removes every part of the typed prompt that can be recognized. The agent's program may have
/// rewrapped the prompt, framed it or cut it off.
pub(crate) fn strip_prompt(text: &str, prompt: &str) -> String {
    let lines = join_promises(text.lines().map(strip_frame));
    let typed = TypedPrompt::new(prompt);
    let letters: Vec<String> = lines.iter().map(|line| alphanumeric(line)).collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        let echoed = typed.echo_length(&lines[at..], &letters[at..]);
        if echoed == 0 {
            kept.push_str(&lines[at]);
            kept.push('\n');
        }
        at += echoed.max(1);
    }
    kept
}

/// Maximum number of rows that a wrapped promise may take after its first row.
const PROMISE_ROWS: usize = 4;

/// Joins the rows of a wrapped promise. As separate rows, they would look like two lines of the
/// prompt.
fn join_promises<'a>(rows: impl Iterator<Item = Cow<'a, str>>) -> Vec<Cow<'a, str>> {
    let mut lines: Vec<Cow<'a, str>> = Vec::new();
    let mut open = 0;
    for row in rows {
        match lines.last_mut() {
            Some(last) if open > 0 => {
                let last = last.to_mut();
                last.push(' ');
                last.push_str(&row);
            }
            _ => lines.push(row),
        }
        let is_open = lines.last().is_some_and(|line| has_open_promise(line));
        open = if is_open && open < PROMISE_ROWS {
            open + 1
        } else {
            0
        };
    }
    lines
}

/// Returns whether a promise begins on this line but does not end on it.
fn has_open_promise(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["promise", "response"].iter().any(|tag| {
        let begins = line.rfind(&format!("<{tag}>"));
        begins.is_some_and(|at| !line[at..].contains(&format!("</{tag}>")))
    })
}

/// The prompt reduced to its letters and digits, which ignores line breaks.
struct TypedPrompt {
    letters: String,
    /// A Bloom filter of the prompt's n-grams, which rules out most screen lines in constant time.
    /// Searching a 200 KB prompt for 2000 rows takes 38 ms with `memchr::memmem`, and 2.4 ms with
    /// this filter, including the time to build it.
    ngrams: Vec<u64>,
}

/// Length of an n-gram, in bytes.
const NGRAM: usize = 6;

fn ngram_bit(ngram: &[u8], bits: usize) -> usize {
    let hash = fnv::hash(ngram);
    (hash ^ (hash >> 32)) as usize % bits
}

impl TypedPrompt {
    fn new(prompt: &str) -> Self {
        let letters = alphanumeric(prompt);
        let mut ngrams = vec![0; (letters.len() / 8 + 1).min(1 << 17)];
        for ngram in letters.as_bytes().windows(NGRAM) {
            let bit = ngram_bit(ngram, ngrams.len() * 64);
            ngrams[bit / 64] |= 1 << (bit % 64);
        }
        Self { letters, ngrams }
    }

    /// Returns whether the prompt may contain `letters`. `false` is certain; `true` may be wrong.
    fn may_contain(&self, letters: &str) -> bool {
        letters.as_bytes().windows(NGRAM).all(|ngram| {
            let bit = ngram_bit(ngram, self.ngrams.len() * 64);
            self.ngrams[bit / 64] & (1 << (bit % 64)) != 0
        })
    }

    /// Returns the number of `lines`, counted from the first, that repeat the prompt.
    ///
    /// A single line may be the agent's own even if the prompt contains it too. It belongs to the
    /// prompt if it continues where the previous line ended, or if it begins where the prompt
    /// begins.
    fn echo_length(&self, lines: &[Cow<'_, str>], letters: &[String]) -> usize {
        let first = &letters[0];
        if first.is_empty() || !self.may_contain(first) {
            return 0;
        }
        let mut ends: Vec<usize> = self
            .occurrences(first)
            .map(|at| at + first.len())
            .take(OCCURRENCES_MAX)
            .collect();
        if ends.is_empty() {
            return 0;
        }
        let begins = self.letters.starts_with(first.as_str())
            && (first.len() >= BEGINNING_MIN || first.len() == self.letters.len());
        let is_quoted = lines[0].starts_with('>') && first.len() >= BEGINNING_MIN;
        let mut taken = usize::from(begins || is_quoted);
        let mut cut_off = is_cut_off(&lines[0]);
        for (offset, next) in letters
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, next)| !next.is_empty())
        {
            let follow = |end: usize| {
                let rest = &self.letters[end..];
                let near = if cut_off {
                    rest.find(next.as_str())
                } else {
                    rest.starts_with(next.as_str()).then_some(0)
                };
                near.map(|skipped| end + skipped + next.len())
            };
            ends = ends.into_iter().filter_map(follow).collect();
            if ends.is_empty() {
                break;
            }
            taken = offset + 1;
            cut_off = is_cut_off(&lines[offset]);
        }
        taken
    }

    fn occurrences<'a>(&'a self, letters: &'a str) -> impl Iterator<Item = usize> {
        self.letters.match_indices(letters).map(|(at, _)| at)
    }
}

/// Returns only the letters and digits of `text`, which frames, line breaks and rendered Markdown
/// leave unchanged.
fn alphanumeric(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn is_cut_off(line: &str) -> bool {
    line.ends_with('…') || line.ends_with("...")
}

/// Removes the frame and the bullet around a line. Replaces an input mark such as `❯` with `>`,
/// which makes the line a quotation, in which signals are ignored.
fn strip_frame(line: &str) -> Cow<'_, str> {
    let line = line.trim_matches(|c: char| c.is_whitespace() || is_frame(c));
    match line.strip_prefix(['❯', '›', '»']) {
        Some(typed) => Cow::Owned(format!(">{typed}")),
        None => Cow::Borrowed(
            line.trim_start_matches(|c: char| c.is_whitespace() || BULLETS.contains(c)),
        ),
    }
}

const BULLETS: &str = "●⏺•◦○◉▪■□◆◇✦✱✻✽∙·⎿";

fn is_frame(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}')
}

#[cfg(test)]
mod tests {
    use super::strip_prompt;
    use crate::engine::signals;

    const PROMPT: &str = "Fix the roof of the old barn by the river.\n\nWhen all is fixed, write:\n\
        <promise>COMPLETE</promise>\nand nothing after it.\n";

    fn promised(screen: &str) -> bool {
        signals::read(&strip_prompt(screen, PROMPT), &["COMPLETE".to_owned()]).promised
    }

    #[test]
    fn the_agents_own_promise_counts_with_any_frame_or_bullet() {
        for screen in [
            "<promise>COMPLETE</promise>",
            "⏺ <promise>COMPLETE</promise>",
            "│ <promise>COMPLETE</promise>          │",
            "╭────╮\n│ ● All is fixed now.  │\n│   <promise>COM</promise>\n│ <promise>\n│ COMPLETE</promise> │\n╰────╯",
            "Fixed.\n\n  <promise>COMPLETE</promise>\n\n> \n? for shortcuts",
        ] {
            assert!(promised(screen), "{screen}");
            assert!(
                promised(&format!("{PROMPT}\nworking\n{screen}")),
                "after the prompt: {screen}"
            );
        }
    }

    #[test]
    fn a_promise_in_the_typed_prompt_does_not_count_with_any_frame_or_wrapping() {
        for screen in [
            PROMPT.to_owned(),
            format!("> {}", PROMPT.replace('\n', "\n  ")),
            PROMPT.replace('\n', " │\n│ "),
            "❯ Fix the roof of the\n  old barn by the\n  river. When all is fixed,\n  write:\n  <promise>COMPLETE</promise>\n  and nothing\n  after it."
                .into(),
            "When all is fixed, wri…\n<promise>COMPLETE</promise>\nand nothing after it.".into(),
            "fixed, write:\n<promise>COMPLETE</promise>".into(),
            "> <promise>COMPLETE</promise>".into(),
            "› <promise>COMPLETE</promise>".into(),
        ] {
            assert!(!promised(&screen), "{screen}");
            assert!(promised(&format!("{screen}\nI did it.\n<promise>COMPLETE</promise>")), "{screen}");
        }
    }

    #[test]
    fn a_one_line_prompt_is_removed_while_it_is_still_being_typed() {
        let prompt = "Work hard, then print All tasks complete when you are sure of it";
        assert_eq!(
            strip_prompt("Work hard, then print All tasks complete", prompt),
            ""
        );
        assert_eq!(strip_prompt(prompt, prompt), "");
        assert_eq!(
            strip_prompt("All tasks complete", prompt),
            "All tasks complete\n"
        );
        assert_eq!(
            strip_prompt("> hard, then print All tasks complete", prompt),
            ""
        );
    }

    #[test]
    fn an_empty_prompt_removes_nothing() {
        assert_eq!(strip_prompt("a\n\nb", ""), "a\n\nb\n");
        assert_eq!(strip_prompt("", "x"), "");
    }
}
