//! Turns an agent's acts into a bounded number of rows, each with an ID under which it can be sent
//! again when it changes.

use crate::engine::Act;
use crate::engine::plain_text::clean;
use crate::store::activity::ActivityItem;
use crate::ui::rest_text;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Rows that are kept; older ones are dropped.
pub(super) const ROWS_MAX: usize = 400;
/// A text that is longer, in bytes, continues in a new row.
const TEXT_MAX: usize = 8 << 10;

/// The rows of one iteration.
#[derive(Default)]
pub(super) struct ActivityRows {
    rows: VecDeque<ActivityEntry>,
    last_id: u64,
    /// Number of acts and rows that are missing.
    dropped: u64,
}

struct ActivityEntry {
    id: u64,
    kind: &'static str,
    at_ms: i64,
    text: String,
    /// The tool's target.
    about: String,
    error: String,
    /// How long the tool ran; `None` while it runs.
    ms: Option<i64>,
    ok: Option<bool>,
    is_changed: bool,
}

impl ActivityRows {
    pub(super) fn add(&mut self, item: ActivityItem) {
        match item {
            ActivityItem::Act { at_ms, act } => self.add_act(at_ms, act),
            ActivityItem::Dropped(count) => self.dropped += count,
        }
    }

    fn add_act(&mut self, at_ms: i64, act: Act<'static>) {
        match act {
            Act::Text(text) => self.add_text("text", at_ms, &text),
            Act::Thinking(text) => self.add_text("thinking", at_ms, &text),
            Act::SideOutput(text) => self.add_text("side", at_ms, &format!("{text}\n")),
            Act::ToolStarted { name, about } => {
                let row = self.push("tool", at_ms, &name);
                row.about = about.into_owned();
            }
            Act::ToolFinished {
                name,
                about,
                ok,
                error,
                ..
            } => self.finish_tool(at_ms, &name, &about, ok, &error),
            Act::Denied(text) => drop(self.push("denied", at_ms, &text)),
            Act::Retrying(text) => drop(self.push("retry", at_ms, &text)),
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => {
                let text = rest_text::near_limit(&limit, used, until_ms, at_ms);
                self.push("limit", at_ms, &text);
            }
            Act::Finished(text) if !self.ends_with(&text) => drop(self.push("text", at_ms, &text)),
            Act::Failed { why, .. } => drop(self.push("failed", at_ms, &why)),
            _ => {}
        }
    }

    /// Returns whether the agent's last text is this one: many agents repeat it at the end.
    fn ends_with(&self, text: &str) -> bool {
        let last = self.rows.iter().rev().find(|row| row.kind == "text");
        text.trim().is_empty() || last.is_some_and(|row| row.text.trim().ends_with(text.trim()))
    }

    fn add_text(&mut self, kind: &'static str, at_ms: i64, text: &str) {
        let open = self.rows.back_mut();
        match open.filter(|row| row.kind == kind && row.text.len() < TEXT_MAX) {
            Some(row) => {
                row.text.push_str(text);
                row.is_changed = true;
            }
            None => drop(self.push(kind, at_ms, text)),
        }
    }

    fn finish_tool(&mut self, at_ms: i64, name: &str, about: &str, ok: bool, error: &str) {
        let mut newest = self.rows.iter_mut().rev();
        let is_it = |row: &&mut ActivityEntry| {
            row.kind == "tool" && row.ok.is_none() && row.text == name && row.about == about
        };
        let row = match newest.find(is_it) {
            Some(row) => {
                row.ms = Some(at_ms - row.at_ms);
                row
            }
            None => self.push("tool", at_ms, name),
        };
        about.clone_into(&mut row.about);
        row.ok = Some(ok);
        error.clone_into(&mut row.error);
        row.is_changed = true;
    }

    fn push(&mut self, kind: &'static str, at_ms: i64, text: &str) -> &mut ActivityEntry {
        if self.rows.len() == ROWS_MAX {
            self.rows.pop_front();
            self.dropped += 1;
        }
        self.last_id += 1;
        self.rows.push_back(ActivityEntry {
            id: self.last_id,
            kind,
            at_ms,
            text: text.to_owned(),
            about: String::new(),
            error: String::new(),
            ms: None,
            ok: None,
            is_changed: true,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the rows that are new or changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<Value> {
        let changed = self.rows.iter_mut().filter(|row| row.is_changed);
        changed
            .map(|row| {
                row.is_changed = false;
                row.json()
            })
            .collect()
    }
}

impl ActivityEntry {
    fn json(&self) -> Value {
        let mut object = json!({
            "id": self.id,
            "kind": self.kind,
            "at_ms": self.at_ms,
            "text": clean(&self.text),
        });
        if self.kind == "tool" {
            object["about"] = json!(clean(&self.about));
            object["ok"] = json!(self.ok);
            object["ms"] = json!(self.ms);
            object["error"] = json!(clean(&self.error));
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(act: Act<'static>) -> ActivityItem {
        ActivityItem::Act { at_ms: 5, act }
    }

    #[test]
    fn pieces_of_text_are_one_row_and_a_tool_call_changes_its_row() {
        let mut rows = ActivityRows::default();
        rows.add(act(Act::Text("\u{1b}[3".into())));
        assert_eq!(rows.take_changed().len(), 1);
        rows.add(act(Act::Text("1mred".into())));
        let (name, about) = ("Bash".into(), "ls".into());
        rows.add(act(Act::ToolStarted { name, about }));
        let changed = rows.take_changed();
        assert_eq!(changed[0]["text"], "red");
        assert_eq!(changed[1]["ok"], Value::Null);
        rows.add(ActivityItem::Act {
            at_ms: 12,
            act: Act::ToolFinished {
                name: "Bash".into(),
                about: "ls".into(),
                ok: false,
                error: "exit code 2".into(),
                lines: None,
                ms: None,
            },
        });
        let changed = rows.take_changed();
        assert_eq!(
            (&changed[0]["id"], &changed[0]["ms"]),
            (&json!(2), &json!(7))
        );
        rows.add(act(Act::Finished("red".into())));
        assert!(rows.take_changed().is_empty());
    }

    #[test]
    fn only_the_newest_rows_are_kept() {
        let mut rows = ActivityRows::default();
        for _ in 0..ROWS_MAX + 5 {
            rows.add(act(Act::Retrying("busy".into())));
        }
        assert_eq!((rows.take_changed().len(), rows.dropped()), (ROWS_MAX, 5));
    }
}
