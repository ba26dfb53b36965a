//! Decodes Gemini CLI 0.61 with `--output-format stream-json`.

use super::ActSink;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub(super) struct GeminiDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    message: MessageBuffer,
    /// The message of the last error event. The result may not repeat it.
    error: String,
}

impl GeminiDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            message: MessageBuffer::default(),
            error: String::new(),
        }
    }

    fn result(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        self.tools.clear();
        self.message.end_line(emit);
        for (model, usage) in event["stats"]["models"].as_object().into_iter().flatten() {
            let (input, cache_read) =
                (u64_at(usage, &["input_tokens"]), u64_at(usage, &["cached"]));
            // Only the total includes thinking tokens.
            let rest = u64_at(usage, &["total_tokens"]).saturating_sub(input);
            let output = u64_at(usage, &["output_tokens"]).max(rest);
            let total = Tokens {
                input: input.saturating_sub(cache_read),
                cache_read,
                cache_write: 0,
                output,
            };
            self.meter.set_model_total(model, total, emit);
        }
        if str_at(event, &["status"]) == "success" {
            emit(Act::Finished(self.message.text().into()));
        } else {
            let why = match str_at(event, &["error", "message"]) {
                "" => std::mem::take(&mut self.error),
                why => why.to_owned(),
            };
            emit(Act::Failed {
                why: why.into(),
                reason: None,
            });
        }
        emit(Act::RunEnded);
    }
}

impl EventDecoder for GeminiDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "init" => emit(Act::SessionId(str_at(event, &["session_id"]).into())),
            "message" if str_at(event, &["role"]) == "assistant" => {
                let text = str_at(event, &["content"]);
                if event["delta"] == true {
                    self.message.append("pieces", text, emit);
                } else {
                    self.message.clear(emit);
                    self.message.complete("whole", text, emit);
                }
            }
            // The user's prompt.
            "message" => {}
            "tool_use" => {
                self.message.clear(emit);
                let (id, name) = (str_at(event, &["tool_id"]), str_at(event, &["tool_name"]));
                self.tools.start(id, name, &event["parameters"], emit);
            }
            "tool_result" => {
                let id = str_at(event, &["tool_id"]);
                if str_at(event, &["status"]) == "error" {
                    self.tools
                        .fail(id, str_at(event, &["error", "message"]), emit);
                } else {
                    self.tools.finish(id, emit);
                }
            }
            "error" => {
                str_at(event, &["message"]).clone_into(&mut self.error);
                emit(Act::SideOutput(self.error.as_str().into()));
            }
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
