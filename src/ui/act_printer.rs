//! Prints an agent's acts line by line: its text, and one line per tool call.

use super::ascii::use_ascii;
use super::gutter::GutterWriter;
use super::markdown::MarkdownWriter;
use super::tool_line::{RunningTools, ToolCall, tool_line};
use super::{TextStyle, adapt, display_width, one_line, rest_text, styled, truncate_to_width};
use crate::engine::Act;
use jiff::Timestamp;

/// Formats acts as lines behind a gutter.
pub(crate) struct ActPrinter {
    text: TextWriter,
    gutter: String,
    /// The number of columns to the right of the gutter.
    width: usize,
    color: bool,
    /// Whether raw output is shown instead of the decoded acts.
    raw: bool,
    /// Whether raw output has been printed. From then on, decoded acts are ignored.
    has_raw_output: bool,
    running_tools: RunningTools,
}

/// Prints an agent's words.
enum TextWriter {
    /// As they are.
    Plain(GutterWriter),
    /// With light Markdown.
    Markdown(MarkdownWriter),
}

impl TextWriter {
    fn set_width(&mut self, width: usize) {
        match self {
            Self::Plain(writer) => writer.set_width(width),
            Self::Markdown(writer) => writer.set_width(width),
        }
    }

    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain(writer) => writer.feed(bytes, out),
            Self::Markdown(writer) => writer.feed(bytes, out),
        }
    }

    fn flush_line(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(writer) => writer.flush(out),
            Self::Markdown(writer) => writer.flush_line(out),
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(writer) => writer.flush(out),
            Self::Markdown(writer) => writer.flush(out),
        }
    }

    fn unfinished(&self) -> Option<String> {
        match self {
            Self::Plain(writer) => writer.unfinished(),
            Self::Markdown(writer) => writer.unfinished(),
        }
    }
}

impl ActPrinter {
    /// Creates a printer whose lines scripts can rely on.
    pub(crate) fn new(gutter: &str, color: bool, raw: bool) -> Self {
        let text = TextWriter::Plain(GutterWriter::new(gutter));
        Self::with_text(text, gutter, color, raw)
    }

    /// Creates a printer for people if there are colors and symbols, else one for scripts.
    pub(crate) fn for_view(gutter: &str, color: bool) -> Self {
        if color && !use_ascii() {
            Self::rich(gutter, false)
        } else {
            Self::new(gutter, color, false)
        }
    }

    /// Creates a printer for a terminal with colors, with light Markdown and compact tool lines.
    pub(super) fn rich(gutter: &str, raw: bool) -> Self {
        if raw {
            return Self::new(gutter, true, raw);
        }
        let text = TextWriter::Markdown(MarkdownWriter::new(gutter));
        Self::with_text(text, gutter, true, raw)
    }

    fn with_text(text: TextWriter, gutter: &str, color: bool, raw: bool) -> Self {
        let gutter = gutter.to_owned();
        Self {
            text,
            gutter,
            width: usize::MAX,
            color,
            raw,
            has_raw_output: false,
            running_tools: RunningTools::default(),
        }
    }

    /// Sets the number of columns to the right of the gutter.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width;
        self.text.set_width(width);
    }

    /// Appends to `out` the lines that `act`, which happens now, completes.
    pub(crate) fn print(&mut self, act: &Act<'_>, out: &mut Vec<u8>) {
        self.print_at(act, None, out);
    }

    /// Appends to `out` the lines that `act` completes. It happened at this time, in milliseconds
    /// since 1970; `None` is the present.
    pub(crate) fn print_at(&mut self, act: &Act<'_>, at_ms: Option<i64>, out: &mut Vec<u8>) {
        let at_ms = || at_ms.unwrap_or_else(|| Timestamp::now().as_millisecond());
        match act {
            Act::RawOutput(bytes) if self.raw => {
                self.has_raw_output = true;
                self.text.feed(bytes, out);
            }
            _ if self.has_raw_output => {}
            Act::Text(text) => self.text.feed(text.as_bytes(), out),
            Act::ToolStarted { name, about } => self.running_tools.start(name, about, at_ms()),
            Act::ToolFinished {
                name,
                about,
                ok,
                error,
                lines,
                ms,
            } => {
                let took_ms = self.running_tools.finish(name, about, at_ms());
                if let TextWriter::Markdown(_) = self.text {
                    let error = (!ok).then_some(&**error);
                    let call = ToolCall {
                        name,
                        about,
                        error,
                        lines: *lines,
                        took_ms: ms.or(took_ms),
                    };
                    let line = tool_line(&call, self.width);
                    self.text.flush_line(out);
                    let row = format!("{}{}\n", self.gutter, line.as_str());
                    out.extend_from_slice(row.as_bytes());
                    return;
                }
                let (mark, style) = if *ok {
                    ("✔", TextStyle::Green)
                } else {
                    ("✘", TextStyle::Red)
                };
                let mut text = one_line(&format!("{name} {about}"));
                if !error.is_empty() {
                    // A long command must not hide why it failed.
                    text = truncate_to_width(text.trim_end(), self.width / 2);
                    text.extend([": ", error]);
                }
                self.row(mark, style, &text, out);
            }
            Act::Retrying(why) => {
                self.row("…", TextStyle::Yellow, &format!("retrying: {why}"), out);
            }
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => {
                let text = rest_text::near_limit(limit, *used, *until_ms, at_ms());
                self.row("!", TextStyle::Yellow, &text, out);
            }
            Act::SideOutput(line) => self.row("·", TextStyle::Dim, line, out),
            Act::Failed { why, .. } => {
                self.running_tools.clear();
                let lines = why.lines().filter(|line| !one_line(line).trim().is_empty());
                lines.for_each(|line| self.row("✘", TextStyle::Red, line, out));
            }
            Act::Finished(_) => self.running_tools.clear(),
            _ => {}
        }
    }

    /// Appends the unfinished last line to `out`, if there is one.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        self.running_tools.clear();
        self.text.flush(out);
    }

    /// Returns the running tool, or else the unfinished line, to show below the printed lines.
    /// `None` if there is neither.
    pub(crate) fn unfinished(&self) -> Option<String> {
        self.running_tools
            .last()
            .map(|tool| format!("▸ {tool}"))
            .or_else(|| self.text.unfinished())
    }

    fn row(&mut self, mark: &str, style: TextStyle, text: &str, out: &mut Vec<u8>) {
        self.text.flush_line(out);
        let text = truncate_to_width(
            &one_line(text),
            self.width.saturating_sub(display_width(mark) + 1),
        );
        let mark = styled(mark, style, self.color);
        out.extend_from_slice(adapt(format!("{}{mark} {text}\n", self.gutter)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: bool, acts: &[Act<'_>]) -> String {
        let mut printer = ActPrinter::new("| ", false, raw);
        printer.set_width(24);
        let mut out = Vec::new();
        for act in acts {
            printer.print(act, &mut out);
        }
        printer.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_printed_and_each_tool_call_is_one_line() {
        let tool = |about: &'static str, ok, error: &'static str| Act::ToolFinished {
            name: "Bash".into(),
            about: about.into(),
            ok,
            error: error.into(),
            lines: None,
            ms: None,
        };
        let acts = [
            Act::Text("I look.".into()),
            Act::ToolStarted {
                name: "Bash".into(),
                about: "ls".into(),
            },
            tool("ls", true, ""),
            tool("cargo test --workspace --all", false, ""),
            tool("cargo test --workspace --all", false, "exit code 1"),
            Act::Thinking("hm".into()),
            Act::Retrying("overloaded".into()),
            Act::SideOutput("a\nwarning".into()),
            Act::Failed {
                why: "no\u{1b}[2J login\n\n \u{1b}[0m\n".into(),
                reason: None,
            },
        ];
        let lines = [
            "| I look.",
            "| ✔ Bash ls",
            "| ✘ Bash cargo test --wor…",
            "| ✘ Bash cargo …: exit co…",
            "| … retrying: overloaded",
            "| · a warning",
            "| ✘ no login",
        ];
        assert_eq!(shown(false, &acts), lines.join("\n") + "\n");
    }

    #[test]
    fn raw_output_replaces_decoded_acts() {
        let acts = [
            Act::RawOutput(b"{\"a\":1}\n".as_slice().into()),
            Act::Text("text".into()),
        ];
        assert_eq!(shown(true, &acts), "| {\"a\":1}\n");
        assert_eq!(shown(false, &acts), "| text\n");
    }
}
