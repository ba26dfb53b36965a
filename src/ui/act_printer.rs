//! What an agent does, line by line: its words as text, and one line for each tool that it used.

use super::text_stream::Stream;
use super::{Paint, columns, fit, one_line, paint, rest_text};
use crate::engine::Act;
use jiff::Timestamp;

/// Turns acts into lines behind a gutter.
pub struct Deeds {
    words: Stream,
    gutter: String,
    /// The columns beside the gutter.
    room: usize,
    colour: bool,
    /// Whether its stream is shown as it is.
    raw: bool,
    /// Whether there is a stream that is shown so.
    streams: bool,
    /// The tool that is at work.
    doing: Option<String>,
}

impl Deeds {
    /// Lines behind this gutter.
    pub fn new(gutter: &str, colour: bool, raw: bool) -> Self {
        let (words, gutter) = (Stream::new(gutter), gutter.to_owned());
        Self {
            words,
            gutter,
            room: usize::MAX,
            colour,
            raw,
            streams: false,
            doing: None,
        }
    }

    /// Keeps lines to so many columns.
    pub fn wrap(&mut self, room: usize) {
        self.room = room;
        self.words.wrap(room);
    }

    /// Takes an act; appends the lines that are complete by now.
    pub fn act(&mut self, act: &Act<'_>, out: &mut Vec<u8>) {
        match act {
            Act::Raw(bytes) if self.raw => {
                self.streams = true;
                self.words.feed(bytes, out);
            }
            _ if self.streams => {}
            Act::Said(text) => self.words.feed(text.as_bytes(), out),
            Act::BeganTool { name, about } => self.doing = Some(format!("{name} {about}")),
            Act::UsedTool { name, about, ok } => {
                self.doing = None;
                let (mark, colour) = if *ok {
                    ("✔", Paint::Green)
                } else {
                    ("✘", Paint::Red)
                };
                self.row(mark, colour, &format!("{name} {about}"), out);
            }
            Act::Retrying(why) => {
                self.row("…", Paint::Yellow, &format!("trying again: {why}"), out)
            }
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => {
                let words =
                    rest_text::near(limit, *used, *until_ms, Timestamp::now().as_millisecond());
                self.row("!", Paint::Yellow, &words, out);
            }
            Act::Noise(line) => self.row("·", Paint::Dim, line, out),
            Act::Failed { why, .. } => {
                self.doing = None;
                let lines = why.lines().filter(|line| !one_line(line).trim().is_empty());
                lines.for_each(|line| self.row("✘", Paint::Red, line, out));
            }
            Act::Finished(_) => self.doing = None,
            _ => {}
        }
    }

    /// Appends what is left of a line that never ended.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.doing = None;
        self.words.flush(out);
    }

    /// What has not ended yet: the tool that is at work, or a line.
    pub fn unfinished(&self) -> Option<String> {
        self.doing
            .as_deref()
            .map(|doing| format!("▸ {}", one_line(doing)))
            .or_else(|| self.words.unfinished())
    }

    fn row(&mut self, mark: &str, colour: Paint, words: &str, out: &mut Vec<u8>) {
        self.words.flush(out);
        let words = fit(
            &one_line(words),
            self.room.saturating_sub(columns(mark) + 1),
        );
        let mark = paint(mark, colour, self.colour);
        out.extend_from_slice(format!("{}{mark} {words}\n", self.gutter).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: bool, acts: &[Act<'_>]) -> String {
        let mut deeds = Deeds::new("| ", false, raw);
        deeds.wrap(24);
        let mut out = Vec::new();
        for act in acts {
            deeds.act(act, &mut out);
        }
        deeds.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_text_and_each_tool_is_a_line() {
        let tool = |about: &'static str, ok| Act::UsedTool {
            name: "Bash".into(),
            about: about.into(),
            ok,
        };
        let acts = [
            Act::Said("I look.".into()),
            Act::BeganTool {
                name: "Bash".into(),
                about: "ls".into(),
            },
            tool("ls", true),
            tool("cargo test --workspace --all", false),
            Act::Thought("hm".into()),
            Act::Retrying("overloaded".into()),
            Act::Noise("a\nwarning".into()),
            Act::Failed {
                why: "no\u{1b}[2J login\n\n \u{1b}[0m\n".into(),
                reason: None,
            },
        ];
        let lines = [
            "| I look.",
            "| ✔ Bash ls",
            "| ✘ Bash cargo test --wor…",
            "| … trying again: overloa…",
            "| · a warning",
            "| ✘ no login",
        ];
        assert_eq!(shown(false, &acts), lines.join("\n") + "\n");
    }

    #[test]
    fn a_raw_stream_is_shown_as_it_is() {
        let acts = [
            Act::Raw(b"{\"a\":1}\n".as_slice().into()),
            Act::Said("words".into()),
        ];
        assert_eq!(shown(true, &acts), "| {\"a\":1}\n");
        assert_eq!(shown(false, &acts), "| words\n");
    }
}
