//! Recognizes the agent's prompt in its output. No signal is read from such an echo.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Recognizes lines of the prompt in an agent's output. A signal in an echoed prompt does not
/// count.
///
/// A single line may be the agent's own even if the prompt contains it too: the prompt may ask for
/// exactly that line. Two lines in the prompt's order, or the whole of a one-line prompt, are an
/// echo.
pub(crate) struct EchoFilter {
    /// The numbers of the prompt's lines, by the hash of the line.
    positions: BTreeMap<u64, Vec<usize>>,
    line_count: usize,
    /// The numbers of the prompt's lines that the last line of output may echo.
    run: Vec<usize>,
    /// Whether the last line matched the done pattern but may still be an echo, depending on the
    /// next line.
    pending: bool,
}

impl EchoFilter {
    pub(crate) fn new(prompt: &str) -> Self {
        let mut positions: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut line_count = 0;
        for line in prompt.lines().filter_map(line_hash) {
            positions.entry(line).or_default().push(line_count);
            line_count += 1;
        }
        Self {
            positions,
            line_count,
            run: Vec::new(),
            pending: false,
        }
    }

    /// Takes the next line of output. `matches` is `true` if the line matches the done pattern.
    /// Returns whether a match, on this line or the previous one, is certain to be the agent's own.
    pub(crate) fn is_own_match(&mut self, line: &str, matches: bool) -> bool {
        let Some(line) = line_hash(line) else {
            return matches;
        };
        let was_pending = std::mem::take(&mut self.pending);
        let Some(positions) = self.positions.get(&line) else {
            self.run.clear();
            return was_pending || matches;
        };
        let continued = successors(&self.run, positions);
        if continued.is_empty() {
            self.run.clone_from(positions);
            self.pending = matches && self.line_count > 1;
            was_pending
        } else {
            self.run = continued;
            false
        }
    }

    fn starts_prompt(&self, line: Option<u64>) -> bool {
        let positions = line.and_then(|line| self.positions.get(&line));
        positions.is_some_and(|positions| positions.first() == Some(&0))
    }

    /// Returns whether the prompt contains this line.
    pub(crate) fn is_prompt_line(&self, line: &str) -> bool {
        line_hash(line).is_some_and(|line| self.positions.contains_key(&line))
    }

    /// Returns whether the last match may still turn out to be an echo.
    pub(crate) fn is_undecided(&self) -> bool {
        self.pending
    }

    /// Handles the end of the output. Returns whether an undecided match was the agent's own.
    pub(crate) fn finish(&mut self) -> bool {
        std::mem::take(&mut self.pending)
    }

    /// Returns a complete text without the lines that echo the prompt.
    pub(crate) fn strip(&self, text: &str) -> String {
        let lines: Vec<(&str, Option<u64>)> = text
            .split_inclusive('\n')
            .map(|line| (line, line_hash(line)))
            .collect();
        let mut kept = String::with_capacity(text.len());
        let mut at = 0;
        while at < lines.len() {
            let (lines_taken, matched) = self.longest_run(&lines[at..]);
            if matched >= 2 || (matched == 1 && self.line_count == 1) {
                // In an echo of a part of the prompt, code fences stay: the agent may repeat text
                // that is also in the prompt, and a signal inside a fence must not appear outside.
                if !self.starts_prompt(lines[at].1) {
                    let echoed = lines[at..at + lines_taken].iter().map(|(line, _)| *line);
                    kept.extend(echoed.filter(|line| is_fence(line)));
                }
                at += lines_taken;
            } else {
                kept.push_str(lines[at].0);
                at += 1;
            }
        }
        kept
    }

    /// Returns the length of the longest run of prompt lines at the start of `lines`, with and
    /// without blank lines.
    fn longest_run(&self, lines: &[(&str, Option<u64>)]) -> (usize, usize) {
        let Some(positions) = lines[0].1.and_then(|first| self.positions.get(&first)) else {
            return (1, 0);
        };
        let mut run = positions.clone();
        let mut best = (1, 1);
        for (offset, (_, line)) in lines.iter().enumerate().skip(1) {
            let Some(line) = line else { continue };
            let Some(next) = self.positions.get(line) else {
                break;
            };
            run = successors(&run, next);
            if run.is_empty() {
                break;
            }
            best = (offset + 1, best.1 + 1);
        }
        best
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>' || c == '|');
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns the elements of `positions` that directly follow an element of `run`. Both lists are
/// sorted.
fn successors(run: &[usize], positions: &[usize]) -> Vec<usize> {
    let follows = |at: &usize| {
        at.checked_sub(1)
            .is_some_and(|before| run.binary_search(&before).is_ok())
    };
    positions.iter().copied().filter(follows).collect()
}

/// Hashes a line without the whitespace and quotation marks that an echo may add. Returns `None`
/// for a blank line.
fn line_hash(line: &str) -> Option<u64> {
    let content = line
        .trim_start_matches(|c: char| c.is_whitespace() || c == '>' || c == '|')
        .trim_end();
    if content.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    Some(hasher.finish())
}
