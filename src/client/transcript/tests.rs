//! What is read of transcripts in the shape of real ones, while they are being written and when they are huge.

use super::*;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// What every line of a conversation has besides.
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

fn result() -> String {
    let content =
        json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "\"assistant\"" }]);
    line(
        "user",
        &json!({ "role": "user", "content": content }),
        &json!({ "toolUseResult": { "stdout": "x" } }),
    )
}

fn agent(id: &str, part: &Value) -> String {
    agent_with(
        id,
        &json!([part]),
        &json!({ "apiBlockIndex": 0, "requestId": "req_1" }),
    )
}

fn agent_with(id: &str, content: &Value, more: &Value) -> String {
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "end_turn", "usage": { "input_tokens": 5, "output_tokens": 5 },
    });
    line("assistant", &message, more)
}

fn says(id: &str, text: &str) -> String {
    agent(id, &json!({ "type": "text", "text": text }))
}

fn uses(id: &str) -> String {
    agent(
        id,
        &json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "true" } }),
    )
}

fn thinks(id: &str) -> String {
    agent(
        id,
        &json!({ "type": "thinking", "thinking": "<promise>DONE</promise>", "signature": "x" }),
    )
}

/// What a client writes in between and behind.
fn noise() -> String {
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

struct Place(tempfile::TempDir);

impl Place {
    fn new(text: impl AsRef<[u8]>) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path(), text).unwrap();
        place
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

fn words(text: impl AsRef<[u8]>) -> Option<String> {
    last_words(&Place::new(text).path(), Duration::ZERO).unwrap()
}

#[test]
fn the_last_message_is_all_its_parts() {
    let before = [
        user("go"),
        uses("m1"),
        result(),
        says("m2", "old"),
        user("again"),
    ]
    .concat();
    let one = [before.clone(), says("m3", "new")].concat();
    assert_eq!(words(&one).as_deref(), Some("new"));
    assert_eq!(
        words([one.clone(), noise()].concat()).as_deref(),
        Some("new")
    );
    let parts = [
        before.clone(),
        thinks("m3"),
        says("m3", "one"),
        noise(),
        says("m3", "two"),
        noise(),
    ]
    .concat();
    assert_eq!(words(parts).as_deref(), Some("one\ntwo"));
    // Two messages in a row: only the last counts.
    assert_eq!(
        words([before.clone(), says("m3", "one"), says("m4", "two")].concat()).as_deref(),
        Some("two")
    );
    let whole = json!([{ "type": "thinking", "thinking": "x" }, { "type": "text", "text": "a" },
                       { "type": "text", "text": "b" }]);
    assert_eq!(
        words(before.clone() + &agent_with("m3", &whole, &json!({}))).as_deref(),
        Some("a\nb")
    );
    assert_eq!(
        words(before.clone() + &agent_with("m3", &json!("plain"), &json!({}))).as_deref(),
        Some("plain")
    );
    // A first message, and nothing before it.
    assert_eq!(
        words(says("m1", "🎉 \"x\"\n")).as_deref(),
        Some("🎉 \"x\"\n")
    );
}

#[test]
fn a_message_that_has_not_arrived_is_none() {
    let before = [user("go"), says("m1", "<promise>DONE</promise>")].concat();
    let summary = line(
        "system",
        &Value::Null,
        &json!({ "subtype": "stop_hook_summary", "preventedContinuation": false }),
    );
    for behind in [
        user("Stop hook feedback:\nagain"),
        uses("m2"),
        [uses("m2"), result()].concat(),
        [user("more"), thinks("m2")].concat(),
        [user("more"), says("m2", " \n")].concat(),
        summary,
    ] {
        assert_eq!(
            words([before.clone(), behind.clone(), noise()].concat()),
            None,
            "{behind}"
        );
    }
    for torn in ["{", "", says("m2", "torn").trim_end()] {
        let is_torn = !torn.is_empty();
        assert_eq!(words([&before, torn].concat()).is_none(), is_torn, "{torn}");
    }
    assert_eq!(words(""), None);
    assert_eq!(words("\n"), None);
    assert_eq!(words(noise()), None);
}

#[test]
fn others_words_are_not_the_agents() {
    let said = [user("go"), says("m1", "mine")].concat();
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let error = agent_with(
        "m9",
        &json!([{ "type": "text", "text": "API Error" }]),
        &json!({ "isApiErrorMessage": true }),
    );
    for behind in [
        side(says("m2", "theirs")),
        side(user("x")),
        side(uses("m2")),
        error,
        "not JSON \"user\"\n".into(),
    ] {
        assert_eq!(
            words([said.clone(), behind.clone()].concat()).as_deref(),
            Some("mine"),
            "{behind}"
        );
    }
    let cut = says("m1", "cut X").replace("cut X", "cut \\ud83d");
    assert_eq!(words(cut).as_deref(), Some("cut \u{fffd}"));
    let raw = says("m1", "cut X").into_bytes();
    let raw: Vec<u8> = raw
        .into_iter()
        .map(|byte| if byte == b'X' { 0xff } else { byte })
        .collect();
    assert_eq!(words(raw).as_deref(), Some("cut \u{fffd}"));
}

#[test]
fn a_late_message_is_waited_for() {
    let place = Place::new([user("go"), says("m1", "old"), user("again")].concat());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| last_words(&place.path(), Duration::from_secs(60)));
        let message = says("m2", "new");
        let (one, other) = message.split_at(20);
        place.append(one);
        std::thread::yield_now();
        place.append(other);
        assert_eq!(waiting.join().unwrap(), Ok(Some("new".into())));
    });
    let begun = Instant::now();
    place.append(&user("more"));
    assert_eq!(
        last_words(&place.path(), Duration::from_millis(50)),
        Ok(None)
    );
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_transcript_that_appears_late_is_found_and_one_that_does_not_is_named() {
    let place = Place(tempfile::tempdir().unwrap());
    let wrong = last_words(&place.path(), Duration::ZERO).unwrap_err();
    assert!(
        wrong.starts_with("cannot read the transcript /") && wrong.contains("session.jsonl: "),
        "{wrong}"
    );
    assert!(
        last_words(place.0.path(), Duration::ZERO)
            .unwrap_err()
            .ends_with("not a regular file")
    );
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| last_words(&place.path(), Duration::from_secs(60)));
        fs::write(place.path(), says("m1", "here")).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(Some("here".into())));
    });
}

#[test]
fn a_tool_counts_since_the_agent_was_asked_to_go_on() {
    let place = Place::new(user("go"));
    let used = || used_tools(&place.path());
    assert_eq!(used(), Some(false));
    place.append(&uses("m1"));
    assert_eq!(used(), Some(true));
    place.append(&[result(), thinks("m2"), says("m2", "x"), noise()].concat());
    assert_eq!(used(), Some(true), "whatever it says then");
    place.append(&user("Stop hook feedback: \"tool_result\" \"tool_use\""));
    assert_eq!(used(), Some(false));
    let side = uses("m3").replace("\"isSidechain\":false", "\"isSidechain\":true");
    place.append(&[side, says("m3", "\"tool_use\""), noise()].concat());
    assert_eq!(used(), Some(false), "nor what a helper does");
    let tool = uses("m4");
    let (one, other) = tool.split_at(tool.len() - 3);
    place.append(one);
    assert_eq!(used(), Some(false), "a line that is being written");
    place.append(other);
    assert_eq!(used(), Some(true));
    assert_eq!(used_tools(place.0.path()), None);
}

#[test]
fn a_service_that_failed_is_told_from_an_agent() {
    let place = Place::new([user("go"), says("m1", "x")].concat());
    assert_eq!(service_error(&place.path()), None);
    let failed = says("m2", "API Error: 529");
    place.append(&failed.replace(
        "\"isSidechain\"",
        "\"isApiErrorMessage\":true,\"isSidechain\"",
    ));
    place.append(&noise());
    assert_eq!(
        service_error(&place.path()).as_deref(),
        Some("API Error: 529")
    );
    assert_eq!(used_tools(&place.path()), Some(false));
    place.append(&user("again"));
    assert_eq!(service_error(&place.path()), None, "it goes on");
    assert_eq!(service_error(place.0.path()), None);
}

#[test]
fn only_the_end_of_a_huge_transcript_is_read() {
    let place = Place::new("");
    let file = OpenOptions::new().write(true).open(place.path()).unwrap();
    // Sparse, and far too large to be read.
    file.set_len(1 << 40).unwrap();
    place.append("\n");
    place.append(
        &[
            user("go"),
            uses("m1"),
            result(),
            says("m2", &"x".repeat(1 << 20)),
            noise(),
        ]
        .concat(),
    );
    assert_eq!(
        last_words(&place.path(), Duration::ZERO)
            .unwrap()
            .map(|words| words.len()),
        Some(1 << 20)
    );
    assert_eq!(used_tools(&place.path()), Some(true));
}

#[test]
fn whatever_is_written_is_read_or_passed_over() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let place = Place::new("");
    for _ in 0..300 {
        let mut text = Vec::new();
        for _ in 0..rng.usize(..8) {
            let mut piece = match rng.u8(..8) {
                0 => user("x"),
                1 => result(),
                2 => uses("m1"),
                3 => thinks("m1"),
                4 => says("m2", "<promise>x</promise>"),
                5 => noise(),
                6 => "\n".into(),
                _ => says("m1", "words"),
            }
            .into_bytes();
            if rng.u8(..4) == 0 {
                let at = rng.usize(..piece.len());
                piece[at] = rng.u8(..);
            }
            text.extend(piece);
        }
        text.truncate(text.len() - rng.usize(..=3).min(text.len()));
        fs::write(place.path(), &text).unwrap();
        let words = last_words(&place.path(), Duration::ZERO).unwrap();
        assert!(words.is_none_or(|words| !words.trim().is_empty()), "{seed}");
        assert!(used_tools(&place.path()).is_some(), "{seed}");
    }
}
