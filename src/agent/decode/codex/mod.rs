//! Decodes Codex 0.166 with `exec --json`.

use super::ActSink;
use super::json_lines::EventDecoder;
use super::json_path::{str_at, u64_at};
use super::tools::ToolTracker;
use super::usage::UsageMeter;
use crate::engine::Act;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::usage::{SessionUsage, Tokens};
use serde_json::Value;

pub(crate) mod rollout;

pub(super) struct CodexDecoder {
    tools: ToolTracker,
    meter: UsageMeter,
    thread: String,
    /// The last message; empty if a tool call followed it.
    message: String,
    /// The message of the last error event. It counts as a failure unless a turn ends after it.
    error: String,
}

impl CodexDecoder {
    /// Creates a decoder for Codex. The agent may resume one of `sessions`, which Codex calls
    /// threads.
    pub(super) fn resuming(tools: ToolTracker, sessions: &[SessionUsage]) -> Self {
        Self {
            tools,
            meter: UsageMeter::resuming(sessions),
            thread: String::new(),
            message: String::new(),
            error: String::new(),
        }
    }

    fn item(&mut self, event_type: &str, item: &Value, emit: &mut ActSink<'_>) -> bool {
        let (id, done) = (str_at(item, &["id"]), event_type == "item.completed");
        let (name, about) = match str_at(item, &["type"]) {
            "agent_message" if done => {
                let text = str_at(item, &["text"]);
                text.clone_into(&mut self.message);
                emit(Act::Text(format!("{}\n", text.trim_end()).into()));
                return true;
            }
            "reasoning" if done => {
                emit(Act::Thinking(str_at(item, &["text"]).into()));
                return true;
            }
            // Only a warning: failures are reported as `turn.failed`.
            "error" if done => {
                emit(Act::SideOutput(str_at(item, &["message"]).into()));
                return true;
            }
            "agent_message" | "reasoning" | "error" | "todo_list" => return true,
            "command_execution" => (
                "shell",
                self.tools.shorten(strip_shell(str_at(item, &["command"]))),
            ),
            "file_change" => {
                let changes = item["changes"].as_array().into_iter().flatten();
                let paths: Vec<&str> = changes.map(|change| str_at(change, &["path"])).collect();
                ("edit", self.tools.shorten(&paths.join(" ")))
            }
            "mcp_tool_call" => (
                str_at(item, &["tool"]),
                self.tools.describe(&item["arguments"]),
            ),
            "web_search" => ("web_search", self.tools.describe(item)),
            "collab_tool_call" => (str_at(item, &["tool"]), self.tools.describe(item)),
            _ => return false,
        };
        self.message.clear();
        self.tools.start_about(id, name, about.clone(), emit);
        if done {
            let status = str_at(item, &["status"]);
            if status == "declined" {
                emit(Act::Denied(format!("{name} {about}").into()));
            }
            let exit_code = item["exit_code"].as_i64().unwrap_or(0);
            if matches!(status, "failed" | "declined") || exit_code != 0 {
                let error = match str_at(item, &["error", "message"]) {
                    "" => str_at(item, &["aggregated_output"]),
                    error => error,
                };
                let error = match exit_code {
                    0 => error.to_owned(),
                    code => format!("exit {code}\n{error}"),
                };
                self.tools.finish_failed(id, &error, emit);
            } else {
                self.tools.finish(id, emit);
            }
        }
        true
    }

    fn completed(&mut self, usage: &Value, emit: &mut ActSink<'_>) {
        let (cache_read, cache_write) = (
            u64_at(usage, &["cached_input_tokens"]),
            u64_at(usage, &["cache_write_input_tokens"]),
        );
        // Input tokens include cached ones.
        let input = u64_at(usage, &["input_tokens"])
            .saturating_sub(cache_read)
            .saturating_sub(cache_write);
        let total = Tokens {
            input,
            cache_read,
            cache_write,
            output: u64_at(usage, &["output_tokens"]),
        };
        self.meter.set_total("", total, emit);
        let message = std::mem::take(&mut self.message);
        self.end_run(Act::Finished(message.into()), emit);
    }

    fn failed(&mut self, why: &str, emit: &mut ActSink<'_>) {
        // The message contains at most a time of day; the thread's rollout file has the exact time.
        let limit = why.contains("usage limit").then(|| AgentFailure {
            until_ms: rollout::limit_reset(&self.thread).map(|epoch| epoch.saturating_mul(1000)),
            ..FailureKind::UsageLimit.into()
        });
        self.end_run(
            Act::Failed {
                why: why.into(),
                reason: limit,
            },
            emit,
        );
    }

    fn end_run(&mut self, end: Act<'_>, emit: &mut ActSink<'_>) {
        self.error.clear();
        self.tools.clear();
        emit(end);
        emit(Act::RunEnded);
    }
}

impl EventDecoder for CodexDecoder {
    fn decode(&mut self, event: &Value, emit: &mut ActSink<'_>) -> bool {
        match str_at(event, &["type"]) {
            "thread.started" => {
                str_at(event, &["thread_id"]).clone_into(&mut self.thread);
                self.meter.start_session(&self.thread);
                emit(Act::SessionId(self.thread.as_str().into()));
            }
            "turn.started" => {}
            event_type @ ("item.started" | "item.updated" | "item.completed") => {
                return self.item(event_type, &event["item"], emit);
            }
            "turn.completed" => self.completed(&event["usage"], emit),
            "turn.failed" => self.failed(str_at(event, &["error", "message"]), emit),
            "error" => {
                let message = str_at(event, &["message"]);
                if message.starts_with("Reconnecting") {
                    emit(Act::Retrying(message.into()));
                } else {
                    message.clone_into(&mut self.error);
                }
            }
            _ => return false,
        }
        true
    }

    fn finish(&mut self, emit: &mut ActSink<'_>) {
        // A failure before the first turn is reported only as an error event.
        if !self.error.is_empty() {
            let why = std::mem::take(&mut self.error);
            self.failed(&why, emit);
        }
    }

    fn tools(&mut self) -> &mut ToolTracker {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}

/// Removes a wrapper such as `sh -c '…'` from a command.
fn strip_shell(command: &str) -> &str {
    let inner = command
        .split_once("sh -lc ")
        .or_else(|| command.split_once("sh -c "));
    let Some((_, inner)) = inner.filter(|(shell, _)| !shell.contains(' ')) else {
        return command;
    };
    let quoted = ['\'', '"']
        .into_iter()
        .find_map(|quote| inner.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_without_their_shell() {
        for (command, expected) in [
            ("/bin/bash -lc 'exit 3'", "exit 3"),
            ("bash -lc \"echo 'a'\"", "echo 'a'"),
            ("/bin/zsh -c ls", "ls"),
            ("git push -c x", "git push -c x"),
            ("run me in sh -c x", "run me in sh -c x"),
            ("bash -lc '", "'"),
        ] {
            assert_eq!(strip_shell(command), expected, "{command}");
        }
    }
}
