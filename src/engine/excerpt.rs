//! Excerpts: text from other programs and people, shortened for the prompt, with a note of how much
//! was cut.

use super::format::plural;
use super::plain_text::{clean, plain_lines};
use super::signals::defang;

/// Text for the prompt, without control characters and with its tags [defanged](defang).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// A note saying how much was cut, such as `[2 later characters cut]`; empty if nothing was.
    pub(crate) cut: String,
}

impl Excerpt {
    /// Returns an excerpt with the first `max_chars` characters of `text`.
    #[cfg(test)]
    pub(crate) fn head(text: &str, max_chars: usize) -> Self {
        let at = text
            .char_indices()
            .nth(max_chars)
            .map_or(text.len(), |(at, _)| at);
        Self::new(&text[..at], text[at..].chars().count() as u64, "later")
    }

    /// Returns an excerpt with the last `max_chars` characters of a program's output.
    /// `dropped_before` is the number of characters that were cut off when the output was read.
    pub(crate) fn tail(text: &str, max_chars: usize, dropped_before: u64) -> Self {
        let text = clean(text);
        let dropped = text.chars().count().saturating_sub(max_chars);
        let at = text
            .char_indices()
            .nth(dropped)
            .map_or(text.len(), |(at, _)| at);
        Self::new(&text[at..], dropped as u64 + dropped_before, "earlier")
    }

    /// Wraps a text from which `dropped` characters have already been cut. `which` is `earlier` or
    /// `later`, the place of the cut characters.
    pub(crate) fn new(text: &str, dropped: u64, which: &str) -> Self {
        let cut = match dropped {
            0 => String::new(),
            count => format!("[{} cut]", plural(count, &format!("{which} character"))),
        };
        Self {
            text: defang(&plain_lines(text)),
            cut,
        }
    }

    /// Returns the text in a code fence that is longer than any run of backticks in the text.
    pub(crate) fn fenced(&self, language: &str) -> String {
        let longest = self
            .text
            .split(|c| c != '`')
            .map(str::len)
            .max()
            .unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        format!(
            "{fence}{language}\n{}\n{fence}",
            self.text.trim_end_matches('\n')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_keeps_its_head_and_a_log_its_tail() {
        assert_eq!(
            Excerpt::head("abcdef", 4),
            Excerpt {
                text: "abcd".into(),
                cut: "[2 later characters cut]".into()
            }
        );
        assert_eq!(
            Excerpt::tail("abcdef", 4, 0),
            Excerpt {
                text: "cdef".into(),
                cut: "[2 earlier characters cut]".into()
            }
        );
        assert_eq!(
            Excerpt::tail("abcd", 4, 7).cut,
            "[7 earlier characters cut]"
        );
        assert_eq!(
            Excerpt::tail("abcde", 4, 7).cut,
            "[8 earlier characters cut]"
        );
        assert_eq!(Excerpt::head("abcd", 4).cut, "");
        assert_eq!(Excerpt::head("abcde", 4).cut, "[1 later character cut]");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(Excerpt::head("aé日🙂z", 4).text, "aé日🙂");
        assert_eq!(Excerpt::tail("aé日🙂z", 2, 0).text, "🙂z");
    }

    #[test]
    fn an_excerpt_has_no_control_characters() {
        let output = "\x1b[31mred\x1b[0m\0\n 10%\r 90%\r100%\r\nend";
        assert_eq!(Excerpt::tail(output, 99, 0).text, "red\n100%\nend");
        assert_eq!(Excerpt::tail(output, 8, 0).text, "100%\nend");
        assert_eq!(Excerpt::head("+a\rb\r\n+\x1b[1mé", 99).text, "+ab\n+é");
    }

    #[test]
    fn the_content_cannot_close_the_fence() {
        assert_eq!(Excerpt::head("x\n", 9).fenced("diff"), "```diff\nx\n```");
        assert_eq!(
            Excerpt::head("a ```` b", 9).fenced(""),
            "`````\na ```` b\n`````"
        );
        assert_eq!(Excerpt::head("`", 9).fenced(""), "```\n`\n```");
    }

    #[test]
    fn an_excerpt_contains_no_signal() {
        assert_eq!(
            Excerpt::head("<promise>X</Promise>", 99).text,
            "‹promise›X‹/Promise›"
        );
    }
}
