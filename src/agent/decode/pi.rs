//! pi's `--mode json`, 0.73. Whatever happens it exits with 0: its last message says how it went.

use super::Tell;
use super::failure_patterns::of_status;
use super::json_lines::Speech;
use super::message::Message;
use super::tools::{Tools, at, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::usage::Tokens;
use serde_json::Value;

pub struct Pi {
    tools: Tools,
    meter: Meter,
    message: Message,
    /// Why its last message is none.
    error: Option<String>,
}

impl Pi {
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            meter: Meter::default(),
            message: Message::default(),
            error: None,
        }
    }

    fn message_end(&mut self, message: &Value, tell: &mut Tell<'_>) {
        if text(message, &["role"]) != "assistant" {
            return;
        }
        let blocks = || message["content"].as_array().into_iter().flatten();
        let words = blocks().filter(|block| text(block, &["type"]) == "text");
        let words: Vec<&str> = words.map(|block| text(block, &["text"])).collect();
        self.message.whole("message", &words.join("\n"), tell);
        if blocks().any(|block| text(block, &["type"]) == "toolCall") {
            self.message.forget(tell);
        }
        let usage = &message["usage"];
        let more = Tokens {
            input: count(usage, &["input"]),
            cache_read: count(usage, &["cacheRead"]),
            cache_write: count(usage, &["cacheWrite"]),
            output: count(usage, &["output"]),
        };
        self.meter.more(text(message, &["model"]), more, tell);
        // A model whose price it does not know costs it nothing.
        if let Some(usd) = at(usage, &["cost", "total"])
            .as_f64()
            .filter(|usd| *usd > 0.0)
        {
            tell(Act::Cost(usd));
        }
        let failed = matches!(text(message, &["stopReason"]), "error" | "aborted");
        self.error = failed.then(|| text(message, &["errorMessage"]).to_owned());
    }

    fn update(&mut self, update: &Value, tell: &mut Tell<'_>) {
        match text(update, &["type"]) {
            "text_delta" => self
                .message
                .piece("message", text(update, &["delta"]), tell),
            "thinking_delta" => tell(Act::Thought(text(update, &["delta"]).into())),
            _ => tell(Act::sign_of_life()),
        }
    }

    fn agent_end(&mut self, tell: &mut Tell<'_>) {
        self.tools.forget();
        // After an error it may try once more, and does not say so here.
        if self.error.is_none() {
            tell(Act::Finished(self.message.text().into()));
            tell(Act::Over);
        }
    }

    fn fail(&mut self, tell: &mut Tell<'_>) {
        let Some(why) = self.error.take() else { return };
        let status = why.split(' ').next().and_then(|status| status.parse().ok());
        let reason = status.and_then(of_status).map(Into::into);
        tell(Act::Failed {
            why: why.into(),
            reason,
        });
    }
}

impl Speech for Pi {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "session" => tell(Act::Session(text(event, &["id"]).into())),
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "tool_execution_update"
            | "compaction_start"
            | "compaction_end"
            | "auto_compaction_start"
            | "auto_compaction_end"
            | "queue_update" => {}
            "message_start" => self.message.forget(tell),
            "message_update" => self.update(&event["assistantMessageEvent"], tell),
            "message_end" => self.message_end(&event["message"], tell),
            "tool_execution_start" => {
                self.message.forget(tell);
                let (id, name) = (text(event, &["toolCallId"]), text(event, &["toolName"]));
                self.tools.begin(id, name, &event["args"], tell);
            }
            "tool_execution_end" => {
                self.tools
                    .end(text(event, &["toolCallId"]), event["isError"] != true, tell);
            }
            "agent_end" => self.agent_end(tell),
            "auto_retry_start" => {
                self.error = None;
                let (attempt, of) = (count(event, &["attempt"]), count(event, &["maxAttempts"]));
                let words = format!(
                    "{}, attempt {attempt} of {of}",
                    text(event, &["errorMessage"])
                );
                tell(Act::Retrying(words.into()));
            }
            "auto_retry_end" => {
                if event["success"] == false {
                    self.error = Some(text(event, &["finalError"]).to_owned());
                    self.fail(tell);
                    tell(Act::Over);
                }
            }
            _ => return false,
        }
        true
    }

    fn finish(&mut self, tell: &mut Tell<'_>) {
        self.fail(tell);
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}
