//! Decodes `OpenCode` 1.18 with `run --format json`.
//!
//! The stream reports a tool only when it has finished, and does not mark the end of the run.

use super::failure_classifier::{kind_for_status, ms_after_seconds};
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at, value_at};
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use super::{ActSink, line_counts};
use crate::engine::Act;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::usage::Tokens;
use serde_json::Value;

pub(super) struct OpencodeDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    message: MessageBuffer,
    session: String,
}

impl OpencodeDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            message: MessageBuffer::default(),
            session: String::new(),
        }
    }

    fn tool(&mut self, part: &Value, emit: &mut ActSink<'_>) {
        self.message.clear(emit);
        let (id, state) = (str_at(part, &["callID"]), &part["state"]);
        let tool = str_at(part, &["tool"]);
        if tool == "invalid" {
            // OpenCode replaces a call that it does not allow or cannot parse with this tool, which
            // always succeeds.
            let called = str_at(state, &["input", "tool"]);
            self.tools.start_about(id, called, String::new(), emit);
            self.tools
                .fail(id, str_at(state, &["input", "error"]), emit);
            return;
        }
        self.tools.start(id, tool, &state["input"], emit);
        let diff = str_at(state, &["metadata", "diff"]);
        self.tools.set_lines(id, line_counts::of_patch(diff));
        // The event arrives when the call is over.
        let time = |name| value_at(state, &["time", name]).as_u64();
        if let (Some(start), Some(end)) = (time("start"), time("end")) {
            self.tools.set_duration(id, end.saturating_sub(start));
        }
        if str_at(state, &["status"]) == "error" {
            self.tools.fail(id, str_at(state, &["error"]), emit);
            return;
        }
        match value_at(state, &["metadata", "exit"]).as_i64() {
            None | Some(0) => self.tools.finish(id, emit),
            Some(code) => {
                let error = format!("exit {code}\n{}", str_at(state, &["output"]));
                self.tools.finish_failed(id, &error, emit);
            }
        }
    }

    fn step_finish(&mut self, part: &Value, emit: &mut ActSink<'_>) {
        let usage = &part["tokens"];
        let tokens = Tokens {
            input: u64_at(usage, &["input"]),
            cache_read: u64_at(usage, &["cache", "read"]),
            cache_write: u64_at(usage, &["cache", "write"]),
            output: u64_at(usage, &["output"]).saturating_add(u64_at(usage, &["reasoning"])),
        };
        self.meter.add("", tokens, emit);
        // OpenCode reports a cost of 0 for models whose price it does not know.
        if let Some(usd) = part["cost"].as_f64().filter(|usd| *usd > 0.0) {
            emit(Act::Cost(usd));
        }
        match str_at(part, &["reason"]) {
            "tool-calls" => {}
            "content-filter" => {
                let why = "the provider's content filter blocked the response".into();
                emit(Act::Failed {
                    why,
                    reason: Some(FailureKind::Refused.into()),
                });
            }
            _ => emit(Act::Finished(self.message.text().into())),
        }
    }

    fn error(&mut self, error: &Value, emit: &mut ActSink<'_>) {
        self.message.clear(emit);
        let (name, data) = (str_at(error, &["name"]), &error["data"]);
        let why = match (str_at(data, &["message"]), name) {
            ("", "") => "error",
            ("", name) => name,
            (message, _) => message,
        };
        let kind = match name {
            "ProviderAuthError" => Some(FailureKind::Login),
            "ProviderModelNotFoundError" => Some(FailureKind::Model),
            "ContextOverflowError" => Some(FailureKind::Context),
            _ => kind_for_status(u64_at(data, &["statusCode"])),
        };
        let until_ms = str_at(data, &["responseHeaders", "retry-after"])
            .parse()
            .ok()
            .and_then(ms_after_seconds);
        let reason = kind.map(|kind| AgentFailure {
            until_ms,
            ..kind.into()
        });
        emit(Act::Failed {
            why: why.into(),
            reason,
        });
    }
}

impl EventDecoder for OpencodeDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        let session = str_at(event, &["sessionID"]);
        if !session.is_empty() && self.session != session {
            session.clone_into(&mut self.session);
            emit(Act::SessionId(session.into()));
        }
        let part = &event["part"];
        match str_at(event, &["type"]) {
            "step_start" => emit(Act::keepalive()),
            "text" => {
                self.message
                    .append(str_at(part, &["messageID"]), str_at(part, &["text"]), emit);
                self.message.end_line(emit);
            }
            "reasoning" => emit(Act::Thinking(str_at(part, &["text"]).into())),
            "tool_use" => self.tool(part, emit),
            "step_finish" => self.step_finish(part, emit),
            "error" => self.error(&event["error"], emit),
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
