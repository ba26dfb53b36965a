//! Decodes Claude Code 1.0.128 to 2.1.325 with `-p --output-format stream-json --verbose`, and two
//! formats derived from it: Qwen Code 0.24 with `--output-format stream-json`, and Amp with `-x
//! --stream-json` (written from Amp's documentation; no recording of a run was available).
//!
//! A run may have several results: a background command outlives its turn, and starts another
//! turn when it exits. Costs are totals since the start of the process; a result's tokens are those
//! since the previous result.

use super::failure_classifier::kind_for_status;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at, value_at};
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use super::{ActSink, line_counts};
use crate::engine::Act;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::usage::{SessionUsage, Tokens};
use serde_json::Value;

#[expect(
    clippy::struct_excessive_bools,
    reason = "the flags are independent of each other"
)]
pub(super) struct ClaudeDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    /// Whether input tokens include cached ones (Qwen Code).
    input_includes_cached: bool,
    /// Whether a message's usage includes its final output tokens (Qwen Code, Amp). Claude Code
    /// reports a message's usage before the message is complete.
    message_counts_output: bool,
    /// The tokens of all results that do not name their model.
    unnamed_tokens: Tokens,
    /// The ID of the message whose tokens were counted last. Every block of a message repeats the
    /// same token counts.
    message_id: String,
    model: String,
    /// Number of tasks that run in the background; `None` if this version of the agent does not
    /// report it.
    background_tasks: Option<usize>,
    sent_to_background: bool,
    /// IDs of denied tool uses that were already emitted.
    denied: Vec<String>,
    /// The limit that was reached, with its reset time; `None` if no limit was reached.
    limit: Option<AgentFailure>,
    /// Whether a limit warning was emitted. Every response repeats the warning.
    has_warned: bool,
    /// Claude Code's name for the last error.
    error: String,
}

impl ClaudeDecoder {
    fn new(tools: ToolTracker) -> Self {
        Self {
            tools,
            meter: UsageMeter::default(),
            input_includes_cached: false,
            message_counts_output: false,
            unnamed_tokens: Tokens::default(),
            message_id: String::new(),
            model: String::new(),
            background_tasks: None,
            sent_to_background: false,
            denied: Vec::new(),
            limit: None,
            has_warned: false,
            error: String::new(),
        }
    }

    /// Creates a decoder for Claude Code. The agent may resume one of `sessions`.
    pub(super) fn resuming(tools: ToolTracker, sessions: &[SessionUsage]) -> Self {
        Self {
            meter: UsageMeter::resuming(sessions),
            ..Self::new(tools)
        }
    }

    pub(super) fn qwen(tools: ToolTracker) -> Self {
        Self {
            input_includes_cached: true,
            message_counts_output: true,
            ..Self::new(tools)
        }
    }

    pub(super) fn amp(tools: ToolTracker) -> Self {
        Self {
            message_counts_output: true,
            ..Self::new(tools)
        }
    }

    fn system(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        match str_at(event, &["subtype"]) {
            "init" => {
                str_at(event, &["model"]).clone_into(&mut self.model);
                self.meter.start_session(str_at(event, &["session_id"]));
                emit(Act::SessionId(str_at(event, &["session_id"]).into()));
            }
            "api_retry" => {
                let error = str_at(event, &["error"]).replace('_', " ");
                let (attempt, of) = (u64_at(event, &["attempt"]), u64_at(event, &["max_retries"]));
                emit(Act::Retrying(
                    format!("{error}, attempt {attempt} of {of}").into(),
                ));
            }
            "background_tasks_changed" => {
                self.background_tasks = event["tasks"].as_array().map(Vec::len);
            }
            "permission_denied" => {
                let id = str_at(event, &["tool_use_id"]);
                self.denied.push(id.to_owned());
                self.tools.deny(id, str_at(event, &["message"]), emit);
            }
            "thinking_tokens" => emit(Act::keepalive()),
            _ => {}
        }
    }

    fn assistant(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        let message = &event["message"];
        let (model, id) = (str_at(message, &["model"]), str_at(message, &["id"]));
        if model == "<synthetic>" || event["is_api_error_message"] == true {
            // Claude Code itself wrote this message. The result repeats it with its cause.
            str_at(event, &["error"]).clone_into(&mut self.error);
            return;
        }
        if self.message_id != id {
            id.clone_into(&mut self.message_id);
            let mut tokens = self.tokens(&message["usage"]);
            if !self.message_counts_output {
                tokens.output = 0;
            }
            self.meter.add(model, tokens, emit);
        }
        let own = event["parent_tool_use_id"].is_null();
        for block in message["content"].as_array().into_iter().flatten() {
            match str_at(block, &["type"]) {
                "text" if own => emit(Act::Text(
                    format!("{}\n", str_at(block, &["text"]).trim_end()).into(),
                )),
                "thinking" if own => emit(Act::Thinking(str_at(block, &["thinking"]).into())),
                "tool_use" => {
                    self.sent_to_background |=
                        value_at(block, &["input", "run_in_background"]) == true;
                    self.tools.start(
                        str_at(block, &["id"]),
                        str_at(block, &["name"]),
                        &block["input"],
                        emit,
                    );
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        for block in value_at(event, &["message", "content"])
            .as_array()
            .into_iter()
            .flatten()
        {
            if str_at(block, &["type"]) == "tool_result" {
                let (id, error) = (
                    str_at(block, &["tool_use_id"]),
                    block_text(&block["content"]),
                );
                if block["is_error"] != true {
                    let hunks = value_at(event, &["tool_use_result", "structuredPatch"]);
                    self.tools.set_lines(id, line_counts::of_hunks(hunks));
                    self.tools.finish(id, emit);
                } else if self.denied.iter().any(|denied| denied == id) {
                    self.tools.finish_failed(id, error, emit);
                } else if self.tools.fail(id, error, emit) {
                    self.denied.push(id.to_owned());
                }
            }
        }
    }

    fn rate_limit(&mut self, info: &Value, emit: &mut ActSink<'_>) {
        let until_ms = info["resetsAt"]
            .as_i64()
            .map(|epoch| epoch.saturating_mul(1000));
        match str_at(info, &["status"]) {
            "rejected" => {
                self.limit = Some(AgentFailure {
                    until_ms,
                    ..FailureKind::UsageLimit.into()
                });
            }
            "allowed_warning" if !self.has_warned => {
                self.has_warned = true;
                let limit = match str_at(info, &["rateLimitType"]) {
                    "" => "usage".into(),
                    "five_hour" => "5-hour".into(),
                    other => other.replace("seven_day", "weekly").replace('_', " "),
                };
                emit(Act::NearLimit {
                    limit: limit.into(),
                    used: info["utilization"].as_f64(),
                    until_ms,
                });
            }
            _ => {}
        }
    }

    fn result(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        for denial in event["permission_denials"].as_array().into_iter().flatten() {
            if !self
                .denied
                .iter()
                .any(|id| id == str_at(denial, &["tool_use_id"]))
            {
                let about = self.tools.describe(&denial["tool_input"]);
                emit(Act::Denied(
                    format!("{} {about}", str_at(denial, &["tool_name"])).into(),
                ));
            }
        }
        self.denied.clear();
        self.tools.clear();
        self.result_usage(event, emit);
        let subtype = str_at(event, &["subtype"]);
        if matches!(subtype, "error_max_turns" | "error_max_budget_usd") {
            // The run reached a limit that the user set, which is not a failure.
            emit(Act::Finished("".into()));
        } else if event["is_error"] == true || subtype != "success" {
            let errors = event["errors"].as_array().into_iter().flatten();
            // The derived formats report one error: a string, or an object with a message.
            let errors = errors.chain([&event["error"], value_at(event, &["error", "message"])]);
            let why = match str_at(event, &["result"]) {
                "" => errors
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join("\n"),
                result => result.to_owned(),
            };
            let reason = self.failure(event);
            emit(Act::Failed {
                why: why.into(),
                reason,
            });
        } else {
            self.limit = None;
            emit(Act::Finished(str_at(event, &["result"]).into()));
        }
        self.error.clear();
        let in_background = match self.background_tasks {
            Some(tasks) => tasks > 0,
            None => self.sent_to_background,
        };
        if !in_background && u64_at(event, &["queued_turn_count"]) == 0 {
            emit(Act::RunEnded);
        }
    }

    /// Returns the failure that a result's fields describe; `None` if they describe none. The
    /// result's message may be more specific.
    fn failure(&self, event: &Value) -> Option<AgentFailure> {
        let kind = match (
            str_at(event, &["terminal_reason"]),
            str_at(event, &["api_error"]),
        ) {
            ("prompt_too_long", _) => FailureKind::Context,
            (_, "usage_limit_reached") => FailureKind::UsageLimit,
            _ if str_at(event, &["stop_reason"]) == "refusal" => FailureKind::Refused,
            _ => match (self.error.as_str(), u64_at(event, &["api_error_status"])) {
                ("rate_limit", _) => FailureKind::RateLimit,
                ("overloaded", _) | ("server_error", 503 | 529) => FailureKind::Overloaded,
                ("authentication_failed", _) => FailureKind::Login,
                ("billing_error", _) => FailureKind::Credit,
                ("model_not_found", _) => FailureKind::Model,
                ("server_error", _) => FailureKind::Unavailable,
                (_, status) => kind_for_status(status)?,
            },
        };
        match kind {
            FailureKind::UsageLimit | FailureKind::RateLimit => self.limit.or(Some(kind.into())),
            kind => Some(kind.into()),
        }
    }

    /// Emits the part of a result's usage that its messages did not include.
    fn result_usage(&mut self, event: &Value, emit: &mut ActSink<'_>) {
        if let Some(models) = event["modelUsage"]
            .as_object()
            .filter(|models| !models.is_empty())
        {
            for (model, usage) in models {
                let total = Tokens {
                    input: u64_at(usage, &["inputTokens"]),
                    cache_read: u64_at(usage, &["cacheReadInputTokens"]),
                    cache_write: u64_at(usage, &["cacheCreationInputTokens"]),
                    output: u64_at(usage, &["outputTokens"]),
                };
                self.meter.set_model_total(model, total, emit);
            }
        } else {
            self.unnamed_tokens += self.tokens(&event["usage"]);
            self.meter.set_total(&self.model, self.unnamed_tokens, emit);
        }
        if let Some(total) = event["total_cost_usd"].as_f64() {
            self.meter.set_total_cost(total, emit);
        }
    }

    fn tokens(&self, usage: &Value) -> Tokens {
        let mut tokens = tokens(usage);
        if self.input_includes_cached {
            tokens.input = tokens
                .input
                .saturating_sub(tokens.cache_read)
                .saturating_sub(tokens.cache_write);
        }
        tokens
    }
}

impl EventDecoder for ClaudeDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "system" => self.system(event, emit),
            "assistant" => self.assistant(event, emit),
            "user" => self.user(event, emit),
            "rate_limit_event" => self.rate_limit(&event["rate_limit_info"], emit),
            "result" => self.result(event, emit),
            "stream_event" => emit(Act::keepalive()),
            _ => return false,
        }
        true
    }

    fn tools(&mut self) -> &mut ToolTracker {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy() || self.background_tasks.is_some_and(|tasks| tasks > 0)
    }
}

/// Returns the text of a tool's result: a string, or a list whose first block is text.
fn block_text(content: &Value) -> &str {
    content
        .as_str()
        .unwrap_or_else(|| str_at(&content[0], &["text"]))
}

/// Reads token counts under the field names of Anthropic's API.
pub(super) fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: u64_at(usage, &["input_tokens"]),
        cache_read: u64_at(usage, &["cache_read_input_tokens"]),
        cache_write: u64_at(usage, &["cache_creation_input_tokens"]),
        output: u64_at(usage, &["output_tokens"]),
    }
}
