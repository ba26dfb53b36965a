//! Formats an agent's tool calls as compact lines: an icon, the file or command, and the duration.

use super::{StyledText, TextStyle, display_width, one_line, truncate_to_width};
use crate::engine::format::duration;
use std::time::{Duration, Instant};

/// Maximum number of tools whose start is remembered.
const RUNNING_MAX: usize = 100;

/// The shortest duration that is shown.
const MIN_DURATION: Duration = Duration::from_millis(100);

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

/// The tool calls that have started and not ended, with their start.
#[derive(Default)]
pub(super) struct RunningTools(Vec<(String, Instant)>);

impl RunningTools {
    pub(super) fn start(&mut self, name: &str, about: &str) {
        if self.0.len() < RUNNING_MAX {
            self.0.push((call(name, about), Instant::now()));
        }
    }

    /// Removes a tool call, and returns how long it took; `None` if its start is unknown. Then
    /// nothing is known about the other calls either.
    pub(super) fn finish(&mut self, name: &str, about: &str) -> Option<Duration> {
        let call = call(name, about);
        let at = self.0.iter().position(|(running, _)| *running == call);
        let took = at.map(|at| self.0.remove(at).1.elapsed());
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
    /// `None` if it is unknown.
    pub(super) took: Option<Duration>,
}

/// Formats a tool call in at most `width` columns: `✎ Edit src/a.rs  0.4s`.
pub(super) fn tool_line(call: &ToolCall<'_>, width: usize) -> StyledText {
    let took = call.took.filter(|took| *took >= MIN_DURATION);
    let took = took.map(|took| format!("  {}", duration(took.as_millis() as u64)));
    let took = took.unwrap_or_default();
    let (name, mut about) = (one_line(call.name), one_line(call.about));
    let mut line = StyledText::new(true);
    match call.error {
        None => line.push_styled(icon(&name), TextStyle::Green),
        Some(_) => line.push_styled("✘", TextStyle::Red),
    };
    line.push(" ").push_styled(&name, TextStyle::Dim);
    let mut left = width.saturating_sub(display_width(&name) + 3 + took.len());
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
        let took = Some(Duration::from_millis(ms));
        let line = tool_line(
            &ToolCall {
                name,
                about,
                error,
                took,
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
            "✎ Edit src/a.rs  412ms"
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
        running.start("Bash", "one");
        running.start("Bash", "two");
        assert!(running.finish("Bash", "one").is_some());
        assert_eq!(running.last(), Some("Bash two"));
        assert!(running.finish("Bash", "three").is_none());
        assert_eq!(running.last(), None);
    }
}
