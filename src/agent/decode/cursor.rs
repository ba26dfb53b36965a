//! Cursor agent's `stream-json`, from its documentation only: no run of it was seen. A cousin of Claude Code's whose
//! tools have events of their own, and whose result repeats all that was said.

use super::Tell;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, at, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub struct Cursor {
    tools: Tools,
    meter: Meter,
    message: Message,
    model: String,
}

impl Cursor {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            meter: Meter::default(),
            message: Message::default(),
            model: String::new(),
        }
    }

    fn tool_call(&mut self, event: &Value, tell: &mut Tell<'_>) {
        self.message.forget(tell);
        let id = text(event, &["call_id"]);
        // One field, whose name is the tool's.
        let call = event["tool_call"]
            .as_object()
            .into_iter()
            .flatten()
            .find(|(_, call)| call.is_object());
        let Some((kind, call)) = call else { return };
        let (name, input) = match kind.strip_suffix("ToolCall") {
            Some(name) => (name, &call["args"]),
            None => (text(call, &["name"]), &call["arguments"]),
        };
        self.tools.begin(id, name, input, tell);
        if text(event, &["subtype"]) == "completed" {
            let result = &call["result"];
            if result["rejected"].is_object() {
                tell(Act::Denied(
                    format!("{name} {}", self.tools.about(input)).into(),
                ));
            }
            let exit = at(result, &["success", "exitCode"]).as_i64();
            let ok = result["error"].is_null()
                && result["rejected"].is_null()
                && result["failure"].is_null();
            self.tools.end(id, ok && exit.unwrap_or(0) == 0, tell);
        }
    }

    fn result(&mut self, event: &Value, tell: &mut Tell<'_>) {
        self.tools.forget();
        self.message.end(tell);
        let usage = &event["usage"];
        let all = Tokens {
            input: count(usage, &["inputTokens"]),
            cache_read: count(usage, &["cacheReadTokens"]),
            cache_write: count(usage, &["cacheWriteTokens"]),
            output: count(usage, &["outputTokens"]),
        };
        self.meter.of_all(&self.model, all, tell);
        if event["is_error"] == true || text(event, &["subtype"]) != "success" {
            tell(Act::Failed {
                why: text(event, &["result"]).into(),
                reason: None,
            });
        } else {
            tell(Act::Finished(self.message.text().into()));
        }
        tell(Act::Over);
    }
}

impl Speech for Cursor {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "system" => {
                if text(event, &["subtype"]) == "init" {
                    text(event, &["model"]).clone_into(&mut self.model);
                    tell(Act::Session(text(event, &["session_id"]).into()));
                }
            }
            "user" => {}
            "thinking" => tell(Act::Thought(text(event, &["text"]).into())),
            "assistant" => {
                let blocks = at(event, &["message", "content"])
                    .as_array()
                    .into_iter()
                    .flatten();
                let words: Vec<&str> = blocks.map(|block| text(block, &["text"])).collect();
                self.message.forget(tell);
                self.message.whole("message", &words.concat(), tell);
            }
            "tool_call" => self.tool_call(event, tell),
            "result" => self.result(event, tell),
            _ => return false,
        }
        true
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
