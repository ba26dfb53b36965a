//! Decodes Factory Droid 0.215 with `exec --output-format stream-json`.

use super::ActSink;
use super::claude::tokens;
use super::failure_classifier::kind_for_status;
use super::json_lines::EventDecoder;
use super::json_path::str_at;
use super::message::MessageBuffer;
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use crate::engine::Act;
use serde_json::Value;

pub(super) struct DroidDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    message: MessageBuffer,
    failed: bool,
}

impl DroidDecoder {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            message: MessageBuffer::default(),
            failed: false,
        }
    }

    fn error(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        self.message.clear(emit);
        self.tools.clear();
        let (why, by_cli) = (
            str_at(event, &["message"]),
            str_at(event, &["source"]) == "cli",
        );
        // The last event only reports that the run failed. An earlier one reported the cause.
        if !(by_cli && self.failed) {
            self.tools.report_denial(why, emit);
            let status = why.split(' ').next().and_then(|status| status.parse().ok());
            let reason = status.and_then(kind_for_status).map(Into::into);
            emit(Act::Failed {
                why: why.into(),
                reason,
            });
        }
        self.failed = true;
        if by_cli {
            emit(Act::RunEnded);
        }
    }
}

impl EventDecoder for DroidDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "system" => {
                if str_at(event, &["subtype"]) == "init" {
                    emit(Act::SessionId(str_at(event, &["session_id"]).into()));
                }
            }
            "message" => {
                if str_at(event, &["role"]) == "assistant" {
                    self.message
                        .complete(str_at(event, &["id"]), str_at(event, &["text"]), emit);
                }
            }
            "reasoning" => emit(Act::Thinking(str_at(event, &["text"]).into())),
            "tool_call" => {
                self.message.clear(emit);
                let (id, name) = (str_at(event, &["id"]), str_at(event, &["toolName"]));
                self.tools.start(id, name, &event["parameters"], emit);
            }
            "tool_result" => {
                let id = str_at(event, &["id"]);
                if event["isError"] == true {
                    self.tools
                        .fail(id, str_at(event, &["error", "message"]), emit);
                } else {
                    self.tools.finish(id, emit);
                }
            }
            "completion" => {
                self.tools.clear();
                self.meter.set_total("", tokens(&event["usage"]), emit);
                emit(Act::Finished(str_at(event, &["finalText"]).into()));
                emit(Act::RunEnded);
            }
            "error" => self.error(event, emit),
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
