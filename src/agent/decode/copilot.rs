//! Decodes GitHub Copilot CLI 1.0.102 with `--output-format json`.
//!
//! The stream has no token counts; Copilot writes them to a separate file.

use super::failure_classifier::kind_for_status;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at, value_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::{ActSink, line_counts};
use crate::engine::Act;
use crate::engine::failure::{AgentFailure, FailureKind};
use serde_json::Value;

/// Prefixes of known event types. Events that are not decoded below are ignored.
const KNOWN_PREFIXES: [&str; 10] = [
    "session.",
    "model.",
    "assistant.",
    "tool.",
    "user.",
    "hook.",
    "skill.",
    "subagent.",
    "system.",
    "permission.",
];

pub(super) struct CopilotDecoder {
    tools: ToolTracker,
    message: MessageBuffer,
    /// The last error message and its classification; `None` if there was no error. The result
    /// event shows whether the error ended the run.
    error: Option<(String, Option<AgentFailure>)>,
}

impl CopilotDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            message: MessageBuffer::default(),
            error: None,
        }
    }

    fn tool_complete(&mut self, data: &Value, emit: &mut ActSink<'_>) {
        let id = str_at(data, &["toolCallId"]);
        if data["success"] == true {
            let metrics = value_at(data, &["toolTelemetry", "metrics"]);
            let lines = line_counts::reported(metrics, "linesAdded", "linesRemoved");
            if data["fileEdits"].is_array() {
                self.tools.set_lines(id, lines);
            }
            let exit_code = value_at(data, &["shellExecution", "exitCode"]).as_i64();
            if exit_code.unwrap_or(0) == 0 {
                self.tools.finish(id, emit);
            } else {
                self.tools
                    .finish_failed(id, str_at(data, &["result", "content"]), emit);
            }
        } else {
            let why = match str_at(data, &["error", "message"]) {
                "" => str_at(data, &["result", "content"]),
                why => why,
            };
            self.tools.fail(id, why, emit);
        }
    }

    fn fail(&mut self, emit: &mut ActSink<'_>) {
        let (why, reason) = self.error.take().unwrap_or_default();
        emit(Act::Failed {
            why: why.into(),
            reason,
        });
    }

    fn result(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        self.tools.clear();
        emit(Act::SessionId(str_at(event, &["sessionId"]).into()));
        if event["exitCode"] == 0 {
            self.error = None;
            emit(Act::Finished(self.message.text().into()));
        } else {
            self.fail(emit);
        }
        emit(Act::RunEnded);
    }
}

impl EventDecoder for CopilotDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        let (kind, data) = (str_at(event, &["type"]), &event["data"]);
        let own = data["parentToolCallId"].is_null();
        match kind {
            "assistant.message_delta" if own => {
                self.message.append(
                    str_at(data, &["messageId"]),
                    str_at(data, &["deltaContent"]),
                    emit,
                );
            }
            "assistant.message" if own => {
                self.message.complete(
                    str_at(data, &["messageId"]),
                    str_at(data, &["content"]),
                    emit,
                );
                if data["toolRequests"]
                    .as_array()
                    .is_some_and(|tools| !tools.is_empty())
                {
                    self.message.clear(emit);
                }
            }
            "assistant.reasoning" if own => emit(Act::Thinking(str_at(data, &["content"]).into())),
            "assistant.reasoning_delta" | "assistant.tool_call_delta" => emit(Act::keepalive()),
            "assistant.turn_retry" => {
                emit(Act::Retrying(
                    str_at(data, &["reason"]).replace('_', " ").into(),
                ));
            }
            "tool.execution_start" => {
                self.message.clear(emit);
                let (id, name) = (str_at(data, &["toolCallId"]), str_at(data, &["toolName"]));
                self.tools.start(id, name, &data["arguments"], emit);
            }
            "tool.execution_complete" => self.tool_complete(data, emit),
            "session.error" => {
                let kind = match str_at(data, &["errorType"]) {
                    "rate_limit" => Some(FailureKind::RateLimit),
                    "authentication" | "authorization" => Some(FailureKind::Login),
                    "quota" => Some(FailureKind::UsageLimit),
                    "context_limit" => Some(FailureKind::Context),
                    _ => kind_for_status(u64_at(data, &["statusCode"])),
                };
                self.error = Some((str_at(data, &["message"]).to_owned(), kind.map(Into::into)));
            }
            "result" => self.result(event, emit),
            "abort" => {}
            other => {
                return KNOWN_PREFIXES
                    .iter()
                    .any(|prefix| other.starts_with(prefix));
            }
        }
        true
    }

    fn finish(&mut self, emit: &mut ActSink<'_>) {
        if self.error.is_some() {
            self.fail(emit);
        }
    }

    fn tools(&mut self) -> &mut ToolTracker {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
