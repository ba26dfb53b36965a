//! Decodes Cursor Agent with `-p --output-format stream-json`.
//!
//! Written from Cursor's documentation; no recording of a run was available. The format resembles
//! Claude Code's, but has separate events for tools, and its result repeats all messages.

use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at, value_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use super::{ActSink, line_counts};
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub(super) struct CursorDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    message: MessageBuffer,
    model: String,
}

impl CursorDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            message: MessageBuffer::default(),
            model: String::new(),
        }
    }

    fn tool_call(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        self.message.clear(emit);
        let id = str_at(event, &["call_id"]);
        // The object has one field, named after the tool.
        let call = event["tool_call"]
            .as_object()
            .into_iter()
            .flatten()
            .find(|(_, call)| call.is_object());
        let Some((kind, call)) = call else { return };
        let (name, input) = match kind.strip_suffix("ToolCall") {
            Some(name) => (name, &call["args"]),
            None => (str_at(call, &["name"]), &call["arguments"]),
        };
        self.tools.start(id, name, input, emit);
        if str_at(event, &["subtype"]) == "completed" {
            let result = &call["result"];
            if result["rejected"].is_object() {
                emit(Act::Denied(
                    format!("{name} {}", self.tools.describe(input)).into(),
                ));
            }
            let exit_code = value_at(result, &["success", "exitCode"]).as_i64();
            let failures = ["error", "rejected", "failure"].map(|key| &result[key]);
            let failure = failures.into_iter().find(|failure| !failure.is_null());
            let lines = line_counts::reported(&result["success"], "linesAdded", "linesRemoved");
            self.tools.set_lines(id, lines);
            if failure.is_none() && exit_code.unwrap_or(0) == 0 {
                self.tools.finish(id, emit);
            } else {
                let failure = failure.unwrap_or(&result["success"]);
                let texts = ["errorMessage", "reason", "message", "stderr"];
                let text = texts.map(|key| str_at(failure, &[key]));
                let text = text.into_iter().find(|text| !text.is_empty());
                self.tools.finish_failed(id, text.unwrap_or_default(), emit);
            }
        }
    }

    fn result(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        self.tools.clear();
        self.message.end_line(emit);
        let usage = &event["usage"];
        let total = Tokens {
            input: u64_at(usage, &["inputTokens"]),
            cache_read: u64_at(usage, &["cacheReadTokens"]),
            cache_write: u64_at(usage, &["cacheWriteTokens"]),
            output: u64_at(usage, &["outputTokens"]),
        };
        self.meter.set_total(&self.model, total, emit);
        if event["is_error"] == true || str_at(event, &["subtype"]) != "success" {
            emit(Act::Failed {
                why: str_at(event, &["result"]).into(),
                reason: None,
            });
        } else {
            emit(Act::Finished(self.message.text().into()));
        }
        emit(Act::RunEnded);
    }
}

impl EventDecoder for CursorDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "system" => {
                if str_at(event, &["subtype"]) == "init" {
                    str_at(event, &["model"]).clone_into(&mut self.model);
                    emit(Act::SessionId(str_at(event, &["session_id"]).into()));
                }
            }
            "user" => {}
            "thinking" => emit(Act::Thinking(str_at(event, &["text"]).into())),
            "assistant" => {
                let blocks = value_at(event, &["message", "content"])
                    .as_array()
                    .into_iter()
                    .flatten();
                let texts: Vec<&str> = blocks.map(|block| str_at(block, &["text"])).collect();
                self.message.clear(emit);
                self.message.complete("message", &texts.concat(), emit);
            }
            "tool_call" => self.tool_call(event, emit),
            "result" => self.result(event, emit),
            _ => return false,
        }
        true
    }

    fn tools(&mut self) -> &mut ToolTracker {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
