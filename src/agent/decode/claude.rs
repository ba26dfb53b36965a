//! Claude Code's `stream-json`, from 1.0.128 to 2.1.325, and its cousins: Qwen Code's, 0.24, and Amp's, the latter
//! from its documentation only.
//!
//! A run may come to several results: a command in the background outlives a turn, and its end begins another.
//! Costs count from the start of the process, tokens of a result only from the result before.

use super::Tell;
use super::json_lines::Speech;
use super::tools::{Tools, at, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::failure::{Kind, Reason};
use crate::engine::usage::{Session, Tokens};
use serde_json::Value;

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Claude {
    tools: Tools,
    meter: Meter,
    /// How its cousins differ: what is read from a cache is counted as input too.
    cached_is_input: bool,
    /// How its cousins differ: a message comes with all that was written for it.
    counts_output: bool,
    /// Tokens of results that name no models.
    unnamed: Tokens,
    /// The message whose tokens were told last: each of its blocks comes with them.
    message: String,
    model: String,
    /// What is at work in the background; none as long as it never said.
    background: Option<usize>,
    sent_to_background: bool,
    /// What was not allowed, by the tool's use.
    denied: Vec<String>,
    /// The limit that was hit, and when it is over.
    limit: Option<Reason>,
    /// Whether it told that a limit is near: each answer comes with that.
    warned: bool,
    /// What the client calls the last error.
    error: String,
}

impl Claude {
    fn new(tools: Tools) -> Self {
        Self {
            tools,
            meter: Meter::default(),
            cached_is_input: false,
            counts_output: false,
            unnamed: Tokens::default(),
            message: String::new(),
            model: String::new(),
            background: None,
            sent_to_background: false,
            denied: Vec::new(),
            limit: None,
            warned: false,
            error: String::new(),
        }
    }

    /// It counts on where a session was left that it goes on with.
    pub fn after(tools: Tools, sessions: &[Session]) -> Self {
        Self {
            meter: Meter::after(sessions),
            ..Self::new(tools)
        }
    }

    pub fn qwen(tools: Tools) -> Self {
        Self {
            cached_is_input: true,
            counts_output: true,
            ..Self::new(tools)
        }
    }

    pub fn amp(tools: Tools) -> Self {
        Self {
            counts_output: true,
            ..Self::new(tools)
        }
    }

    fn system(&mut self, event: &Value, tell: &mut Tell<'_>) {
        match text(event, &["subtype"]) {
            "init" => {
                text(event, &["model"]).clone_into(&mut self.model);
                self.meter.session(text(event, &["session_id"]));
                tell(Act::Session(text(event, &["session_id"]).into()));
            }
            "api_retry" => {
                let error = text(event, &["error"]).replace('_', " ");
                let (attempt, of) = (count(event, &["attempt"]), count(event, &["max_retries"]));
                tell(Act::Retrying(
                    format!("{error}, attempt {attempt} of {of}").into(),
                ));
            }
            "background_tasks_changed" => {
                self.background = event["tasks"].as_array().map(Vec::len);
            }
            "permission_denied" => {
                self.denied.push(text(event, &["tool_use_id"]).to_owned());
                tell(Act::Denied(text(event, &["message"]).into()));
            }
            "thinking_tokens" => tell(Act::sign_of_life()),
            _ => {}
        }
    }

    fn assistant(&mut self, event: &Value, tell: &mut Tell<'_>) {
        let message = &event["message"];
        let (model, id) = (text(message, &["model"]), text(message, &["id"]));
        if model == "<synthetic>" || event["is_api_error_message"] == true {
            // The client's own words: the result says them again, with what they mean.
            text(event, &["error"]).clone_into(&mut self.error);
            return;
        }
        if self.message != id {
            id.clone_into(&mut self.message);
            let mut used = self.tokens(&message["usage"]);
            if !self.counts_output {
                // What it has written is not counted yet.
                used.output = 0;
            }
            self.meter.more(model, used, tell);
        }
        let own = event["parent_tool_use_id"].is_null();
        for block in message["content"].as_array().into_iter().flatten() {
            match text(block, &["type"]) {
                "text" if own => tell(Act::Said(
                    format!("{}\n", text(block, &["text"]).trim_end()).into(),
                )),
                "thinking" if own => tell(Act::Thought(text(block, &["thinking"]).into())),
                "tool_use" => {
                    self.sent_to_background |= at(block, &["input", "run_in_background"]) == true;
                    self.tools.begin(
                        text(block, &["id"]),
                        text(block, &["name"]),
                        &block["input"],
                        tell,
                    );
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, event: &Value, tell: &mut Tell<'_>) {
        for block in at(event, &["message", "content"])
            .as_array()
            .into_iter()
            .flatten()
        {
            if text(block, &["type"]) == "tool_result" {
                self.tools.end(
                    text(block, &["tool_use_id"]),
                    block["is_error"] != true,
                    tell,
                );
            }
        }
    }

    fn limited(&mut self, info: &Value, tell: &mut Tell<'_>) {
        let until_ms = info["resetsAt"]
            .as_i64()
            .map(|epoch| epoch.saturating_mul(1000));
        match text(info, &["status"]) {
            "rejected" => {
                self.limit = Some(Reason {
                    until_ms,
                    ..Kind::UsageLimit.into()
                })
            }
            "allowed_warning" if !self.warned => {
                self.warned = true;
                let limit = match text(info, &["rateLimitType"]) {
                    "" => "usage".into(),
                    "five_hour" => "5-hour".into(),
                    other => other.replace("seven_day", "weekly").replace('_', " "),
                };
                tell(Act::NearLimit {
                    limit: limit.into(),
                    used: info["utilization"].as_f64(),
                    until_ms,
                });
            }
            _ => {}
        }
    }

    fn result(&mut self, event: &Value, tell: &mut Tell<'_>) {
        for denial in event["permission_denials"].as_array().into_iter().flatten() {
            if !self
                .denied
                .iter()
                .any(|id| id == text(denial, &["tool_use_id"]))
            {
                let about = self.tools.about(&denial["tool_input"]);
                tell(Act::Denied(
                    format!("{} {about}", text(denial, &["tool_name"])).into(),
                ));
            }
        }
        self.denied.clear();
        self.tools.forget();
        self.count(event, tell);
        let subtype = text(event, &["subtype"]);
        if matches!(subtype, "error_max_turns" | "error_max_budget_usd") {
            // The user's own bound: it worked as long as it may.
            tell(Act::Finished("".into()));
        } else if event["is_error"] == true || subtype != "success" {
            let errors = event["errors"].as_array().into_iter().flatten();
            // Its cousins have one error, with a message or as it is.
            let errors = errors.chain([&event["error"], at(event, &["error", "message"])]);
            let why = match text(event, &["result"]) {
                "" => errors
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join("\n"),
                result => result.to_owned(),
            };
            let reason = self.reason(event);
            tell(Act::Failed {
                why: why.into(),
                reason,
            });
        } else {
            self.limit = None;
            tell(Act::Finished(text(event, &["result"]).into()));
        }
        self.error.clear();
        let waits = match self.background {
            Some(tasks) => tasks > 0,
            None => self.sent_to_background,
        };
        if !waits && count(event, &["queued_turn_count"]) == 0 {
            tell(Act::Over);
        }
    }

    /// What the event says of a failure; its words may say more.
    fn reason(&self, event: &Value) -> Option<Reason> {
        let kind = match (
            text(event, &["terminal_reason"]),
            text(event, &["api_error"]),
        ) {
            ("prompt_too_long", _) => Kind::Context,
            (_, "usage_limit_reached") => Kind::UsageLimit,
            _ if text(event, &["stop_reason"]) == "refusal" => Kind::Refused,
            _ => match (self.error.as_str(), count(event, &["api_error_status"])) {
                ("rate_limit", _) | (_, 429) => Kind::RateLimit,
                ("overloaded", _) | (_, 529 | 503) => Kind::Overloaded,
                ("authentication_failed", _) | (_, 401) => Kind::Login,
                ("billing_error", _) | (_, 402) => Kind::Credit,
                ("model_not_found", _) | (_, 404) => Kind::Model,
                _ => return None,
            },
        };
        match kind {
            Kind::UsageLimit | Kind::RateLimit => self.limit.or(Some(kind.into())),
            kind => Some(kind.into()),
        }
    }

    /// Tells what the result counts and was not told yet.
    fn count(&mut self, event: &Value, tell: &mut Tell<'_>) {
        if let Some(models) = event["modelUsage"]
            .as_object()
            .filter(|models| !models.is_empty())
        {
            for (model, usage) in models {
                let all = Tokens {
                    input: count(usage, &["inputTokens"]),
                    cache_read: count(usage, &["cacheReadInputTokens"]),
                    cache_write: count(usage, &["cacheCreationInputTokens"]),
                    output: count(usage, &["outputTokens"]),
                };
                self.meter.of_model(model, all, tell);
            }
        } else {
            let used = self.tokens(&event["usage"]);
            self.unnamed += used;
            self.meter.of_all(&self.model, self.unnamed, tell);
        }
        if let Some(total) = event["total_cost_usd"].as_f64() {
            self.meter.cost(total, tell);
        }
    }

    fn tokens(&self, usage: &Value) -> Tokens {
        let mut tokens = tokens(usage);
        if self.cached_is_input {
            tokens.input = tokens
                .input
                .saturating_sub(tokens.cache_read)
                .saturating_sub(tokens.cache_write);
        }
        tokens
    }
}

impl Speech for Claude {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "system" => self.system(event, tell),
            "assistant" => self.assistant(event, tell),
            "user" => self.user(event, tell),
            "rate_limit_event" => self.limited(&event["rate_limit_info"], tell),
            "result" => self.result(event, tell),
            "stream_event" => tell(Act::sign_of_life()),
            _ => return false,
        }
        true
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy() || self.background.is_some_and(|tasks| tasks > 0)
    }
}

/// What a message of this kind of service counts.
pub fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: count(usage, &["input_tokens"]),
        cache_read: count(usage, &["cache_read_input_tokens"]),
        cache_write: count(usage, &["cache_creation_input_tokens"]),
        output: count(usage, &["output_tokens"]),
    }
}
