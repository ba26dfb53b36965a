//! What a client tells its hooks, and how it wants to be answered.

use super::json;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::PathBuf;

/// No more is read of it.
const INPUT_MAX: u64 = 64 << 20;
/// A longer session id is none, in bytes.
const SESSION_MAX: usize = 200;

/// What a hook is told. Fields that are not known here are nobody's business.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Whose hook it is.
    pub session_id: String,
    /// Where the session is written down.
    pub transcript_path: Option<PathBuf>,
    /// Where the session works.
    pub cwd: Option<PathBuf>,
    /// What has happened.
    pub hook_event_name: Option<String>,
    /// What a person typed.
    pub prompt: Option<String>,
    /// The agent's last words: empty if it said none, nothing if the client does not tell.
    pub last_assistant_message: Option<String>,
    /// Whether a hook has made the session go on before.
    pub stop_hook_active: bool,
    /// Why the model's service failed.
    pub error: Option<String>,
    /// Which subagent it is about, if it is about one.
    pub agent_id: Option<String>,
    /// Why the session ends.
    pub reason: Option<String>,
    /// What the agent may do without asking.
    pub permission_mode: Option<String>,
}

impl Input {
    /// Reads what the client says, or says what is wrong with it.
    pub fn read(from: impl Read) -> Result<Self, String> {
        let mut bytes = Vec::new();
        from.take(INPUT_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read it: {error}"))?;
        if bytes.len() as u64 > INPUT_MAX {
            return Err(format!("it is larger than {} MiB", INPUT_MAX >> 20));
        }
        if bytes.trim_ascii().is_empty() {
            return Err("it is empty".into());
        }
        let mut fields =
            match json::read(&bytes).map_err(|error| format!("it is no JSON: {error}"))? {
                Value::Object(fields) => fields,
                other => return Err(format!("it must be an object, and is {}", kind(&other))),
            };
        let last = match fields.get("last_assistant_message") {
            None => None,
            Some(_) => Some(text(&mut fields, "last_assistant_message")?.unwrap_or_default()),
        };
        let mut text = |key| text(&mut fields, key);
        let path = |text: Option<String>| text.filter(|text| !text.is_empty()).map(PathBuf::from);
        Ok(Self {
            session_id: session(text("session_id")?)?,
            transcript_path: path(text("transcript_path")?),
            cwd: path(text("cwd")?),
            hook_event_name: text("hook_event_name")?,
            prompt: text("prompt")?,
            last_assistant_message: last,
            error: text("error")?,
            agent_id: text("agent_id")?,
            reason: text("reason")?,
            permission_mode: text("permission_mode")?,
            stop_hook_active: match fields.get("stop_hook_active") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(active)) => *active,
                Some(other) => {
                    return Err(format!(
                        "`stop_hook_active` must be true or false, and is {}",
                        kind(other)
                    ));
                }
            },
        })
    }
}

/// A field that must be a text if it is there.
fn text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` must be a text, and is {}", kind(&other))),
    }
}

fn session(id: Option<String>) -> Result<String, String> {
    let id = id.ok_or("it has no `session_id`")?;
    if id.is_empty() || id.len() > SESSION_MAX || id.contains(|c: char| c.is_control() || c == '/')
    {
        let short: String = id.chars().take(60).collect();
        return Err(format!("`session_id` is no name of a session: {short:?}"));
    }
    Ok(id)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What the client is told. A message is for the person alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Let it be.
    Go {
        /// For the person.
        message: Option<String>,
    },
    /// Do not stop.
    Block {
        /// What the agent is told instead.
        reason: String,
        /// For the person.
        message: Option<String>,
    },
    /// Take the prompt, and this with it.
    Context {
        /// What the agent is told besides.
        text: String,
        /// For the person.
        message: Option<String>,
    },
    /// Do not take the prompt.
    Refuse {
        /// What the person is told.
        reason: String,
    },
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Out<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

impl Answer {
    /// Let it be, without a word.
    pub fn go() -> Self {
        Self::Go { message: None }
    }

    /// Let it be, with a word to the person.
    pub fn told(message: String) -> Self {
        Self::Go {
            message: Some(message),
        }
    }

    /// What is printed, if anything.
    pub fn to_json(&self) -> Option<String> {
        let mut out = Out::default();
        match self {
            Self::Go { message: None } => return None,
            Self::Go { message } => out.system_message = message.as_deref(),
            Self::Block { reason, message } => {
                (out.decision, out.reason) = (Some("block"), Some(reason.as_str()));
                out.system_message = message.as_deref();
            }
            Self::Context { text, message } => {
                out.hook_specific_output = Some(Specific {
                    hook_event_name: "UserPromptSubmit",
                    additional_context: text,
                });
                out.system_message = message.as_deref();
            }
            Self::Refuse { reason } => {
                (out.decision, out.reason) = (Some("block"), Some(reason.as_str()))
            }
        }
        Some(serde_json::to_string(&out).expect("texts are JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(input: &Value) -> Result<Input, String> {
        Input::read(input.to_string().as_bytes())
    }

    #[test]
    fn a_stop_is_read_as_clients_tell_it() {
        let told = json!({
            "session_id": "0b1b93a5-6c35-4b20", "transcript_path": "/t.jsonl", "cwd": "/work", "prompt_id": "p",
            "permission_mode": "default", "effort": { "level": "medium" }, "hook_event_name": "Stop",
            "stop_hook_active": true, "last_assistant_message": "Done.", "background_tasks": [], "session_crons": [],
        });
        let read = read(&told).unwrap();
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
    fn silence_is_told_from_not_telling() {
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
    fn what_is_wrong_is_said() {
        for (input, wrong) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("[]", "it must be an object, and is a list"),
            ("{}", "it has no `session_id`"),
            (r#"{"session_id":null}"#, "it has no `session_id`"),
            (
                r#"{"session_id":5}"#,
                "`session_id` must be a text, and is a number",
            ),
            (
                r#"{"session_id":""}"#,
                "`session_id` is no name of a session: \"\"",
            ),
            (
                r#"{"session_id":"../x"}"#,
                "`session_id` is no name of a session: \"../x\"",
            ),
            (
                r#"{"session_id":"a\nb"}"#,
                "`session_id` is no name of a session: \"a\\nb\"",
            ),
            (
                r#"{"session_id":"s","cwd":[]}"#,
                "`cwd` must be a text, and is a list",
            ),
            (
                r#"{"session_id":"s","last_assistant_message":{}}"#,
                "`last_assistant_message` must be a text, and is an object",
            ),
            (
                r#"{"session_id":"s","stop_hook_active":"yes"}"#,
                "`stop_hook_active` must be true or false, and is a text",
            ),
        ] {
            assert_eq!(
                Input::read(input.as_bytes()),
                Err(wrong.to_owned()),
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
                Input::read(broken.as_bytes())
                    .unwrap_err()
                    .starts_with("it is no JSON: "),
                "{broken}"
            );
        }
        assert_eq!(
            Input::read(std::io::repeat(b' ')),
            Err("it is larger than 64 MiB".into())
        );
    }

    #[test]
    fn any_words_come_through() {
        let words = "\"quotes\" $(id) `x` \\ \n\u{0}\u{2028} 🎉";
        let read =
            read(&json!({ "session_id": "s", "prompt": words, "last_assistant_message": words }))
                .unwrap();
        assert_eq!(
            (
                read.prompt.as_deref(),
                read.last_assistant_message.as_deref()
            ),
            (Some(words), Some(words))
        );
        let cut =
            Input::read(br#"{"session_id":"s","last_assistant_message":"cut \ud83d"}"#.as_slice())
                .unwrap();
        assert_eq!(cut.last_assistant_message.as_deref(), Some("cut \u{fffd}"));
    }

    #[test]
    fn whatever_a_client_says_is_read_or_refused() {
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
            match Input::read(fields.as_bytes()) {
                Ok(read) => assert!(!read.session_id.is_empty(), "{seed}: {fields}"),
                Err(wrong) => assert!(
                    !wrong.is_empty() && wrong.len() < 300,
                    "{seed}: {fields}: {wrong}"
                ),
            }
        }
    }

    #[test]
    fn answers_are_those_that_clients_expect() {
        let message = || Some("for \"you\"".to_owned());
        let reason = || "go\non".to_owned();
        for (answer, json) in [
            (Answer::Go { message: None }, None),
            (
                Answer::Go { message: message() },
                Some(r#"{"systemMessage":"for \"you\""}"#),
            ),
            (
                Answer::Block {
                    reason: reason(),
                    message: None,
                },
                Some(r#"{"decision":"block","reason":"go\non"}"#),
            ),
            (
                Answer::Block {
                    reason: reason(),
                    message: message(),
                },
                Some(r#"{"decision":"block","reason":"go\non","systemMessage":"for \"you\""}"#),
            ),
            (
                Answer::Context {
                    text: reason(),
                    message: message(),
                },
                Some(concat!(
                    r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"go\non"},"#,
                    r#""systemMessage":"for \"you\""}"#
                )),
            ),
            (
                Answer::Refuse { reason: reason() },
                Some(r#"{"decision":"block","reason":"go\non"}"#),
            ),
        ] {
            assert_eq!(answer.to_json().as_deref(), json);
        }
    }
}
