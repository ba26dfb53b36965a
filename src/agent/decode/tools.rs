//! Tracks the tools that an agent is running, and describes each in one short line.

use super::{ActSink, line_counts};
use crate::engine::Act;
use crate::engine::act::ChangedLines;
use crate::engine::plain_text::plain;
use crate::engine::signals::fold_whitespace;
use regex::{Regex, RegexSet};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Maximum length of a tool call's description, in characters.
const ABOUT_MAX: usize = 200;
/// Maximum number of lines of a tool's error that are searched for a denial.
const DENIAL_LINES: usize = 20;
/// The time, level and source with which a program logs a line.
static LOG_PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\d{4}-\d\d-\d\dT\S+\s+[A-Z]+\s+[\w:]+: (?:error=)?").expect("a constant pattern")
});
/// Maximum number of tools tracked at once.
const TOOLS_MAX: usize = 1000;

/// Input fields that describe a tool call best, under the names that different agents use. The
/// first field that is present is used.
const DESCRIPTIVE_FIELDS: [&str; 17] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "skill",
    "description",
    "prompt",
    "title",
    "name",
    "subject",
    "task_id",
];

/// The tools that an agent has started but not finished.
#[derive(Default)]
pub(super) struct ToolTracker {
    workspace: String,
    denials: Option<RegexSet>,
    running: Vec<RunningTool>,
}

struct RunningTool {
    id: String,
    name: String,
    about: String,
    /// The lines that the call changes in files; `None` if that is unknown.
    lines: Option<ChangedLines>,
    /// How long the call took, as the agent reports it; `None` if it does not.
    ms: Option<u64>,
}

impl ToolTracker {
    /// Creates a tracker. Descriptions omit the path in `workspace`. Errors that match `denials`
    /// count as denials.
    pub(super) fn new(workspace: String, denials: Option<RegexSet>) -> Self {
        Self {
            workspace,
            denials,
            running: Vec::new(),
        }
    }

    /// Records that the tool call `id` started with this input.
    pub(super) fn start(&mut self, id: &str, name: &str, input: &Value, emit: &mut ActSink<'_>) {
        let about = self.describe(input);
        self.start_about(id, name, about, emit);
        self.set_lines(id, line_counts::of_input(name, input));
    }

    /// Sets the lines that a running tool call changes, if they are known.
    pub(super) fn set_lines(&mut self, id: &str, lines: Option<ChangedLines>) {
        if let (Some(tool), Some(_)) = (self.running(id), lines) {
            tool.lines = lines;
        }
    }

    /// Sets how long a tool call took, in milliseconds, as the agent reports it.
    pub(super) fn set_duration(&mut self, id: &str, ms: u64) {
        if let Some(tool) = self.running(id) {
            tool.ms = Some(ms);
        }
    }

    fn running(&mut self, id: &str) -> Option<&mut RunningTool> {
        self.running.iter_mut().find(|tool| tool.id == id)
    }

    /// Records that the tool call `id` started, with a description from the caller. A call that is
    /// already running is ignored.
    pub(super) fn start_about(
        &mut self,
        id: &str,
        name: &str,
        about: String,
        emit: &mut ActSink<'_>,
    ) {
        if self.running.iter().any(|tool| tool.id == id) {
            return;
        }
        if self.running.len() == TOOLS_MAX {
            self.running.remove(0);
        }
        emit(Act::ToolStarted {
            name: name.into(),
            about: about.as_str().into(),
        });
        self.running.push(RunningTool {
            id: id.to_owned(),
            name: name.to_owned(),
            about,
            lines: None,
            ms: None,
        });
    }

    /// Records that a tool succeeded. A tool that is not running is ignored.
    pub(super) fn finish(&mut self, id: &str, emit: &mut ActSink<'_>) {
        self.remove(id, true, "", emit);
    }

    /// Records that a tool failed with this error or output, which is not searched for a denial. A
    /// tool that is not running is ignored.
    pub(super) fn finish_failed(&mut self, id: &str, error: &str, emit: &mut ActSink<'_>) {
        self.remove(id, false, error, emit);
    }

    fn remove(&mut self, id: &str, ok: bool, error: &str, emit: &mut ActSink<'_>) {
        if let Some(index) = self.running.iter().position(|tool| tool.id == id) {
            let tool = self.running.remove(index);
            emit(Act::ToolFinished {
                name: tool.name.into(),
                about: tool.about.into(),
                ok,
                error: self.shorten(&first_and_last_line(error)).into(),
                lines: tool.lines.filter(|_| ok),
                ms: tool.ms,
            });
        }
    }

    /// Finishes the tool call whose result was too long to parse: the one whose ID occurs in
    /// `line_prefix`, or else the only one running. The call counts as successful, because its
    /// result is unknown.
    pub(super) fn finish_unread(&mut self, line_prefix: &str, emit: &mut ActSink<'_>) {
        let named = |tool: &&RunningTool| line_prefix.contains(&format!("\"{}\"", tool.id));
        let only = match &self.running[..] {
            [only] => Some(only),
            _ => None,
        };
        if let Some(id) = self
            .running
            .iter()
            .find(named)
            .or(only)
            .map(|tool| tool.id.clone())
        {
            self.finish(&id, emit);
        }
    }

    /// Records that a tool failed with this error. Returns whether the error is a denial, which is
    /// reported.
    pub(super) fn fail(&mut self, id: &str, error: &str, emit: &mut ActSink<'_>) -> bool {
        let denial = self.denial(error).map(str::to_owned);
        if let Some(line) = &denial {
            self.deny(id, line, emit);
        }
        self.finish_failed(id, error, emit);
        denial.is_some()
    }

    /// Reports that a tool was denied: by its name and what it was used on or, if that is unknown,
    /// by the agent's message.
    pub(super) fn deny(&self, id: &str, message: &str, emit: &mut ActSink<'_>) {
        let mut tools = self.running.iter();
        let denied = match tools.find(|tool| tool.id == id && !tool.about.is_empty()) {
            Some(tool) => format!("{} {}", tool.name, tool.about),
            None => message.to_owned(),
        };
        emit(Act::Denied(denied.into()));
    }

    /// Emits the first line of `text` that matches a denial pattern. Returns whether a line
    /// matches.
    pub(super) fn report_denial(&self, text: &str, emit: &mut ActSink<'_>) -> bool {
        let denial = self.denial(text);
        denial.map(|line| emit(Act::Denied(line.into()))).is_some()
    }

    /// Returns the first line of `text` that matches a denial pattern.
    fn denial<'t>(&self, text: &'t str) -> Option<&'t str> {
        let denials = self.denials.as_ref()?;
        let mut lines = text.lines().take(DENIAL_LINES);
        let line = lines.find(|line| denials.is_match(&plain(line)))?;
        Some(
            LOG_PREFIX
                .find(line)
                .map_or(line, |prefix| &line[prefix.end()..]),
        )
    }

    /// Removes all running tools, at the end of a turn.
    pub(super) fn clear(&mut self) {
        self.running.clear();
    }

    /// Returns whether any tool is running.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns a short description of a tool call, taken from its input.
    pub(super) fn describe(&self, input: &Value) -> String {
        let text = match input {
            Value::Object(fields) => DESCRIPTIVE_FIELDS
                .iter()
                .find_map(|name| fields.get(*name))
                .map(value_text),
            other => Some(value_text(other)),
        };
        self.shorten(&text.unwrap_or_default())
    }

    /// Shortens text to one line of at most [`ABOUT_MAX`] characters, without the workspace's path.
    pub(super) fn shorten(&self, text: &str) -> String {
        let text = match self.workspace.as_str() {
            "" | "/" => Cow::Borrowed(text),
            workspace => Cow::Owned(text.replace(&format!("{workspace}/"), "")),
        };
        let line = fold_whitespace(&plain(
            &text.chars().take(4 * ABOUT_MAX).collect::<String>(),
        ));
        match line.char_indices().nth(ABOUT_MAX) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        }
    }
}

/// Returns an error's text, without the lines between the first and the last if there are many: the
/// first says what failed, and the last often says why.
fn first_and_last_line(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    match &lines.collect::<Vec<_>>()[..] {
        [first, _, _, .., last] => format!("{first} … {last}"),
        few => few.join(" "),
    }
}

fn value_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(value_text).collect();
            parts.join(" ").into()
        }
        Value::Null | Value::Object(_) => "".into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_described_by_what_it_works_on() {
        let tools = ToolTracker::new("/home/me/app".into(), None);
        for (input, about) in [
            (
                json!({"command": "cargo test\n --all", "description": "run"}),
                "cargo test --all",
            ),
            (
                json!({"content": "x", "file_path": "/home/me/app/src/a.rs"}),
                "src/a.rs",
            ),
            (json!({"cmd": ["ls", "-l"]}), "ls -l"),
            (json!({"path": "/etc/hosts"}), "/etc/hosts"),
            (json!({"todos": []}), ""),
            (json!("text"), "text"),
            (json!({"command": "\u{1b}[31mred"}), "red"),
        ] {
            assert_eq!(tools.describe(&input), about, "{input}");
        }
        assert_eq!(
            tools
                .describe(&json!({ "command": "é".repeat(999) }))
                .chars()
                .count(),
            ABOUT_MAX + 1
        );
    }

    #[test]
    fn a_tool_starts_once_and_finishes_once() {
        let mut tools = ToolTracker::default();
        let mut acts = Vec::new();
        let mut emit = |act: Act<'_>| acts.push(format!("{act:?}"));
        tools.start("1", "Bash", &json!({"command": "ls"}), &mut emit);
        tools.start("1", "Bash", &json!({"command": "ls"}), &mut emit);
        assert!(tools.is_busy());
        tools.finish("2", &mut emit);
        tools.finish_failed("1", "", &mut emit);
        tools.finish("1", &mut emit);
        assert!(!tools.is_busy());
        assert_eq!(acts.len(), 2, "{acts:?}");
    }

    #[test]
    fn a_failed_tool_says_why_in_one_line() {
        for (error, why) in [
            ("", ""),
            (
                "Exit code 1\ncat: a: No such file\n",
                "Exit code 1 cat: a: No such file",
            ),
            (
                "Exit code 2\na\n\nb\nc\n3 tests failed\n",
                "Exit code 2 … 3 tests failed",
            ),
        ] {
            let mut tools = ToolTracker::default();
            let mut said = None;
            tools.start("1", "Bash", &json!({"command": "ls"}), &mut |_| {});
            tools.finish_failed("1", error, &mut |act| {
                if let Act::ToolFinished { error, .. } = act {
                    said = Some(error.into_owned());
                }
            });
            assert_eq!(said.as_deref(), Some(why));
        }
    }

    #[test]
    fn a_denied_tool_reports_its_denial() {
        let mut tools =
            ToolTracker::new(String::new(), RegexSet::new(["not (granted|allowed)"]).ok());
        let mut acts = Vec::new();
        let mut emit = |act: Act<'_>| acts.push(format!("{act:?}"));
        tools.start("1", "Bash", &json!({"command": "ls"}), &mut emit);
        tools.fail("1", "Error\nls: not allowed here\nnot granted", &mut emit);
        tools.start("2", "Bash", &json!({"command": "ls"}), &mut emit);
        tools.fail("2", "no such file", &mut emit);
        let denied: Vec<_> = acts
            .iter()
            .filter(|act| act.starts_with("Denied"))
            .collect();
        assert_eq!(denied, ["Denied(\"Bash ls\")"], "the action is named");
        assert_eq!(acts.len(), 5, "{acts:?}");
        acts.clear();
        let mut emit = |act: Act<'_>| acts.push(format!("{act:?}"));
        tools.start("3", "Bash", &json!({}), &mut emit);
        tools.fail("3", "not allowed", &mut emit);
        assert_eq!(acts[1], "Denied(\"not allowed\")", "{acts:?}");
        let logged = "2026-11-18T02:10:43.6Z ERROR core::tools::router: error=write not allowed";
        assert_eq!(tools.denial(logged), Some("write not allowed"));
    }
}
