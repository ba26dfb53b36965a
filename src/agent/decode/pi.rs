//! Decodes pi 0.73 with `--mode json`.
//!
//! pi always exits with 0. Its last message shows whether the run failed.

use super::ActSink;
use super::failure_classifier::kind_for_status;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at, value_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub(super) struct PiDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    message: MessageBuffer,
    /// The error that was reported instead of a last message; `None` if there was none.
    error: Option<String>,
}

impl PiDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            message: MessageBuffer::default(),
            error: None,
        }
    }

    fn message_end(&mut self, message: &Value, emit: &mut ActSink<'_>) {
        if str_at(message, &["role"]) != "assistant" {
            return;
        }
        let blocks = || message["content"].as_array().into_iter().flatten();
        let texts = blocks().filter(|block| str_at(block, &["type"]) == "text");
        let texts: Vec<&str> = texts.map(|block| str_at(block, &["text"])).collect();
        self.message.complete("message", &texts.join("\n"), emit);
        if blocks().any(|block| str_at(block, &["type"]) == "toolCall") {
            self.message.clear(emit);
        }
        let usage = &message["usage"];
        let tokens = Tokens {
            input: u64_at(usage, &["input"]),
            cache_read: u64_at(usage, &["cacheRead"]),
            cache_write: u64_at(usage, &["cacheWrite"]),
            output: u64_at(usage, &["output"]),
        };
        self.meter.add(str_at(message, &["model"]), tokens, emit);
        // pi reports a cost of 0 for models whose price it does not know.
        if let Some(usd) = value_at(usage, &["cost", "total"])
            .as_f64()
            .filter(|usd| *usd > 0.0)
        {
            emit(Act::Cost(usd));
        }
        let failed = matches!(str_at(message, &["stopReason"]), "error" | "aborted");
        self.error = failed.then(|| str_at(message, &["errorMessage"]).to_owned());
    }

    fn update(&mut self, update: &Value, emit: &mut ActSink<'_>) {
        match str_at(update, &["type"]) {
            "text_delta" => self
                .message
                .append("message", str_at(update, &["delta"]), emit),
            "thinking_delta" => emit(Act::Thinking(str_at(update, &["delta"]).into())),
            _ => emit(Act::keepalive()),
        }
    }

    fn agent_end(&mut self, emit: &mut ActSink<'_>) {
        self.tools.clear();
        // After an error, pi may retry. This event does not show whether it will.
        if self.error.is_none() {
            emit(Act::Finished(self.message.text().into()));
            emit(Act::RunEnded);
        }
    }

    fn fail(&mut self, emit: &mut ActSink<'_>) {
        let Some(why) = self.error.take() else { return };
        let status = why
            .split([' ', ':'])
            .next()
            .and_then(|status| status.parse().ok());
        let reason = status.and_then(kind_for_status).map(Into::into);
        emit(Act::Failed {
            why: why.into(),
            reason,
        });
    }
}

impl EventDecoder for PiDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "session" => emit(Act::SessionId(str_at(event, &["id"]).into())),
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "tool_execution_update"
            | "compaction_start"
            | "compaction_end"
            | "auto_compaction_start"
            | "auto_compaction_end"
            | "queue_update"
            | "agent_settled"
            | "entry_appended"
            | "session_info_changed"
            | "thinking_level_changed" => {}
            // The run continues with a retry of its own.
            "agent_end" if event["willRetry"] == true => {}
            "message_start" => self.message.clear(emit),
            "message_update" => self.update(&event["assistantMessageEvent"], emit),
            "message_end" => self.message_end(&event["message"], emit),
            "tool_execution_start" => {
                self.message.clear(emit);
                let (id, name) = (str_at(event, &["toolCallId"]), str_at(event, &["toolName"]));
                self.tools.start(id, name, &event["args"], emit);
            }
            "tool_execution_end" => {
                let id = str_at(event, &["toolCallId"]);
                if event["isError"] == true {
                    let result = &value_at(event, &["result", "content"])[0];
                    self.tools.fail(id, str_at(result, &["text"]), emit);
                } else {
                    self.tools.finish(id, emit);
                }
            }
            "agent_end" => self.agent_end(emit),
            "auto_retry_start" => {
                self.error = None;
                let (attempt, of) = (u64_at(event, &["attempt"]), u64_at(event, &["maxAttempts"]));
                let message = format!(
                    "{}, attempt {attempt} of {of}",
                    str_at(event, &["errorMessage"])
                );
                emit(Act::Retrying(message.into()));
            }
            "auto_retry_end" => {
                if event["success"] == false {
                    self.error = Some(str_at(event, &["finalError"]).to_owned());
                    self.fail(emit);
                    emit(Act::RunEnded);
                }
            }
            _ => return false,
        }
        true
    }

    fn finish(&mut self, emit: &mut ActSink<'_>) {
        self.fail(emit);
    }

    fn tools(&mut self) -> &mut ToolTracker {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
