//! What is known of an agent's tools: which are at work, and what each is about in a few words.

use super::Tell;
use crate::engine::Act;
use crate::engine::plain_text::plain;
use crate::engine::signals::fold;
use regex::RegexSet;
use serde_json::Value;
use std::borrow::Cow;

/// More words than this do not fit beside a tool's name.
const ABOUT_MAX: usize = 200;
/// What was not allowed stands near the beginning of a tool's error.
const DENIAL_LINES: usize = 20;
/// More tools than these are not at work at once.
const TOOLS_MAX: usize = 1000;

/// What says most about a tool's work, by the names that agents have for it. The first that is there is told.
const TELLING: [&str; 17] = [
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

/// The tools that an agent has begun to use.
#[derive(Default)]
pub struct Tools {
    workspace: String,
    denials: Option<RegexSet>,
    at_work: Vec<Tool>,
}

struct Tool {
    id: String,
    name: String,
    about: String,
}

impl Tools {
    /// None yet. Paths in the workspace are told without it; denials look like this.
    pub fn of(workspace: String, denials: Option<RegexSet>) -> Self {
        Self {
            workspace,
            denials,
            at_work: Vec::new(),
        }
    }

    /// A tool is at work with this input.
    pub fn begin(&mut self, id: &str, name: &str, input: &Value, tell: &mut Tell<'_>) {
        let about = self.about(input);
        self.begin_about(id, name, about, tell);
    }

    /// A tool is at work on this.
    pub fn begin_about(&mut self, id: &str, name: &str, about: String, tell: &mut Tell<'_>) {
        if self.at_work.iter().any(|tool| tool.id == id) {
            return;
        }
        if self.at_work.len() == TOOLS_MAX {
            self.at_work.remove(0);
        }
        tell(Act::BeganTool {
            name: name.into(),
            about: about.as_str().into(),
        });
        self.at_work.push(Tool {
            id: id.to_owned(),
            name: name.to_owned(),
            about,
        });
    }

    /// A tool is done. One that nobody saw begin is no news.
    pub fn end(&mut self, id: &str, ok: bool, tell: &mut Tell<'_>) {
        if let Some(at) = self.at_work.iter().position(|tool| tool.id == id) {
            let Tool { name, about, .. } = self.at_work.remove(at);
            tell(Act::UsedTool {
                name: name.into(),
                about: about.into(),
                ok,
            });
        }
    }

    /// A line was too long to be read, and this is how it began: the result of the tool that it names, or of the only
    /// one at work. Nothing says that it failed.
    pub fn end_unread(&mut self, head: &str, tell: &mut Tell<'_>) {
        let named = |tool: &&Tool| head.contains(&format!("\"{}\"", tool.id));
        let only = match &self.at_work[..] {
            [only] => Some(only),
            _ => None,
        };
        if let Some(id) = self
            .at_work
            .iter()
            .find(named)
            .or(only)
            .map(|tool| tool.id.clone())
        {
            self.end(&id, true, tell);
        }
    }

    /// A tool failed, in the agent's own words for that.
    pub fn fail(&mut self, id: &str, why: &str, tell: &mut Tell<'_>) {
        self.denied(why, tell);
        self.end(id, false, tell);
    }

    /// Tells of a denial, if these words are one.
    pub fn denied(&self, words: &str, tell: &mut Tell<'_>) -> bool {
        let Some(denials) = &self.denials else {
            return false;
        };
        let mut lines = words.lines().take(DENIAL_LINES).map(plain);
        let denial = lines.find(|line| denials.is_match(line));
        denial
            .inspect(|line| tell(Act::Denied(line.as_ref().into())))
            .is_some()
    }

    /// Nothing is at work any more.
    pub fn forget(&mut self) {
        self.at_work.clear();
    }

    /// Whether any is at work.
    pub fn is_busy(&self) -> bool {
        !self.at_work.is_empty()
    }

    /// What a tool's input is about.
    pub fn about(&self, input: &Value) -> String {
        let said = match input {
            Value::Object(fields) => TELLING.iter().find_map(|name| fields.get(*name)).map(words),
            other => Some(words(other)),
        };
        self.short(&said.unwrap_or_default())
    }

    /// In one line, not too long, and without the workspace's own path.
    pub fn short(&self, text: &str) -> String {
        let text = match self.workspace.as_str() {
            "" | "/" => Cow::Borrowed(text),
            workspace => Cow::Owned(text.replace(&format!("{workspace}/"), "")),
        };
        let line = fold(&plain(
            &text.chars().take(4 * ABOUT_MAX).collect::<String>(),
        ));
        match line.char_indices().nth(ABOUT_MAX) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        }
    }
}

fn words(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Array(parts) => parts.iter().map(words).collect::<Vec<_>>().join(" ").into(),
        Value::Null | Value::Object(_) => "".into(),
        other => other.to_string().into(),
    }
}

/// The text at a path of fields; empty where there is none.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The number at a path of fields; 0 where there is none.
pub fn count(value: &Value, path: &[&str]) -> u64 {
    let value = at(value, path);
    // Some agents count in floating point.
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|count| count as u64))
        .unwrap_or(0)
}

/// What stands at a path of fields.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, field| &value[*field])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_told_by_what_it_works_on() {
        let tools = Tools::of("/home/me/app".into(), None);
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
            (json!("words"), "words"),
            (json!({"command": "\u{1b}[31mred"}), "red"),
        ] {
            assert_eq!(tools.about(&input), about, "{input}");
        }
        assert_eq!(
            tools
                .about(&json!({ "command": "é".repeat(999) }))
                .chars()
                .count(),
            ABOUT_MAX + 1
        );
    }

    #[test]
    fn a_tool_begins_once_and_ends_once() {
        let mut tools = Tools::default();
        let mut told = Vec::new();
        let mut tell = |act: Act<'_>| told.push(format!("{act:?}"));
        tools.begin("1", "Bash", &json!({"command": "ls"}), &mut tell);
        tools.begin("1", "Bash", &json!({"command": "ls"}), &mut tell);
        assert!(tools.is_busy());
        tools.end("2", true, &mut tell);
        tools.end("1", false, &mut tell);
        tools.end("1", true, &mut tell);
        assert!(!tools.is_busy());
        assert_eq!(told.len(), 2, "{told:?}");
    }

    #[test]
    fn a_tool_that_was_not_allowed_says_so() {
        let mut tools = Tools::of(String::new(), RegexSet::new(["not (granted|allowed)"]).ok());
        let mut told = Vec::new();
        let mut tell = |act: Act<'_>| told.push(format!("{act:?}"));
        tools.begin("1", "Bash", &json!({"command": "ls"}), &mut tell);
        tools.fail("1", "Error\nls: not allowed here\nnot granted", &mut tell);
        tools.begin("2", "Bash", &json!({"command": "ls"}), &mut tell);
        tools.fail("2", "no such file", &mut tell);
        let denied: Vec<_> = told
            .iter()
            .filter(|act| act.starts_with("Denied"))
            .collect();
        assert_eq!(denied, ["Denied(\"ls: not allowed here\")"]);
        assert_eq!(told.len(), 5, "{told:?}");
    }
}
