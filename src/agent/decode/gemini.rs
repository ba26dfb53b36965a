//! Gemini CLI's `stream-json`, 0.61.

use super::Tell;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub struct Gemini {
    tools: Tools,
    meter: Meter,
    message: Message,
    /// The last error beside the result.
    error: String,
}

impl Gemini {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            meter: Meter::default(),
            message: Message::default(),
            error: String::new(),
        }
    }

    fn result(&mut self, event: &Value, tell: &mut Tell<'_>) {
        self.tools.forget();
        self.message.end(tell);
        for (model, usage) in event["stats"]["models"].as_object().into_iter().flatten() {
            let (read, cache_read) = (count(usage, &["input_tokens"]), count(usage, &["cached"]));
            // Thoughts are counted in the total alone.
            let written = count(usage, &["total_tokens"]).saturating_sub(read);
            let output = count(usage, &["output_tokens"]).max(written);
            let all = Tokens {
                input: read.saturating_sub(cache_read),
                cache_read,
                cache_write: 0,
                output,
            };
            self.meter.of_model(model, all, tell);
        }
        if text(event, &["status"]) == "success" {
            tell(Act::Finished(self.message.text().into()));
        } else {
            let why = match text(event, &["error", "message"]) {
                "" => std::mem::take(&mut self.error),
                why => why.to_owned(),
            };
            tell(Act::Failed {
                why: why.into(),
                reason: None,
            });
        }
        tell(Act::Over);
    }
}

impl Speech for Gemini {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "init" => tell(Act::Session(text(event, &["session_id"]).into())),
            "message" if text(event, &["role"]) == "assistant" => {
                let words = text(event, &["content"]);
                if event["delta"] == true {
                    self.message.piece("pieces", words, tell);
                } else {
                    self.message.forget(tell);
                    self.message.whole("whole", words, tell);
                }
            }
            // The prompt.
            "message" => {}
            "tool_use" => {
                self.message.forget(tell);
                let (id, name) = (text(event, &["tool_id"]), text(event, &["tool_name"]));
                self.tools.begin(id, name, &event["parameters"], tell);
            }
            "tool_result" => {
                let id = text(event, &["tool_id"]);
                if text(event, &["status"]) == "error" {
                    self.tools
                        .fail(id, text(event, &["error", "message"]), tell);
                } else {
                    self.tools.end(id, true, tell);
                }
            }
            "error" => {
                text(event, &["message"]).clone_into(&mut self.error);
                tell(Act::Noise(self.error.as_str().into()));
            }
            "result" => self.result(event, tell),
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
