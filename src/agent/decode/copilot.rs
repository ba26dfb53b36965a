//! Copilot CLI's `--output-format json`, 1.0.102. It counts tokens in a file of its own, and not here.

use super::Tell;
use super::failure_patterns::of_status;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, at, count, text};
use crate::engine::Act;
use crate::engine::failure::{Kind, Reason};
use serde_json::Value;

/// Families of events that tell nothing more than these readers look for.
const FAMILIES: [&str; 10] = [
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

pub struct Copilot {
    tools: Tools,
    message: Message,
    /// What went wrong last, until the result says whether that was the end.
    error: Option<(String, Option<Reason>)>,
}

impl Copilot {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            message: Message::default(),
            error: None,
        }
    }

    fn tool_complete(&mut self, data: &Value, tell: &mut Tell<'_>) {
        let id = text(data, &["toolCallId"]);
        if data["success"] == true {
            let exit = at(data, &["shellExecution", "exitCode"]).as_i64();
            self.tools.end(id, exit.unwrap_or(0) == 0, tell);
        } else {
            let why = match text(data, &["error", "message"]) {
                "" => text(data, &["result", "content"]),
                why => why,
            };
            self.tools.fail(id, why, tell);
        }
    }

    fn fail(&mut self, tell: &mut Tell<'_>) {
        let (why, reason) = self.error.take().unwrap_or_default();
        tell(Act::Failed {
            why: why.into(),
            reason,
        });
    }

    fn result(&mut self, event: &Value, tell: &mut Tell<'_>) {
        self.tools.forget();
        tell(Act::Session(text(event, &["sessionId"]).into()));
        if event["exitCode"] == 0 {
            self.error = None;
            tell(Act::Finished(self.message.text().into()));
        } else {
            self.fail(tell);
        }
        tell(Act::Over);
    }
}

impl Speech for Copilot {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        let (kind, data) = (text(event, &["type"]), &event["data"]);
        let own = data["parentToolCallId"].is_null();
        match kind {
            "assistant.message_delta" if own => {
                self.message.piece(
                    text(data, &["messageId"]),
                    text(data, &["deltaContent"]),
                    tell,
                );
            }
            "assistant.message" if own => {
                self.message
                    .whole(text(data, &["messageId"]), text(data, &["content"]), tell);
                if data["toolRequests"]
                    .as_array()
                    .is_some_and(|tools| !tools.is_empty())
                {
                    self.message.forget(tell);
                }
            }
            "assistant.reasoning" if own => tell(Act::Thought(text(data, &["content"]).into())),
            "assistant.reasoning_delta" | "assistant.tool_call_delta" => tell(Act::sign_of_life()),
            "assistant.turn_retry" => {
                tell(Act::Retrying(
                    text(data, &["reason"]).replace('_', " ").into(),
                ));
            }
            "tool.execution_start" => {
                self.message.forget(tell);
                let (id, name) = (text(data, &["toolCallId"]), text(data, &["toolName"]));
                self.tools.begin(id, name, &data["arguments"], tell);
            }
            "tool.execution_complete" => self.tool_complete(data, tell),
            "session.error" => {
                let kind = match text(data, &["errorType"]) {
                    "rate_limit" => Some(Kind::RateLimit),
                    "authentication" | "authorization" => Some(Kind::Login),
                    "quota" => Some(Kind::UsageLimit),
                    "context_limit" => Some(Kind::Context),
                    _ => of_status(count(data, &["statusCode"])),
                };
                self.error = Some((text(data, &["message"]).to_owned(), kind.map(Into::into)));
            }
            "result" => self.result(event, tell),
            "abort" => {}
            other => return FAMILIES.iter().any(|family| other.starts_with(family)),
        }
        true
    }

    fn finish(&mut self, tell: &mut Tell<'_>) {
        if self.error.is_some() {
            self.fail(tell);
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
