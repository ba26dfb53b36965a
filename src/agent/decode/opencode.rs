//! Opencode's `run --format json`, 1.18. A tool is told of when it is done, and nothing says that the run is over.

use super::Tell;
use super::failure_patterns::{in_seconds, of_status};
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, at, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::failure::{Kind, Reason};
use crate::engine::usage::Tokens;
use serde_json::Value;

pub struct Opencode {
    tools: Tools,
    meter: Meter,
    message: Message,
    session: String,
}

impl Opencode {
    pub fn new(tools: Tools) -> Self {
        let session = String::new();
        Self {
            tools,
            meter: Meter::default(),
            message: Message::default(),
            session,
        }
    }

    fn tool(&mut self, part: &Value, tell: &mut Tell<'_>) {
        self.message.forget(tell);
        let (id, state) = (text(part, &["callID"]), &part["state"]);
        self.tools
            .begin(id, text(part, &["tool"]), &state["input"], tell);
        if text(state, &["status"]) == "error" {
            self.tools.fail(id, text(state, &["error"]), tell);
        } else {
            let exit = at(state, &["metadata", "exit"]).as_i64();
            self.tools.end(id, exit.unwrap_or(0) == 0, tell);
        }
    }

    fn step_finish(&mut self, part: &Value, tell: &mut Tell<'_>) {
        let tokens = &part["tokens"];
        let more = Tokens {
            input: count(tokens, &["input"]),
            cache_read: count(tokens, &["cache", "read"]),
            cache_write: count(tokens, &["cache", "write"]),
            output: count(tokens, &["output"]).saturating_add(count(tokens, &["reasoning"])),
        };
        self.meter.more("", more, tell);
        // A model whose price it does not know costs it nothing.
        if let Some(usd) = part["cost"].as_f64().filter(|usd| *usd > 0.0) {
            tell(Act::Cost(usd));
        }
        match text(part, &["reason"]) {
            "tool-calls" => {}
            "content-filter" => {
                let why = "the model's service held its answer back".into();
                tell(Act::Failed {
                    why,
                    reason: Some(Kind::Refused.into()),
                });
            }
            _ => tell(Act::Finished(self.message.text().into())),
        }
    }

    fn error(&mut self, error: &Value, tell: &mut Tell<'_>) {
        self.message.forget(tell);
        let (name, data) = (text(error, &["name"]), &error["data"]);
        let why = match (text(data, &["message"]), name) {
            ("", "") => "error",
            ("", name) => name,
            (message, _) => message,
        };
        let kind = match name {
            "ProviderAuthError" => Some(Kind::Login),
            "ProviderModelNotFoundError" => Some(Kind::Model),
            "ContextOverflowError" => Some(Kind::Context),
            _ => of_status(count(data, &["statusCode"])),
        };
        let after = text(data, &["responseHeaders", "retry-after"])
            .parse()
            .ok()
            .and_then(in_seconds);
        let reason = kind.map(|kind| Reason {
            until_ms: after,
            ..kind.into()
        });
        tell(Act::Failed {
            why: why.into(),
            reason,
        });
    }
}

impl Speech for Opencode {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        let session = text(event, &["sessionID"]);
        if !session.is_empty() && self.session != session {
            session.clone_into(&mut self.session);
            tell(Act::Session(session.into()));
        }
        let part = &event["part"];
        match text(event, &["type"]) {
            "step_start" => tell(Act::sign_of_life()),
            "text" => {
                self.message
                    .piece(text(part, &["messageID"]), text(part, &["text"]), tell);
                self.message.end(tell);
            }
            "reasoning" => tell(Act::Thought(text(part, &["text"]).into())),
            "tool_use" => self.tool(part, tell),
            "step_finish" => self.step_finish(part, tell),
            "error" => self.error(&event["error"], tell),
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
