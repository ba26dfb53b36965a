//! Tests of the scripted model service, through requests like a client's.

use super::{Model, Tokens, refuse, say, use_tool};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a raw request. Returns the reply's status, head and body.
fn send(model: &Model, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(model.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        head.to_owned(),
        body.to_owned(),
    )
}

fn post(model: &Model, path: &str, body: &Value) -> (u16, String, String) {
    let body = body.to_string();
    send(
        model,
        &format!(
            "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    )
}

/// Returns the data of each server-sent event.
fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn offering_tools(stream: bool) -> Value {
    json!({ "model": "m", "stream": stream, "tools": [{ "name": "Write" }] })
}

#[test]
fn only_requests_with_tools_take_a_step() {
    let model = Model::play([say("first"), say("second")]);
    let (_, _, aside) = post(&model, "/v1/messages?beta=true", &json!({ "model": "m" }));
    assert!(aside.contains("\"ok\""), "{aside}");
    for expected in ["first", "second", "The scenario is over."] {
        let (_, _, body) = post(&model, "/v1/messages?beta=true", &offering_tools(false));
        assert_eq!(
            serde_json::from_str::<Value>(&body).unwrap()["content"][0]["text"],
            expected
        );
    }
    assert_eq!(model.asked().len(), 3);
}

#[test]
fn a_refusal_has_its_status_body_and_headers() {
    let step = refuse(429, "rate_limit_error", "slow down").header("retry-after", "3");
    let model = Model::play([step.detail("resets_at", json!(17))]);
    let (status, head, body) = post(&model, "/v1/responses", &offering_tools(true));
    assert_eq!(status, 429);
    assert!(head.contains("retry-after: 3"), "{head}");
    let error = json!({ "type": "rate_limit_error", "message": "slow down", "resets_at": 17 });
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap()["error"],
        error
    );
}

#[test]
fn every_protocol_sends_text_and_tool_calls_and_reports_usage() {
    let tokens = Tokens {
        input: 7,
        cache_read: 5,
        cache_write: 3,
        output: 2,
    };
    let steps = || {
        use_tool("Write", json!({ "path": "a" }))
            .with_text("now")
            .with_tokens(tokens)
    };
    for (path, word, tool, counted) in [
        (
            "/v1/messages",
            "/2/delta/text",
            "/4/content_block/name",
            "/0/message/usage/cache_read_input_tokens",
        ),
        (
            "/v1/responses",
            "/2/delta",
            "/5/item/name",
            "/6/response/usage/input_tokens_details/cached_tokens",
        ),
        (
            "/v1/chat/completions",
            "/0/choices/0/delta/content",
            "/0/choices/0/delta/tool_calls/0/function/name",
            "/2/usage/prompt_tokens_details/cached_tokens",
        ),
        (
            "/v1beta/models/m:streamGenerateContent",
            "/0/candidates/0/content/parts/0/text",
            "/0/candidates/0/content/parts/1/functionCall/name",
            "/0/usageMetadata/cachedContentTokenCount",
        ),
    ] {
        let model = Model::play([steps()]);
        let (status, head, body) = post(&model, path, &offering_tools(true));
        assert_eq!(status, 200);
        assert!(head.contains("text/event-stream"), "{path}: {head}");
        let all = json!(events(&body));
        let at = |pointer: &str| {
            all.pointer(pointer)
                .unwrap_or_else(|| panic!("{path} {pointer}: {all:#}"))
        };
        assert_eq!(at(word), "now", "{path}");
        assert_eq!(at(tool), "Write", "{path}");
        assert_eq!(at(counted), 5, "{path}");
        model.assert_played(1);
    }
}

#[test]
fn a_body_may_arrive_in_pieces_and_other_paths_are_answered() {
    let model = Model::play([say("whole")]);
    let body = offering_tools(false).to_string();
    let (one, two) = body.split_at(9);
    let chunks = format!(
        "{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    let head = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(send(&model, &format!("{head}{chunks}")).2.contains("whole"));
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n", 200),
        ("GET /v1/models HTTP/1.1\r\n\r\n", 200),
        ("GET /anything HTTP/1.1\r\n\r\n", 404),
    ] {
        assert_eq!(send(&model, request).0, status, "{request}");
    }
    model.assert_played(1);
}

#[test]
fn an_answer_waits_for_its_file_and_can_be_replaced() {
    let model = Model::play([say("old")]);
    let place = tempfile::tempdir().unwrap();
    let gate = place.path().join("sign");
    model.play_instead([say("new").when_exists(&gate)]);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| post(&model, "/v1/messages", &offering_tools(false)).2);
        crate::kit::until("the question", || model.asked().len() == 1);
        assert!(!asking.is_finished());
        std::fs::write(&gate, "").unwrap();
        assert!(asking.join().unwrap().contains("\"new\""));
    });
    model.assert_played(1);
}
