//! Secrets in the event streams of agents: in pieces of a few characters, escaped for JSON, and in
//! several lines.

use super::leaks;
use crate::kit::{Done, Test};
use serde_json::{Value, json};
use std::fs;

/// A value as in a base64 text.
const VALUE: &str = "s3cr3t-Value+/=12345";
/// A value with characters that JSON escapes.
const ODD: &str = "pa\"ss\\word\té𝄞";
/// A made-up private key.
pub(super) const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7/l+tests0001\n\
    q3bWm9Y0n/ThisIsNotAKey+AtAll/ButItLooksLikeOne+ForTests/xyz0002\n\
    lastLineOfIt+tests=\n-----END PRIVATE KEY-----";
const SECRETS: [(&str, &str); 3] = [
    ("MY_SECRET_TOKEN", VALUE),
    ("ODD_PASSWORD", ODD),
    ("DEPLOY_KEY", PEM),
];
const VALUES: [&str; 3] = [VALUE, ODD, PEM];

/// Splits a text into pieces of `size` characters.
pub(super) fn pieces(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// Returns a run of pi that thinks and then says a message, in pieces.
pub(super) fn pi(message: &str, pieces: &[String]) -> Vec<Value> {
    let update = |kind: &str, delta: &str| {
        let event = json!({ "type": kind, "delta": delta });
        json!({ "type": "message_update", "assistantMessageEvent": event })
    };
    let content = json!([{ "type": "text", "text": message }]);
    let end = json!({ "role": "assistant", "content": content, "stopReason": "stop" });
    let mut events = vec![
        json!({ "type": "session", "id": "s" }),
        json!({ "type": "message_start" }),
    ];
    events.extend(pieces.iter().map(|piece| update("thinking_delta", piece)));
    events.extend(pieces.iter().map(|piece| update("text_delta", piece)));
    events.push(json!({ "type": "message_end", "message": end }));
    events.push(json!({ "type": "agent_end" }));
    events
}

/// Returns a run of copilot that says a message in pieces and never repeats it as a whole.
pub(super) fn copilot(message: &str, pieces: &[String]) -> Vec<Value> {
    let delta = |piece: &String| {
        let data = json!({ "messageId": "m", "deltaContent": piece });
        json!({ "type": "assistant.message_delta", "data": data })
    };
    let tool =
        json!({ "toolCallId": "t", "toolName": "bash", "arguments": { "command": message } });
    let failed = json!({ "toolCallId": "t", "success": false, "error": { "message": message } });
    let mut events = vec![
        json!({ "type": "tool.execution_start", "data": tool }),
        json!({ "type": "tool.execution_complete", "data": failed }),
    ];
    events.extend(pieces.iter().map(delta));
    events.push(json!({ "type": "result", "sessionId": "s", "exitCode": 0 }));
    events
}

/// Writes events as lines of JSON. If `is_ascii`, all other characters are escaped.
pub(super) fn lines(events: &[Value], is_ascii: bool) -> String {
    let all: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
    let mut text = all.concat();
    if is_ascii {
        let escape = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            c => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                let units: Vec<String> = units.map(|unit| format!("\\u{unit:04x}")).collect();
                units.concat()
            }
        };
        text = text.chars().map(escape).collect();
    }
    text
}

/// A program that prints a stream.
pub(super) const PRINTS: &str = "#!/bin/sh\ncat >/dev/null\ncat ../stream\n";

/// Runs an agent that prints `stream`. All secrets are in its environment.
pub(super) fn run(
    test: &Test,
    agent: &str,
    stream: &str,
    secrets: &[(&str, &str)],
    more: &[&str],
) -> Done {
    fs::write(test.root().join("stream"), stream).unwrap();
    let args = ["run", "x", "--name", "a", "--agent", agent, "-m", "1"];
    let mut command = test.ralph_command(&[&args, more].concat());
    command.envs(secrets.iter().copied());
    test.start_command(command).end()
}

#[test]
fn a_secret_that_is_streamed_in_pieces_is_redacted() {
    for agent in ["pi", "copilot"] {
        let test = Test::new().on_path(agent, PRINTS);
        let message = format!("The token is {VALUE}.\nThe password is {ODD}.\n{PEM}\nEnd.");
        let pieces = pieces(&message, 3);
        let events = match agent {
            "pi" => pi(&message, &pieces),
            _ => copilot(&message, &pieces),
        };
        let done = run(&test, agent, &lines(&events, false), &SECRETS, &[]).exits(1);
        leaks::assert_none_printed(&done, &VALUES);
        let redacted = [
            "The token is [MY_SECRET_TOKEN].",
            "The password is [ODD_PASSWORD].",
        ];
        for line in redacted.iter().chain(&["[DEPLOY_KEY]", "End."]) {
            assert!(done.out.contains(&format!("{line}\n")), "{}", done.out);
        }
        let logs = test.ralph(&["logs", "a"]).exits(0).says(redacted[0]);
        leaks::assert_none_printed(&logs, &VALUES);
        let raw = test.ralph(&["logs", "a", "--raw"]).exits(0);
        leaks::assert_none_printed(&raw, &VALUES);
        leaks::assert_none(&test, &VALUES);
        let activity = test.read_loop("a", "iterations/0001/activity.jsonl");
        assert!(
            activity.contains("token is [MY_SECRET_TOKEN].\\n"),
            "{activity}"
        );
        assert!(
            activity.contains("password is [ODD_PASSWORD]"),
            "{activity}"
        );
    }
}

#[test]
fn a_secret_that_is_escaped_in_a_stream_is_redacted_everywhere() {
    for is_ascii in [false, true] {
        let test = Test::new().on_path("pi", PRINTS);
        let message = format!("<blocked>log in with {ODD} or\n{PEM}</blocked>");
        let events = pi(&message, std::slice::from_ref(&message));
        let notify = "cat >told; printf %s \"$RALPH_RESULT\" >>told";
        let stream = lines(&events, is_ascii);
        let done = run(&test, "pi", &stream, &SECRETS, &["--notify", notify]).exits(3);
        leaks::assert_none_printed(&done, &VALUES);
        let why = "log in with [ODD_PASSWORD] or [DEPLOY_KEY]";
        assert_eq!(test.status("a")["outcome"]["why"], why);
        let told = test.read("told");
        assert!(told.contains(why), "{told}");
        for form in VALUES.iter().flat_map(|value| leaks::forms(value)) {
            assert!(!told.contains(&form), "{told}");
        }
        leaks::assert_none(&test, &VALUES);
        let status = test.ralph(&["status", "a"]).exits(0).says(why);
        leaks::assert_none_printed(&status, &VALUES);
        leaks::assert_none_printed(&test.ralph(&["bus", "tail", "a"]), &VALUES);
    }
}

#[test]
fn a_secret_of_several_lines_is_redacted_in_plain_output_and_in_the_next_prompt() {
    let test = Test::git().program(
        "mine",
        "#!/bin/sh\nprintf '%s\\n' \"$DEPLOY_KEY\" | sed 's/^/> /'\necho $DEPLOY_KEY\n\
         printf '%s' \"$DEPLOY_KEY\" >leaked\nprintf '%s\\n%s' \"$ODD_PASSWORD\" \"$DEPLOY_KEY\" \
         >\"$RALPH_TASK_DIR/WAIT\"\n",
    );
    let args = ["run", "x", "--name", "a", "-m", "2", "--max-stalls", "0"];
    let check = ["--check", "printf '%s\\n' \"$DEPLOY_KEY\"; false"];
    let mut command = test.ralph_command(&[&args[..], &check, &["--", "./mine"]].concat());
    command.envs(SECRETS);
    let done = test.start_command(command).end().exits(3);
    leaks::assert_none_printed(&done, &VALUES);
    let mut again = test.ralph_command(&["resume", "a"]);
    again.envs(SECRETS);
    leaks::assert_none_printed(&test.start_command(again).end(), &VALUES);
    leaks::assert_none(&test, &VALUES);
    let prompt = test.prompt("a", 2);
    assert!(prompt.contains("+[DEPLOY_KEY:2]\n"), "{prompt}");
    assert!(prompt.contains("\n[DEPLOY_KEY]\n"), "{prompt}");
}

#[test]
fn what_people_type_is_redacted() {
    let test = Test::git();
    let checks = format!(": '{VALUE}'; false");
    let message = format!("use {VALUE}, {ODD} and {PEM}");
    let set = |args: &[&str]| {
        let mut command = test.ralph_command(args);
        command.envs(SECRETS);
        let done = test.start_command(command).end();
        leaks::assert_none_printed(&done, &VALUES);
        done
    };
    let run = [
        "run", &message, "--name", "a", "-m", "1", "--check", &checks,
    ];
    set(&[&run[..], &["--dry-run", "--", "true"]].concat()).exits(0);
    set(&[&run[..], &["--", "true"]].concat()).exits(1);
    assert!(
        test.loop_dir("a")
            .join("iterations/0001/check-my-secret-token-false.log")
            .exists()
    );
    set(&["say", "a", &message]).exits(0);
    set(&["bus", "post", &message]).exits(0);
    set(&["bus", "post", "--loop", "a", &message]).exits(0);
    test.ralph(&["bus", "tail"])
        .exits(0)
        .says("use [MY_SECRET_TOKEN], [ODD_PASSWORD] and [DEPLOY_KEY]");
    leaks::assert_none(&test, &VALUES);
    set(&["set", "a", "max-iterations=2"]).exits(0);
    set(&["resume", "a", "--answer", &message]).exits(1);
    leaks::assert_none(&test, &VALUES);
    let prompt = test.prompt("a", 2);
    assert!(
        prompt.contains("use [MY_SECRET_TOKEN], [ODD_PASSWORD] and [DEPLOY_KEY]"),
        "{prompt}"
    );
}

#[test]
fn a_commit_message_contains_no_secret() {
    let test = Test::git().file(
        "PROMPT.md",
        &format!("Deploy with {VALUE} now\n\nand {PEM}\n"),
    );
    test.sh("git add -A && git commit -qm prompt");
    let args = [
        "run",
        "--prompt-file",
        "PROMPT.md",
        "--name",
        "a",
        "--check",
        "test -e made",
    ];
    let more = [
        "--until-green",
        "--scm",
        "commit",
        "--",
        "sh",
        "-c",
        "touch made",
    ];
    let mut command = test.ralph_command(&[&args[..], &more].concat());
    command.envs(SECRETS);
    let done = test.start_command(command).end().exits(0);
    leaks::assert_none_printed(&done, &VALUES);
    let log = test.sh("git log -1 --format=%B");
    assert!(
        log.starts_with("Deploy with [MY_SECRET_TOKEN] now\n"),
        "{log}"
    );
    leaks::assert_none(&test, &VALUES);
}

#[test]
fn a_secret_in_the_agents_own_settings_is_redacted_in_its_output() {
    let test = Test::new().on_path("mine", "#!/bin/sh\necho \"key $SHOP_API_KEY\"\n");
    let settings = format!(
        "agent = \"mine\"\napprove = \"edits\"\n[agents.mine]\ncommand = [\"mine\"]\n\
         [agents.mine.approve.edits]\nenv = {{ SHOP_API_KEY = \"{VALUE}\" }}\n"
    );
    test.write("../home/.config/ralph/settings.toml", &settings);
    let done = test.ralph(&["run", "x", "--name", "a", "-m", "1"]).exits(1);
    leaks::assert_none_printed(&done, &[VALUE]);
    assert!(done.out.contains("key [SHOP_API_KEY]\n"), "{}", done.out);
    assert_eq!(
        test.read_loop("a", "iterations/0001/output.log"),
        "key [SHOP_API_KEY]\n"
    );
}
