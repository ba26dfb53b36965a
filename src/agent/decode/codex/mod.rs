//! Codex' `exec --json`, 0.166.

use super::Tell;
use super::json_lines::Speech;
use super::tools::{Tools, count, text};
use super::usage::Meter;
use crate::engine::Act;
use crate::engine::failure::{Kind, Reason};
use crate::engine::usage::{Session, Tokens};
use serde_json::Value;

pub mod rollout;

pub struct Codex {
    tools: Tools,
    meter: Meter,
    thread: String,
    /// The last message; tools that came after it make it an earlier one.
    message: String,
    /// An error after which no turn has come to an end yet.
    error: String,
}

impl Codex {
    /// It counts on where a thread was left that it goes on with.
    pub fn after(tools: Tools, sessions: &[Session]) -> Self {
        let (thread, message, error) = Default::default();
        Self {
            tools,
            meter: Meter::after(sessions),
            thread,
            message,
            error,
        }
    }

    fn item(&mut self, stage: &str, item: &Value, tell: &mut Tell<'_>) -> bool {
        let (id, done) = (text(item, &["id"]), stage == "item.completed");
        let (name, about) = match text(item, &["type"]) {
            "agent_message" if done => {
                let words = text(item, &["text"]);
                words.clone_into(&mut self.message);
                tell(Act::Said(format!("{}\n", words.trim_end()).into()));
                return true;
            }
            "reasoning" if done => {
                tell(Act::Thought(text(item, &["text"]).into()));
                return true;
            }
            // A warning: only a turn that failed is a failure.
            "error" if done => {
                tell(Act::Noise(text(item, &["message"]).into()));
                return true;
            }
            "agent_message" | "reasoning" | "error" | "todo_list" => return true,
            "command_execution" => ("shell", self.tools.short(bare(text(item, &["command"])))),
            "file_change" => {
                let changes = item["changes"].as_array().into_iter().flatten();
                let paths: Vec<&str> = changes.map(|change| text(change, &["path"])).collect();
                ("edit", self.tools.short(&paths.join(" ")))
            }
            "mcp_tool_call" => (text(item, &["tool"]), self.tools.about(&item["arguments"])),
            "web_search" => ("web_search", self.tools.about(item)),
            "collab_tool_call" => (text(item, &["tool"]), self.tools.about(item)),
            _ => return false,
        };
        self.message.clear();
        self.tools.begin_about(id, name, about.clone(), tell);
        if done {
            let status = text(item, &["status"]);
            if status == "declined" {
                tell(Act::Denied(format!("{name} {about}").into()));
            }
            let exited = item["exit_code"].as_i64().unwrap_or(0);
            self.tools.end(
                id,
                !matches!(status, "failed" | "declined") && exited == 0,
                tell,
            );
        }
        true
    }

    fn completed(&mut self, usage: &Value, tell: &mut Tell<'_>) {
        let (cache_read, cache_write) = (
            count(usage, &["cached_input_tokens"]),
            count(usage, &["cache_write_input_tokens"]),
        );
        // All that was read is counted as input, from a cache or not.
        let input = count(usage, &["input_tokens"])
            .saturating_sub(cache_read)
            .saturating_sub(cache_write);
        let all = Tokens {
            input,
            cache_read,
            cache_write,
            output: count(usage, &["output_tokens"]),
        };
        self.meter.of_all("", all, tell);
        let words = std::mem::take(&mut self.message);
        self.over(Act::Finished(words.into()), tell);
    }

    fn failed(&mut self, why: &str, tell: &mut Tell<'_>) {
        // The words name a time of day at most; the thread's own file knows better.
        let limit = why.contains("usage limit").then(|| Reason {
            until_ms: rollout::reset(&self.thread).map(|epoch| epoch.saturating_mul(1000)),
            ..Kind::UsageLimit.into()
        });
        self.over(
            Act::Failed {
                why: why.into(),
                reason: limit,
            },
            tell,
        );
    }

    fn over(&mut self, end: Act<'_>, tell: &mut Tell<'_>) {
        self.error.clear();
        self.tools.forget();
        tell(end);
        tell(Act::Over);
    }
}

impl Speech for Codex {
    fn event(&mut self, event: &Value, tell: &mut Tell<'_>) -> bool {
        match text(event, &["type"]) {
            "thread.started" => {
                text(event, &["thread_id"]).clone_into(&mut self.thread);
                self.meter.session(&self.thread);
                tell(Act::Session(self.thread.as_str().into()));
            }
            "turn.started" => {}
            stage @ ("item.started" | "item.updated" | "item.completed") => {
                return self.item(stage, &event["item"], tell);
            }
            "turn.completed" => self.completed(&event["usage"], tell),
            "turn.failed" => self.failed(text(event, &["error", "message"]), tell),
            "error" => {
                let words = text(event, &["message"]);
                if words.starts_with("Reconnecting") {
                    tell(Act::Retrying(words.into()));
                } else {
                    words.clone_into(&mut self.error);
                }
            }
            _ => return false,
        }
        true
    }

    fn finish(&mut self, tell: &mut Tell<'_>) {
        // What is wrong before a turn begins is told by an error alone.
        if !self.error.is_empty() {
            let why = std::mem::take(&mut self.error);
            self.failed(&why, tell);
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn is_busy(&self) -> bool {
        self.tools.is_busy()
    }
}

/// A command without the shell around it.
fn bare(command: &str) -> &str {
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
    fn a_command_is_told_without_its_shell() {
        for (command, told) in [
            ("/bin/bash -lc 'exit 3'", "exit 3"),
            ("bash -lc \"echo 'a'\"", "echo 'a'"),
            ("/bin/zsh -c ls", "ls"),
            ("git push -c x", "git push -c x"),
            ("run me in sh -c x", "run me in sh -c x"),
            ("bash -lc '", "'"),
        ] {
            assert_eq!(bare(command), told, "{command}");
        }
    }
}
