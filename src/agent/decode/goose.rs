//! Goose's `run --output-format stream-json`, from its documentation only: no run of it was seen.

use super::Tell;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, at, text};
use crate::engine::Act;
use serde_json::Value;

pub struct Goose {
    tools: Tools,
    message: Message,
    failed: bool,
}

impl Goose {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            message: Message::default(),
            failed: false,
        }
    }

    fn message(&mut self, message: &Value, tell: &mut Tell<'_>) {
        let own = text(message, &["role"]) == "assistant";
        for block in message["content"].as_array().into_iter().flatten() {
            let id = text(block, &["id"]);
            match text(block, &["type"]) {
                "text" if own => {
                    let words = text(block, &["text"]);
                    self.message.piece(text(message, &["id"]), words, tell);
                }
                "thinking" if own => tell(Act::Thought(text(block, &["thinking"]).into())),
                "toolRequest" => {
                    self.message.forget(tell);
                    let call = at(block, &["toolCall", "value"]);
                    self.tools
                        .begin(id, text(call, &["name"]), &call["arguments"], tell);
                }
                "toolResponse" => {
                    let result = &block["toolResult"];
                    let ok = text(result, &["status"]) != "error"
                        && at(result, &["value", "isError"]) != true;
                    if ok {
                        self.tools.end(id, true, tell);
                    } else {
                        self.tools.fail(id, text(result, &["error"]), tell);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Speech for Goose {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "message" => self.message(&event["message"], tell),
            "notification" | "model_change" | "modelChange" => {}
            "error" => {
                self.failed = true;
                self.message.forget(tell);
                tell(Act::Failed {
                    why: text(event, &["error"]).into(),
                    reason: None,
                });
            }
            // Its total is no kind of token that has a price, so it is not counted.
            "complete" => {
                self.message.end(tell);
                if !self.failed {
                    tell(Act::Finished(self.message.text().into()));
                }
                tell(Act::Over);
            }
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
