//! Hook input that no client sends: deep, huge, of wrong types, not text, or without an end.

use super::{ID, Session};
use crate::kit::Test;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Returns inputs that a hook cannot use, each with a part of the reason that it gives.
fn useless() -> Vec<(Vec<u8>, &'static str)> {
    let field = |name: &str, value: Value| {
        let mut input = json!({ "session_id": ID, "hook_event_name": "Stop" });
        input[name] = value;
        (input.to_string().into_bytes(), "must be a")
    };
    let deep = |count: usize| "[".repeat(count);
    vec![
        (deep(200_000).into_bytes(), "invalid JSON"),
        (
            format!(
                "{{\"session_id\":\"{ID}\",\"x\":{}",
                "{\"a\":".repeat(100_000)
            )
            .into_bytes(),
            "invalid JSON",
        ),
        (vec![b' '; 1 << 20], "empty input"),
        (vec![0; 4096], "invalid JSON"),
        (vec![0xff; 4096], "invalid JSON"),
        (b"{\"session_id\":\"a\0b\"}".to_vec(), "invalid JSON"),
        (
            b"{\"session_id\":\"a\\u0000b\"}".to_vec(),
            "invalid `session_id`",
        ),
        (
            format!("{{\"session_id\":\"{ID}\"}} {{}}").into_bytes(),
            "invalid JSON",
        ),
        (
            format!("{{\"session_id\":\"{}\"}}", "i".repeat(5 << 20)).into_bytes(),
            "invalid `session_id`",
        ),
        field("session_id", json!(["x"])),
        field("prompt", json!({ "a": 1 })),
        field("cwd", json!(7)),
        field("transcript_path", json!([["x"]])),
        field("last_assistant_message", json!(true)),
        field("stop_hook_active", json!("yes")),
        field("hook_event_name", json!(1.5e300)),
    ]
}

#[test]
fn hostile_hook_input_changes_nothing_and_the_session_continues() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let before = test.journal(super::NAME).len();
    for (input, reason) in useless() {
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]).into_owned();
        let done = session.raw("stop", &input).exits(0);
        let answer: Value =
            serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{shown}: {done:?}"));
        let message = answer["systemMessage"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{shown}: {answer}");
        assert!(message.len() < 500, "{shown}: {answer}");
        assert_eq!(answer.get("decision"), None, "{shown}");
    }
    assert_eq!(test.journal(super::NAME).len(), before);
    session.assert_continues("one");
}

#[test]
fn odd_hook_input_that_can_be_used_is_used() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it --max-iterations 9");
    let cwd = test.workspace().display().to_string();
    // Of a repeated field the last one counts, as in every JSON parser.
    let twice = format!(
        "{{\"session_id\":\"other\",\"session_id\":\"{ID}\",\"cwd\":\"{cwd}\",\
         \"hook_event_name\":\"Stop\",\"last_assistant_message\":\"a\",\"last_assistant_message\":\"b\"}}"
    );
    let long = "word ".repeat(1 << 20);
    let long = json!({ "session_id": ID, "cwd": cwd, "hook_event_name": "Stop", "last_assistant_message": long });
    let mut invalid =
        format!("{{\"session_id\":\"{ID}\",\"cwd\":\"{cwd}\",\"hook_event_name\":\"Stop\",")
            .into_bytes();
    invalid.extend_from_slice(b"\"last_assistant_message\":\"caf\xe9 \\u0000 \\ud83d\"}");
    for input in [twice.into_bytes(), long.to_string().into_bytes(), invalid] {
        let done = session.raw("stop", &input).exits(0);
        let answer: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
        assert_eq!(answer["decision"], "block", "{answer}");
    }
    assert_eq!(test.events(super::NAME, "ended").len(), 3);
}

#[test]
fn a_client_that_never_closes_the_input_gets_a_response_in_time() {
    let test = Test::new();
    for input in ["", "{\"session_id\":"] {
        let mut command =
            test.ralph_command(&["hook", "stop", "--client", "claude", "--within", "1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        let answer = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(answer.contains("it is not complete in time"), "{answer}");
        drop(stdin);
    }
}
