//! Transcripts in the shape of real ones: complete, partial, still being written, and huge.

use super::TranscriptFormat::Claude;
use super::*;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// Builds a line of a conversation with the fields that every such line has.
fn line(kind: &str, message: &Value, more: &Value) -> String {
    let mut line = json!({
        "parentUuid": "9f00bb85", "isSidechain": false, "type": kind, "message": message, "uuid": "f6ba6627",
        "timestamp": "2026-01-02T03:04:05.678Z", "userType": "external", "entrypoint": "cli", "cwd": "/work",
        "sessionId": "77175d39", "version": "2.1.325", "gitBranch": "main",
    });
    line.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    line.to_string() + "\n"
}

fn user(text: &str) -> String {
    line(
        "user",
        &json!({ "role": "user", "content": text }),
        &json!({ "promptId": "f3930d52" }),
    )
}

fn tool_result() -> String {
    let content =
        json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "\"assistant\"" }]);
    line(
        "user",
        &json!({ "role": "user", "content": content }),
        &json!({ "toolUseResult": { "stdout": "x" } }),
    )
}

fn assistant(id: &str, part: &Value) -> String {
    assistant_with(
        id,
        &json!([part]),
        &json!({ "apiBlockIndex": 0, "requestId": "req_1" }),
    )
}

fn assistant_with(id: &str, content: &Value, more: &Value) -> String {
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "end_turn", "usage": { "input_tokens": 5, "output_tokens": 5 },
    });
    line("assistant", &message, more)
}

fn message(id: &str, text: &str) -> String {
    assistant(id, &json!({ "type": "text", "text": text }))
}

fn tool_use(id: &str) -> String {
    assistant(
        id,
        &json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "true" } }),
    )
}

fn thinking(id: &str) -> String {
    assistant(
        id,
        &json!({ "type": "thinking", "thinking": "<promise>DONE</promise>", "signature": "x" }),
    )
}

/// Returns lines that are not part of the conversation.
fn unrelated() -> String {
    [
        json!({ "type": "last-prompt", "lastPrompt": "\"type\":\"user\"", "sessionId": "s" }),
        json!({ "parentUuid": "a", "attachment": { "type": "prompt_snapshot", "role": "assistant" },
                "type": "attachment", "renderedRole": "user" }),
        json!({ "type": "api-request-blob", "message": { "role": "user", "content": [] } }),
        json!({ "type": "file-history-snapshot" }),
        json!({ "type": "cost-state", "totalCostUSD": 0.1 }),
    ]
    .map(|line| line.to_string() + "\n")
    .concat()
}

struct TranscriptFile(tempfile::TempDir);

impl TranscriptFile {
    fn new(text: impl AsRef<[u8]>) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        fs::write(file.path(), text).unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("session.jsonl")
    }

    fn append(&self, text: &str) {
        OpenOptions::new()
            .append(true)
            .open(self.path())
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }
}

fn last(text: impl AsRef<[u8]>) -> Option<String> {
    Claude
        .last_message(&TranscriptFile::new(text).path(), Duration::ZERO)
        .unwrap()
}

#[test]
fn the_last_message_consists_of_all_its_parts() {
    let before = [
        user("go"),
        tool_use("m1"),
        tool_result(),
        message("m2", "old"),
        user("again"),
    ]
    .concat();
    let one = [before.clone(), message("m3", "new")].concat();
    assert_eq!(last(&one).as_deref(), Some("new"));
    assert_eq!(
        last([one.clone(), unrelated()].concat()).as_deref(),
        Some("new")
    );
    let parts = [
        before.clone(),
        thinking("m3"),
        message("m3", "one"),
        unrelated(),
        message("m3", "two"),
        unrelated(),
    ]
    .concat();
    assert_eq!(last(parts).as_deref(), Some("one\ntwo"));
    // Of two consecutive messages, only the last counts.
    assert_eq!(
        last([before.clone(), message("m3", "one"), message("m4", "two")].concat()).as_deref(),
        Some("two")
    );
    let whole = json!([{ "type": "thinking", "thinking": "x" }, { "type": "text", "text": "a" },
                       { "type": "text", "text": "b" }]);
    assert_eq!(
        last(before.clone() + &assistant_with("m3", &whole, &json!({}))).as_deref(),
        Some("a\nb")
    );
    assert_eq!(
        last(before.clone() + &assistant_with("m3", &json!("plain"), &json!({}))).as_deref(),
        Some("plain")
    );
    // A message without a prompt before it.
    assert_eq!(
        last(message("m1", "🎉 \"x\"\n")).as_deref(),
        Some("🎉 \"x\"\n")
    );
}

#[test]
fn an_incomplete_or_outdated_message_is_not_returned() {
    let before = [user("go"), message("m1", "<promise>DONE</promise>")].concat();
    let summary = line(
        "system",
        &Value::Null,
        &json!({ "subtype": "stop_hook_summary", "preventedContinuation": false }),
    );
    for rest in [
        user("Stop hook feedback:\nagain"),
        tool_use("m2"),
        [tool_use("m2"), tool_result()].concat(),
        [user("more"), thinking("m2")].concat(),
        [user("more"), message("m2", " \n")].concat(),
        summary,
    ] {
        assert_eq!(
            last([before.clone(), rest.clone(), unrelated()].concat()),
            None,
            "{rest}"
        );
    }
    for unterminated in ["{", "", message("m2", "unterminated").trim_end()] {
        let is_incomplete = !unterminated.is_empty();
        assert_eq!(
            last([&before, unterminated].concat()).is_none(),
            is_incomplete,
            "{unterminated}"
        );
    }
    assert_eq!(last(""), None);
    assert_eq!(last("\n"), None);
    assert_eq!(last(unrelated()), None);
}

#[test]
fn entries_of_others_are_not_the_agents_message() {
    let conversation = [user("go"), message("m1", "mine")].concat();
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let error = assistant_with(
        "m9",
        &json!([{ "type": "text", "text": "API Error" }]),
        &json!({ "isApiErrorMessage": true }),
    );
    for rest in [
        side(message("m2", "theirs")),
        side(user("x")),
        side(tool_use("m2")),
        error,
        "not JSON \"user\"\n".into(),
    ] {
        assert_eq!(
            last([conversation.clone(), rest.clone()].concat()).as_deref(),
            Some("mine"),
            "{rest}"
        );
    }
    let cut = message("m1", "cut X").replace("cut X", "cut \\ud83d");
    assert_eq!(last(cut).as_deref(), Some("cut \u{fffd}"));
    let raw = message("m1", "cut X").into_bytes();
    let raw: Vec<u8> = raw
        .into_iter()
        .map(|byte| if byte == b'X' { 0xff } else { byte })
        .collect();
    assert_eq!(last(raw).as_deref(), Some("cut \u{fffd}"));
}

#[test]
fn a_message_that_arrives_late_is_waited_for() {
    let file = TranscriptFile::new([user("go"), message("m1", "old"), user("again")].concat());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Claude.last_message(&file.path(), Duration::from_secs(60)));
        let message = message("m2", "new");
        let (one, other) = message.split_at(20);
        file.append(one);
        std::thread::yield_now();
        file.append(other);
        assert_eq!(waiting.join().unwrap(), Ok(Some("new".into())));
    });
    let start = Instant::now();
    file.append(&user("more"));
    assert_eq!(
        Claude.last_message(&file.path(), Duration::from_millis(50)),
        Ok(None)
    );
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_missing_transcript_is_waited_for_and_then_reported() {
    let file = TranscriptFile(tempfile::tempdir().unwrap());
    let error = Claude
        .last_message(&file.path(), Duration::ZERO)
        .unwrap_err();
    assert!(
        error.starts_with("cannot read the transcript /") && error.contains("session.jsonl: "),
        "{error}"
    );
    assert!(
        Claude
            .last_message(file.0.path(), Duration::ZERO)
            .unwrap_err()
            .ends_with("not a regular file")
    );
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Claude.last_message(&file.path(), Duration::from_secs(60)));
        fs::write(file.path(), message("m1", "here")).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(Some("here".into())));
    });
}

#[test]
fn only_tools_used_since_the_last_prompt_count() {
    let file = TranscriptFile::new(user("go"));
    let used = || Claude.used_tool(&file.path());
    assert_eq!(used(), Some(false));
    file.append(&tool_use("m1"));
    assert_eq!(used(), Some(true));
    file.append(
        &[
            tool_result(),
            thinking("m2"),
            message("m2", "x"),
            unrelated(),
        ]
        .concat(),
    );
    assert_eq!(
        used(),
        Some(true),
        "a message after the tool does not matter"
    );
    file.append(&user("Stop hook feedback: \"tool_result\" \"tool_use\""));
    assert_eq!(used(), Some(false));
    let side = tool_use("m3").replace("\"isSidechain\":false", "\"isSidechain\":true");
    file.append(&[side, message("m3", "\"tool_use\""), unrelated()].concat());
    assert_eq!(used(), Some(false), "a subagent's tool does not count");
    let tool = tool_use("m4");
    let (one, other) = tool.split_at(tool.len() - 3);
    file.append(one);
    assert_eq!(used(), Some(false), "an incomplete line does not count");
    file.append(other);
    assert_eq!(used(), Some(true));
    assert_eq!(Claude.used_tool(file.0.path()), None);
}

#[test]
fn a_service_error_is_distinguished_from_a_message() {
    let file = TranscriptFile::new([user("go"), message("m1", "x")].concat());
    assert_eq!(Claude.service_error(&file.path()), None);
    let failed = message("m2", "API Error: 529");
    file.append(&failed.replace(
        "\"isSidechain\"",
        "\"isApiErrorMessage\":true,\"isSidechain\"",
    ));
    file.append(&unrelated());
    assert_eq!(
        Claude.service_error(&file.path()).as_deref(),
        Some("API Error: 529")
    );
    assert_eq!(Claude.used_tool(&file.path()), Some(false));
    file.append(&user("again"));
    assert_eq!(
        Claude.service_error(&file.path()),
        None,
        "the session continued"
    );
    assert_eq!(Claude.service_error(file.0.path()), None);
}

#[test]
fn only_the_end_of_a_huge_transcript_is_read() {
    let file = TranscriptFile::new("");
    let handle = OpenOptions::new().write(true).open(file.path()).unwrap();
    // Sparse, and far too large to be read in full.
    handle.set_len(1 << 40).unwrap();
    file.append("\n");
    file.append(
        &[
            user("go"),
            tool_use("m1"),
            tool_result(),
            message("m2", &"x".repeat(1 << 20)),
            unrelated(),
        ]
        .concat(),
    );
    assert_eq!(
        Claude
            .last_message(&file.path(), Duration::ZERO)
            .unwrap()
            .map(|text| text.len()),
        Some(1 << 20)
    );
    assert_eq!(Claude.used_tool(&file.path()), Some(true));
}

#[test]
fn any_content_is_read_or_skipped_without_a_panic() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let file = TranscriptFile::new("");
    for _ in 0..300 {
        let mut text = Vec::new();
        for _ in 0..rng.usize(..8) {
            let mut piece = match rng.u8(..8) {
                0 => user("x"),
                1 => tool_result(),
                2 => tool_use("m1"),
                3 => thinking("m1"),
                4 => message("m2", "<promise>x</promise>"),
                5 => unrelated(),
                6 => "\n".into(),
                _ => message("m1", "words"),
            }
            .into_bytes();
            if rng.u8(..4) == 0 {
                let at = rng.usize(..piece.len());
                piece[at] = rng.u8(..);
            }
            text.extend(piece);
        }
        text.truncate(text.len() - rng.usize(..=3).min(text.len()));
        fs::write(file.path(), &text).unwrap();
        let text = Claude.last_message(&file.path(), Duration::ZERO).unwrap();
        assert!(text.is_none_or(|text| !text.trim().is_empty()), "{seed}");
        assert!(Claude.used_tool(&file.path()).is_some(), "{seed}");
    }
}
