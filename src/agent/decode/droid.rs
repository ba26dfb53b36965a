//! Droid's `exec -o stream-json`, 0.215.

use super::Tell;
use super::claude::tokens;
use super::failure_patterns::of_status;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, text};
use super::usage::Meter;
use crate::engine::Act;
use serde_json::Value;

pub struct Droid {
    tools: Tools,
    meter: Meter,
    message: Message,
    failed: bool,
}

impl Droid {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            meter: Meter::default(),
            message: Message::default(),
            failed: false,
        }
    }

    fn error(&mut self, event: &Value, tell: &mut Tell<'_>) {
        self.message.forget(tell);
        self.tools.forget();
        let (why, by_cli) = (text(event, &["message"]), text(event, &["source"]) == "cli");
        // That it failed is its last word, and the reason came before.
        if !(by_cli && self.failed) {
            self.tools.denied(why, tell);
            let status = why.split(' ').next().and_then(|status| status.parse().ok());
            let reason = status.and_then(of_status).map(Into::into);
            tell(Act::Failed {
                why: why.into(),
                reason,
            });
        }
        self.failed = true;
        if by_cli {
            tell(Act::Over);
        }
    }
}

impl Speech for Droid {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "system" => {
                if text(event, &["subtype"]) == "init" {
                    tell(Act::Session(text(event, &["session_id"]).into()));
                }
            }
            "message" => {
                if text(event, &["role"]) == "assistant" {
                    self.message
                        .whole(text(event, &["id"]), text(event, &["text"]), tell);
                }
            }
            "reasoning" => tell(Act::Thought(text(event, &["text"]).into())),
            "tool_call" => {
                self.message.forget(tell);
                let (id, name) = (text(event, &["id"]), text(event, &["toolName"]));
                self.tools.begin(id, name, &event["parameters"], tell);
            }
            "tool_result" => {
                let id = text(event, &["id"]);
                if event["isError"] == true {
                    self.tools
                        .fail(id, text(event, &["error", "message"]), tell);
                } else {
                    self.tools.end(id, true, tell);
                }
            }
            "completion" => {
                self.tools.forget();
                self.meter.of_all("", tokens(&event["usage"]), tell);
                tell(Act::Finished(text(event, &["finalText"]).into()));
                tell(Act::Over);
            }
            "error" => self.error(event, tell),
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
