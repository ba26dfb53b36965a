//! Lines of an agent's own that match a pattern, found as output comes.

use crate::engine::plain_text::plain;
use crate::engine::signals::Echo;
use regex::RegexSet;

/// Longer lines are matched in their first part only.
const LINE_MAX: usize = 64 * 1024;

/// Looks for patterns in an agent's own lines: what it repeats of its prompt is not its own.
pub struct Scanner {
    patterns: RegexSet,
    echo: Echo,
    line: Vec<u8>,
    /// A line that matched, and may be the prompt's.
    held: Option<String>,
}

impl Scanner {
    /// Looks for these patterns in the answer to this prompt.
    pub fn new(patterns: RegexSet, prompt: &str) -> Self {
        Self {
            patterns,
            echo: Echo::of(prompt),
            line: Vec::new(),
            held: None,
        }
    }

    /// Takes the next bytes, and tells of every line that is known to match by now.
    pub fn feed(&mut self, bytes: &[u8], found: &mut dyn FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line(found);
            }
        }
    }

    /// Takes the end of the output.
    pub fn finish(&mut self, found: &mut dyn FnMut(&str)) {
        self.end_line(found);
        if self.echo.finish()
            && let Some(line) = self.held.take()
        {
            found(&line);
        }
    }

    fn end_line(&mut self, found: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line);
        let line = plain(text.trim_end_matches(['\r', '\n']));
        let matches = self.patterns.is_match(&line);
        let own = self.echo.own(&line, matches);
        let unsure = self.echo.is_unsure();
        if own && let Some(before) = self.held.take() {
            found(&before);
        }
        if own && matches && !unsure {
            found(&line);
        }
        if matches && unsure {
            self.held = Some(line.into_owned());
        } else if !unsure {
            self.held = None;
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines found while the agent ran, and at its end.
    fn scan(pattern: &str, prompt: &str, pieces: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut scanner = Scanner::new(RegexSet::new([pattern]).unwrap(), prompt);
        let (mut running, mut at_end) = (Vec::new(), Vec::new());
        for piece in pieces {
            scanner.feed(piece.as_bytes(), &mut |line| running.push(line.to_owned()));
        }
        scanner.finish(&mut |line| at_end.push(line.to_owned()));
        (running, at_end)
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn a_match_is_seen_while_the_agent_runs() {
        let (found, none) = (lines(&["All done"]), lines(&[]));
        assert_eq!(
            scan("All done", "go", &["working\nAll ", "done\nmore\n"]),
            (found.clone(), none.clone())
        );
        let coloured = ["\x1b[32mAll \x1b[1mdone\x1b[0m\r\n"];
        assert_eq!(
            scan("All done", "go", &coloured),
            (found.clone(), none.clone())
        );
        assert_eq!(
            scan("^All done$", "go", &["All done"]),
            (none.clone(), found)
        );
        assert_eq!(
            scan("All done", "go", &["nothing of the kind\n"]),
            (none.clone(), none)
        );
    }

    #[test]
    fn an_echoed_prompt_does_not_match() {
        let prompt = "Do the work.\nThen print:\nAll done\n";
        let (found, none) = (lines(&["All done"]), lines(&[]));
        assert_eq!(
            scan("All done", prompt, &[prompt]),
            (none.clone(), none.clone())
        );
        let quoted = ["> Do the work.\n> Then print:\n> All done\n"];
        assert_eq!(
            scan("All done", prompt, &quoted),
            (none.clone(), none.clone())
        );
        assert_eq!(
            scan("All done", prompt, &[prompt, "ok\nAll done\n"]),
            (none.clone(), found.clone())
        );
        assert_eq!(
            scan("All done", prompt, &[prompt, "ok\nAll done\nbye\n"]),
            (found, none)
        );
    }

    #[test]
    fn every_match_is_told_by_its_line() {
        let prompt = "denied b\nother\n";
        let said = "denied a\ndenied b\n\ndenied a\ndenied b\nother\ndenied c";
        let expected = (
            lines(&["denied a", "denied b", "denied a"]),
            lines(&["denied c"]),
        );
        assert_eq!(
            scan("denied", prompt, &[said]),
            expected,
            "the second `denied b` is the prompt's"
        );
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut scanner = Scanner::new(RegexSet::new(["never"]).unwrap(), "go");
        for _ in 0..100 {
            scanner.feed(&[b'x'; 10_000], &mut |_| panic!("found"));
        }
        assert!(scanner.line.len() <= LINE_MAX);
        scanner.finish(&mut |_| panic!("found"));
    }
}
