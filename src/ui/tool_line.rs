//! Formats an agent's tool calls as compact lines: an icon, the file or command, the lines that
//! changed, and the duration.

use super::{StyledText, TextStyle, display_width, one_line, truncate_to_width};
use crate::engine::act::ChangedLines;
use crate::engine::format::duration;

/// Maximum number of tools whose start is remembered.
const RUNNING_MAX: usize = 100;

/// The shortest duration that is shown.
const MIN_DURATION_MS: u64 = 100;

/// The icons of tools, by parts of their names. The first that matches counts.
const ICONS: [(&str, &[&str]); 5] = [
    (
        "✎",
        &["edit", "write", "patch", "replace", "create", "notebook"],
    ),
    ("/", &["grep", "glob", "search", "find", "ls", "list"]),
    ("≡", &["read", "view", "open", "cat"]),
    (
        "$",
        &["bash", "shell", "exec", "command", "terminal", "run", "sh"],
    ),
    ("@", &["fetch", "web", "http", "browser", "url"]),
];

/// The tool calls that have started and not ended, with their start in milliseconds since 1970.
#[derive(Default)]
pub(super) struct RunningTools(Vec<(String, i64)>);

impl RunningTools {
    pub(super) fn start(&mut self, name: &str, about: &str, at_ms: i64) {
        if self.0.len() < RUNNING_MAX {
            self.0.push((call(name, about), at_ms));
        }
    }

    /// Removes a tool call, and returns how many milliseconds it took; `None` if its start is
    /// unknown. Then nothing is known about the other calls either.
    pub(super) fn finish(&mut self, name: &str, about: &str, at_ms: i64) -> Option<u64> {
        let call = call(name, about);
        let at = self.0.iter().position(|(running, _)| *running == call);
        let took = at.map(|at| at_ms.saturating_sub(self.0.remove(at).1).max(0) as u64);
        if took.is_none() {
            self.0.clear();
        }
        took
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the tool that was started last and is still running.
    pub(super) fn last(&self) -> Option<&str> {
        self.0.last().map(|(call, _)| call.as_str())
    }
}

/// A tool call that has ended.
pub(super) struct ToolCall<'a> {
    pub(super) name: &'a str,
    pub(super) about: &'a str,
    /// Why the tool failed; `None` if it succeeded.
    pub(super) error: Option<&'a str>,
    /// The lines that the call changed in files; `None` if that is unknown.
    pub(super) lines: Option<ChangedLines>,
    /// How many milliseconds it took; `None` if that is unknown.
    pub(super) took_ms: Option<u64>,
}

/// Formats how many lines a tool call changed: `+12 −3`. A count of zero is left out.
pub(super) fn line_counts(lines: ChangedLines) -> [(String, TextStyle); 2] {
    let text = |sign: char, count: u32| match count {
        0 => String::new(),
        count => format!(" {sign}{count}"),
    };
    [
        (text('+', lines.added), TextStyle::Green),
        (text('−', lines.removed), TextStyle::Red),
    ]
}

/// Formats a tool call in at most `width` columns: `✎ Edit src/a.rs +12 −3  0.4s`.
pub(super) fn tool_line(call: &ToolCall<'_>, width: usize) -> StyledText {
    let took = call.took_ms.filter(|took| *took >= MIN_DURATION_MS);
    let took = took.map(|took| format!("  {}", duration(took)));
    let took = took.unwrap_or_default();
    let lines = line_counts(call.lines.unwrap_or_default());
    let lines_width: usize = lines.iter().map(|(text, _)| display_width(text)).sum();
    let (name, mut about) = (one_line(call.name), one_line(call.about));
    let mut line = StyledText::new(true);
    match call.error {
        None => line.push_styled(icon(&name), TextStyle::Green),
        Some(_) => line.push_styled("✘", TextStyle::Red),
    };
    line.push(" ").push_styled(&name, TextStyle::Dim);
    let mut left = width.saturating_sub(display_width(&name) + 3 + lines_width + took.len());
    let error = call.error.map(one_line).filter(|error| !error.is_empty());
    if error.is_some() {
        // A long command must not hide why it failed.
        about = truncate_to_width(&about, left / 2);
    }
    let about = truncate_to_width(about.trim_end(), left);
    if !about.is_empty() {
        line.push(" ").push(&about);
    }
    left = left.saturating_sub(display_width(&about));
    if let Some(error) = error.filter(|_| left > 8) {
        line.push_styled(
            &format!(": {}", truncate_to_width(&error, left - 2)),
            TextStyle::Red,
        );
    }
    for (text, style) in lines {
        line.push_styled(&text, style);
    }
    line.push_styled(&took, TextStyle::Dim);
    line
}

fn call(name: &str, about: &str) -> String {
    one_line(&format!("{name} {about}"))
}

fn icon(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let icon = ICONS
        .iter()
        .find(|(_, parts)| parts.iter().any(|part| name.contains(part)));
    icon.map_or("•", |(icon, _)| icon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plain_text::plain;

    fn line(name: &str, about: &str, error: Option<&str>, ms: u64) -> String {
        let lines = (name == "Edit").then_some(ChangedLines {
            added: 12,
            removed: u32::from(about.len() < 9),
        });
        let line = tool_line(
            &ToolCall {
                name,
                about,
                error,
                lines,
                took_ms: Some(ms),
            },
            30,
        );
        assert!(line.columns() <= 30);
        plain(line.as_str()).into_owned()
    }

    #[test]
    fn a_tool_call_is_one_line() {
        assert_eq!(
            line("Edit", "src/a.rs", None, 412),
            "✎ Edit src/a.rs +12 −1  412ms"
        );
        assert_eq!(
            line("Edit", "src/engine/decide/mod.rs", None, 0),
            "✎ Edit src/engine/decide/… +12"
        );
        assert_eq!(line("Bash", "ls", None, 2), "$ Bash ls");
        assert_eq!(line("Read", "a\nb", None, 0), "≡ Read a b");
        assert_eq!(line("Grep", "TODO", None, 0), "/ Grep TODO");
        assert_eq!(
            line("WebFetch", "https://x", None, 0),
            "@ WebFetch https://x"
        );
        assert_eq!(line("Task", "", None, 0), "• Task");
        assert_eq!(
            line(
                "Bash",
                "cargo test --workspace --all",
                Some("exit code 1"),
                1500
            ),
            "✘ Bash cargo t…: exit c…  1.5s"
        );
        assert_eq!(line("Bash", "true", Some(""), 0), "✘ Bash true");
    }

    #[test]
    fn calls_of_the_same_tool_are_told_apart() {
        let mut running = RunningTools::default();
        running.start("Bash", "one", 10);
        running.start("Bash", "two", 20);
        assert_eq!(running.finish("Bash", "one", 25), Some(15));
        assert_eq!(running.last(), Some("Bash two"));
        assert!(running.finish("Bash", "three", 30).is_none());
        assert_eq!(running.last(), None);
    }
}
