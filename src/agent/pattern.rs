//! Matches patterns against an agent's output line by line, as it arrives.

use crate::engine::plain_text::plain;
use crate::engine::signals::EchoFilter;
use regex::RegexSet;

/// Only the first `LINE_MAX` bytes of a line are matched.
const LINE_MAX: usize = 64 * 1024;

/// Reports the lines that match any of a set of patterns. Lines that echo the prompt are skipped.
pub(crate) struct PatternScanner {
    patterns: RegexSet,
    echo: EchoFilter,
    line: Vec<u8>,
    /// A matching line that may still turn out to be part of the echoed prompt; `None` if no line
    /// is undecided.
    pending: Option<String>,
}

impl PatternScanner {
    pub(crate) fn new(patterns: RegexSet, prompt: &str) -> Self {
        Self {
            patterns,
            echo: EchoFilter::new(prompt),
            line: Vec::new(),
            pending: None,
        }
    }

    /// Scans the next bytes and calls `found` for each line that is now known to match.
    pub(crate) fn feed(&mut self, bytes: &[u8], found: &mut dyn FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let space = LINE_MAX.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(&piece[..piece.len().min(space)]);
            if piece.ends_with(b"\n") {
                self.end_line(found);
            }
        }
    }

    /// Returns whether the output ends with a line that is not terminated yet.
    pub(crate) fn has_open_line(&self) -> bool {
        !self.line.is_empty()
    }

    /// Returns whether the unterminated line matches. One that is equal to a line of the prompt may
    /// be an echo, and does not match before the output ends.
    pub(crate) fn open_line_matches(&self) -> bool {
        let text = String::from_utf8_lossy(&self.line);
        let line = plain(text.trim_end_matches('\r'));
        self.patterns.is_match(&line) && !self.echo.is_prompt_line(&line)
    }

    /// Scans an unterminated last line, and reports a pending match.
    pub(crate) fn finish(&mut self, found: &mut dyn FnMut(&str)) {
        self.end_line(found);
        if self.echo.finish()
            && let Some(line) = self.pending.take()
        {
            found(&line);
        }
    }

    fn end_line(&mut self, found: &mut dyn FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.line);
        let line = plain(text.trim_end_matches(['\r', '\n']));
        let matches = self.patterns.is_match(&line);
        let own = self.echo.is_own_match(&line, matches);
        let undecided = self.echo.is_undecided();
        if own && let Some(earlier) = self.pending.take() {
            found(&earlier);
        }
        if own && matches && !undecided {
            found(&line);
        }
        if matches && undecided {
            self.pending = Some(line.into_owned());
        } else if !undecided {
            self.pending = None;
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines found while the agent runs, and those found by `finish`.
    fn scan(pattern: &str, prompt: &str, pieces: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut scanner = PatternScanner::new(RegexSet::new([pattern]).unwrap(), prompt);
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
    fn a_match_is_reported_as_soon_as_its_line_ends() {
        let (found, none) = (lines(&["All done"]), lines(&[]));
        assert_eq!(
            scan("All done", "go", &["working\nAll ", "done\nmore\n"]),
            (found.clone(), none.clone())
        );
        let colored = ["\x1b[32mAll \x1b[1mdone\x1b[0m\r\n"];
        assert_eq!(
            scan("All done", "go", &colored),
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
    fn an_unterminated_line_matches_unless_the_prompt_contains_it() {
        let open = |prompt: &str, text: &str| {
            let patterns = RegexSet::new(["All done"]).unwrap();
            let mut scanner = PatternScanner::new(patterns, prompt);
            scanner.feed(text.as_bytes(), &mut |line| panic!("{line} has not ended"));
            (scanner.has_open_line(), scanner.open_line_matches())
        };
        assert_eq!(open("go", "well\n\x1b[1mAll done"), (true, true));
        assert_eq!(open("go", "All do"), (true, false));
        assert_eq!(open("go", "well\n"), (false, false));
        assert_eq!(
            open("Print:\nAll done\n", "Print:\nAll done"),
            (true, false)
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
    fn every_matching_line_is_reported_unless_the_prompt_is_echoed() {
        let prompt = "denied b\nother\n";
        let said = "denied a\ndenied b\n\ndenied a\ndenied b\nother\ndenied c";
        let expected = (
            lines(&["denied a", "denied b", "denied a"]),
            lines(&["denied c"]),
        );
        assert_eq!(
            scan("denied", prompt, &[said]),
            expected,
            "the second `denied b` belongs to the echoed prompt"
        );
    }

    #[test]
    fn an_endless_line_is_not_buffered() {
        let mut scanner = PatternScanner::new(RegexSet::new(["never"]).unwrap(), "go");
        for _ in 0..100 {
            scanner.feed(&[b'x'; 10_000], &mut |_| panic!("found"));
        }
        assert!(scanner.line.len() <= LINE_MAX);
        scanner.finish(&mut |_| panic!("found"));
    }
}
