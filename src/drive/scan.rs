//! The done pattern, looked for line by line as output comes.

use crate::engine::plain::plain;
use crate::engine::signal::Echo;
use regex::Regex;

/// Longer lines are matched in their first part only.
const LINE_MAX: usize = 64 * 1024;

/// Looks for a pattern in an agent's own lines.
pub struct Scanner {
    pattern: Regex,
    echo: Echo,
    line: Vec<u8>,
    matched: bool,
}

impl Scanner {
    /// Looks for this pattern in the answer to this prompt.
    pub fn new(pattern: Regex, prompt: &str) -> Self {
        Self { pattern, echo: Echo::of(prompt), line: Vec::new(), matched: false }
    }

    /// Takes the next bytes; true if the pattern has matched by now.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
        self.matched
    }

    /// Takes the end of the output; true if the pattern has matched at all.
    pub fn finish(&mut self) -> bool {
        self.end_line();
        self.matched |= self.echo.finish();
        self.matched
    }

    fn end_line(&mut self) {
        if !self.matched {
            let text = String::from_utf8_lossy(&self.line);
            let line = plain(text.trim_end_matches(['\r', '\n']));
            self.matched = self.echo.own(&line, self.pattern.is_match(&line));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pattern: &str, prompt: &str, pieces: &[&str]) -> (bool, bool) {
        let mut scanner = Scanner::new(Regex::new(pattern).unwrap(), prompt);
        let mut running = false;
        for piece in pieces {
            running = scanner.feed(piece.as_bytes());
        }
        (running, scanner.finish())
    }

    #[test]
    fn a_match_is_seen_while_the_agent_runs() {
        assert_eq!(scan("All done", "go", &["working\nAll ", "done\nmore\n"]), (true, true));
        assert_eq!(scan("All done", "go", &["\x1b[32mAll \x1b[1mdone\x1b[0m\r\n"]), (true, true));
        assert_eq!(scan("^All done$", "go", &["All done"]), (false, true));
        assert_eq!(scan("All done", "go", &["nothing of the kind\n"]), (false, false));
    }

    #[test]
    fn an_echoed_prompt_does_not_match() {
        let prompt = "Do the work.\nThen print:\nAll done\n";
        assert_eq!(scan("All done", prompt, &[prompt]), (false, false));
        assert_eq!(
            scan("All done", prompt, &["> Do the work.\n> Then print:\n> All done\n"]),
            (false, false)
        );
        assert_eq!(scan("All done", prompt, &[prompt, "ok\nAll done\n"]), (false, true));
        assert_eq!(scan("All done", prompt, &[prompt, "ok\nAll done\nbye\n"]), (true, true));
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut scanner = Scanner::new(Regex::new("never").unwrap(), "go");
        for _ in 0..100 {
            scanner.feed(&[b'x'; 10_000]);
        }
        assert!(scanner.line.len() <= LINE_MAX);
        assert!(!scanner.finish());
    }
}
