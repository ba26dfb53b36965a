//! `OpenAI`'s chat completions protocol, which many services use, as a stream of events or as one reply.

use super::http::{Reply, Request};
use super::{Step, id};
use serde_json::{Value, json};

pub(super) fn encode(request: &Request, step: &Step) -> Reply {
    let calls = step.tool.as_ref().map(|(name, input)| {
        let function = json!({ "name": name, "arguments": input.to_string() });
        json!([{ "index": 0, "id": id("call_"), "type": "function", "function": function }])
    });
    let finish = if calls.is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let base = |object: &str| json!({ "id": id("chatcmpl-"), "object": object, "created": 0, "model": request.body["model"] });
    let mut message = json!({ "role": "assistant", "content": step.text });
    if let Some(calls) = calls {
        message["tool_calls"] = calls;
    }
    if request.body["stream"] != true {
        let mut whole = base("chat.completion");
        whole["choices"] = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
        whole["usage"] = usage(step);
        return Reply::json(200, &whole);
    }
    let chunk = base("chat.completion.chunk");
    let piece = |delta: Value, finish: Value| {
        let mut piece = chunk.clone();
        piece["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        ("", piece)
    };
    let mut counted = chunk.clone();
    (counted["choices"], counted["usage"]) = (json!([]), usage(step));
    Reply::events(&[
        piece(message, Value::Null),
        piece(json!({}), json!(finish)),
        ("", counted),
    ])
    .ending("data: [DONE]\n\n")
}

/// Cached tokens are part of the input tokens.
fn usage(step: &Step) -> Value {
    let tokens = step.tokens;
    let input = tokens.input + tokens.cache_read;
    json!({
        "prompt_tokens": input, "completion_tokens": tokens.output, "total_tokens": input + tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cache_read },
    })
}
