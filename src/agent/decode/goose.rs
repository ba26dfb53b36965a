//! Decodes goose with `run --output-format stream-json`.
//!
//! Written from goose's documentation; no recording of a run was available.

use super::ActSink;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, value_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use crate::engine::Act;
use serde_json::Value;

pub(super) struct GooseDecoder {
    tools: ToolTracker,
    message: MessageBuffer,
    failed: bool,
}

impl GooseDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            message: MessageBuffer::default(),
            failed: false,
        }
    }

    fn message(&mut self, message: &Value, emit: &mut ActSink<'_>) {
        let own = str_at(message, &["role"]) == "assistant";
        for block in message["content"].as_array().into_iter().flatten() {
            let id = str_at(block, &["id"]);
            match str_at(block, &["type"]) {
                "text" if own => {
                    let text = str_at(block, &["text"]);
                    self.message.append(str_at(message, &["id"]), text, emit);
                }
                "thinking" if own => emit(Act::Thinking(str_at(block, &["thinking"]).into())),
                "toolRequest" => {
                    self.message.clear(emit);
                    let call = value_at(block, &["toolCall", "value"]);
                    self.tools
                        .start(id, str_at(call, &["name"]), &call["arguments"], emit);
                }
                "toolResponse" => {
                    let result = &block["toolResult"];
                    let ok = str_at(result, &["status"]) != "error"
                        && value_at(result, &["value", "isError"]) != true;
                    if ok {
                        self.tools.finish(id, emit);
                    } else {
                        self.tools.fail(id, str_at(result, &["error"]), emit);
                    }
                }
                _ => {}
            }
        }
    }
}

impl EventDecoder for GooseDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "message" => self.message(&event["message"], emit),
            "notification" | "model_change" | "modelChange" => {}
            "error" => {
                self.failed = true;
                self.message.clear(emit);
                emit(Act::Failed {
                    why: str_at(event, &["error"]).into(),
                    reason: None,
                });
            }
            // The total does not distinguish kinds of tokens, so it cannot be priced.
            "complete" => {
                self.message.end_line(emit);
                if !self.failed {
                    emit(Act::Finished(self.message.text().into()));
                }
                emit(Act::RunEnded);
            }
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
