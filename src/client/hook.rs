//! The hook protocol of Claude Code and Codex: the JSON input that a client passes to a hook, and
//! the JSON response of the hook.

use super::json;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::PathBuf;

/// Maximum size of a hook's input, in bytes.
const INPUT_MAX: u64 = 64 << 20;
/// Maximum length of a session ID, in bytes.
const SESSION_ID_MAX: usize = 200;

/// The input of a hook. Unknown fields are ignored. Most fields are present for some events only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookInput {
    /// The ID of the session that the hook runs for.
    pub session_id: String,
    /// The path of the session's transcript; `None` if the client does not report it.
    pub transcript_path: Option<PathBuf>,
    /// The session's working directory; `None` if the client does not report it.
    pub cwd: Option<PathBuf>,
    /// The event that triggered the hook, such as `Stop`; `None` if the client does not report it.
    pub hook_event_name: Option<String>,
    /// The prompt that the user typed; `None` for events other than a prompt.
    pub prompt: Option<String>,
    /// The agent's last message: empty if the message has no text, `None` if the client does not
    /// report it.
    pub last_assistant_message: Option<String>,
    /// Whether a hook has already prevented this session from stopping.
    pub stop_hook_active: bool,
    /// The service error that ended the turn; `None` if the turn did not fail.
    pub error: Option<String>,
    /// The ID of the subagent that the event is about; `None` for the agent itself.
    pub agent_id: Option<String>,
    /// Why the session ended; `None` for other events.
    pub reason: Option<String>,
    /// The client's permission mode: the actions that the agent may take without asking; `None` if
    /// the client does not report it.
    pub permission_mode: Option<String>,
}

impl HookInput {
    /// Reads and parses the input. An error is a message that describes what is wrong with the
    /// input.
    pub fn read(from: impl Read) -> Result<Self, String> {
        let mut bytes = Vec::new();
        from.take(INPUT_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        if bytes.len() as u64 > INPUT_MAX {
            return Err(format!("more than {} MiB of input", INPUT_MAX >> 20));
        }
        if bytes.trim_ascii().is_empty() {
            return Err("empty input".into());
        }
        let input =
            json::from_slice_lossy(&bytes).map_err(|error| format!("invalid JSON: {error}"))?;
        let mut fields = match input {
            Value::Object(fields) => fields,
            other => {
                return Err(format!(
                    "expected a JSON object, found {}",
                    describe(&other)
                ));
            }
        };
        let last = match fields.get("last_assistant_message") {
            None => None,
            Some(_) => {
                Some(take_string(&mut fields, "last_assistant_message")?.unwrap_or_default())
            }
        };
        let mut string = |key| take_string(&mut fields, key);
        let path = |text: Option<String>| text.filter(|text| !text.is_empty()).map(PathBuf::from);
        Ok(Self {
            session_id: validate_session_id(string("session_id")?)?,
            transcript_path: path(string("transcript_path")?),
            cwd: path(string("cwd")?),
            hook_event_name: string("hook_event_name")?,
            prompt: string("prompt")?,
            last_assistant_message: last,
            error: string("error")?,
            agent_id: string("agent_id")?,
            reason: string("reason")?,
            permission_mode: string("permission_mode")?,
            stop_hook_active: match fields.get("stop_hook_active") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(active)) => *active,
                Some(other) => {
                    return Err(format!(
                        "`stop_hook_active` must be a boolean, not {}",
                        describe(other)
                    ));
                }
            },
        })
    }
}

/// Removes and returns a string field; `None` if it is missing or null.
fn take_string(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!(
            "`{key}` must be a string, not {}",
            describe(&other)
        )),
    }
}

/// Checks that the session ID exists and can be part of a file name.
fn validate_session_id(id: Option<String>) -> Result<String, String> {
    let id = id.ok_or("missing field `session_id`")?;
    let has_invalid_char = id.contains(|c: char| c.is_control() || c == '/');
    if id.is_empty() || id.len() > SESSION_ID_MAX || has_invalid_char {
        let short: String = id.chars().take(60).collect();
        return Err(format!("invalid `session_id`: {short:?}"));
    }
    Ok(id)
}

/// Returns the name of a JSON value's type, for messages.
fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A hook's response to the client. Messages are shown to the user only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookResponse {
    /// Let the client proceed: the agent stops, or the prompt is accepted.
    Allow {
        /// A message for the user; `None` for no message.
        message: Option<String>,
    },
    /// Keep the agent from stopping, and continue with another prompt.
    Block {
        /// The prompt with which the agent continues.
        reason: String,
        /// A message for the user; `None` for no message.
        message: Option<String>,
    },
    /// Accept the prompt and add context to it.
    AddContext {
        /// The context for the agent.
        text: String,
        /// A message for the user; `None` for no message.
        message: Option<String>,
    },
    /// Reject the prompt before the agent sees it.
    RejectPrompt {
        /// The explanation that the user sees.
        reason: String,
    },
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<HookSpecificOutput<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HookSpecificOutput<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

impl HookResponse {
    /// Returns a response that lets the client proceed, without a message.
    pub fn allow() -> Self {
        Self::Allow { message: None }
    }

    /// Returns a response that lets the client proceed, with a message for the user.
    pub fn allow_with_message(message: String) -> Self {
        Self::Allow {
            message: Some(message),
        }
    }

    /// Puts notes before the message for the user.
    #[must_use]
    pub fn with_notes(mut self, notes: &str) -> Self {
        let (Self::Allow { message }
        | Self::Block { message, .. }
        | Self::AddContext { message, .. }) = &mut self
        else {
            return self;
        };
        let lines = [Some(notes), message.as_deref()];
        *message = Some(lines.into_iter().flatten().collect::<Vec<_>>().join("\n"));
        self
    }

    /// Serializes the response; `None` if there is nothing to print.
    pub fn to_json(&self) -> Option<String> {
        let mut json = ResponseJson::default();
        match self {
            Self::Allow { message: None } => return None,
            Self::Allow { message } => json.system_message = message.as_deref(),
            Self::Block { reason, message } => {
                (json.decision, json.reason) = (Some("block"), Some(reason.as_str()));
                json.system_message = message.as_deref();
            }
            Self::AddContext { text, message } => {
                json.hook_specific_output = Some(HookSpecificOutput {
                    hook_event_name: "UserPromptSubmit",
                    additional_context: text,
                });
                json.system_message = message.as_deref();
            }
            Self::RejectPrompt { reason } => {
                (json.decision, json.reason) = (Some("block"), Some(reason.as_str()));
            }
        }
        Some(serde_json::to_string(&json).expect("strings serialize"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(input: &Value) -> Result<HookInput, String> {
        HookInput::read(input.to_string().as_bytes())
    }

    #[test]
    fn a_stop_event_is_parsed_and_unknown_fields_are_ignored() {
        let event = json!({
            "session_id": "0b1b93a5-6c35-4b20", "transcript_path": "/t.jsonl", "cwd": "/work", "prompt_id": "p",
            "permission_mode": "default", "effort": { "level": "medium" }, "hook_event_name": "Stop",
            "stop_hook_active": true, "last_assistant_message": "Done.", "background_tasks": [], "session_crons": [],
        });
        let read = read(&event).unwrap();
        assert_eq!(
            (read.session_id.as_str(), read.hook_event_name.as_deref()),
            ("0b1b93a5-6c35-4b20", Some("Stop"))
        );
        assert_eq!(read.transcript_path, Some("/t.jsonl".into()));
        assert_eq!(read.cwd, Some("/work".into()));
        assert_eq!(read.permission_mode.as_deref(), Some("default"));
        assert_eq!(
            (
                read.last_assistant_message.as_deref(),
                read.stop_hook_active
            ),
            (Some("Done."), true)
        );
        assert_eq!(
            (read.prompt, read.error, read.agent_id, read.reason),
            (None, None, None, None)
        );
    }

    #[test]
    fn an_empty_last_message_differs_from_a_missing_one() {
        let last = |fields: Value| read(&fields).unwrap().last_assistant_message;
        assert_eq!(last(json!({ "session_id": "s" })), None);
        assert_eq!(
            last(json!({ "session_id": "s", "last_assistant_message": null })),
            Some(String::new())
        );
        assert_eq!(
            last(json!({ "session_id": "s", "last_assistant_message": "" })),
            Some(String::new())
        );
    }

    #[test]
    fn invalid_input_is_rejected_with_a_reason() {
        for (input, error) in [
            ("", "empty input"),
            (" \n", "empty input"),
            ("[]", "expected a JSON object, found a list"),
            ("{}", "missing field `session_id`"),
            (r#"{"session_id":null}"#, "missing field `session_id`"),
            (
                r#"{"session_id":5}"#,
                "`session_id` must be a string, not a number",
            ),
            (r#"{"session_id":""}"#, "invalid `session_id`: \"\""),
            (r#"{"session_id":"../x"}"#, "invalid `session_id`: \"../x\""),
            (
                r#"{"session_id":"a\nb"}"#,
                "invalid `session_id`: \"a\\nb\"",
            ),
            (
                r#"{"session_id":"s","cwd":[]}"#,
                "`cwd` must be a string, not a list",
            ),
            (
                r#"{"session_id":"s","last_assistant_message":{}}"#,
                "`last_assistant_message` must be a string, not an object",
            ),
            (
                r#"{"session_id":"s","stop_hook_active":"yes"}"#,
                "`stop_hook_active` must be a boolean, not a string",
            ),
        ] {
            assert_eq!(
                HookInput::read(input.as_bytes()),
                Err(error.to_owned()),
                "{input}"
            );
        }
        let long = read(&json!({ "session_id": "x".repeat(201) })).unwrap_err();
        assert!(long.len() < 150, "{long}");
        for broken in [
            "{",
            "nonsense",
            r#"{"session_id":"s"} x"#,
            &"[".repeat(100_000),
        ] {
            assert!(
                HookInput::read(broken.as_bytes())
                    .unwrap_err()
                    .starts_with("invalid JSON: "),
                "{broken}"
            );
        }
        assert_eq!(
            HookInput::read(std::io::repeat(b' ')),
            Err("more than 64 MiB of input".into())
        );
    }

    #[test]
    fn any_text_is_passed_through() {
        let text = "\"quotes\" $(id) `x` \\ \n\u{0}\u{2028} 🎉";
        let read =
            read(&json!({ "session_id": "s", "prompt": text, "last_assistant_message": text }))
                .unwrap();
        assert_eq!(
            (
                read.prompt.as_deref(),
                read.last_assistant_message.as_deref()
            ),
            (Some(text), Some(text))
        );
        let cut = HookInput::read(
            br#"{"session_id":"s","last_assistant_message":"cut \ud83d"}"#.as_slice(),
        )
        .unwrap();
        assert_eq!(cut.last_assistant_message.as_deref(), Some("cut \u{fffd}"));
    }

    #[test]
    fn any_input_is_parsed_or_rejected_without_a_panic() {
        const PIECES: [&str; 20] = [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"session_id\"",
            "\"s\"",
            "\"prompt\"",
            "\"stop_hook_active\"",
            "null",
            "true",
            "1",
            "\"",
            "\\",
            "\"\\ud83d\"",
            "\"cwd\"",
            " ",
            "\"last_assistant_message\"",
            "\u{0}",
        ];
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..20_000 {
            let mut fields: String = (0..rng.usize(..8))
                .map(|_| PIECES[rng.usize(..PIECES.len())])
                .collect();
            if rng.bool() {
                fields = format!("{{\"session_id\":\"s\",\"prompt\":{fields}}}");
            }
            match HookInput::read(fields.as_bytes()) {
                Ok(read) => assert!(!read.session_id.is_empty(), "{seed}: {fields}"),
                Err(error) => assert!(
                    !error.is_empty() && error.len() < 300,
                    "{seed}: {fields}: {error}"
                ),
            }
        }
    }

    #[test]
    fn responses_serialize_as_clients_expect() {
        let message = || Some("for \"you\"".to_owned());
        let reason = || "go\non".to_owned();
        for (response, json) in [
            (HookResponse::Allow { message: None }, None),
            (
                HookResponse::Allow { message: message() },
                Some(r#"{"systemMessage":"for \"you\""}"#),
            ),
            (
                HookResponse::Block {
                    reason: reason(),
                    message: None,
                },
                Some(r#"{"decision":"block","reason":"go\non"}"#),
            ),
            (
                HookResponse::Block {
                    reason: reason(),
                    message: message(),
                },
                Some(r#"{"decision":"block","reason":"go\non","systemMessage":"for \"you\""}"#),
            ),
            (
                HookResponse::AddContext {
                    text: reason(),
                    message: message(),
                },
                Some(concat!(
                    r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"go\non"},"#,
                    r#""systemMessage":"for \"you\""}"#
                )),
            ),
            (
                HookResponse::RejectPrompt { reason: reason() },
                Some(r#"{"decision":"block","reason":"go\non"}"#),
            ),
        ] {
            assert_eq!(response.to_json().as_deref(), json);
        }
    }
}
