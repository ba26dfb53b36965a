//! Anthropic's messages protocol, as a stream of events or as one reply.

use super::http::{Reply, Request};
use super::{Step, id};
use serde_json::{Value, json};

pub(super) fn encode(request: &Request, step: &Step) -> Reply {
    let mut content = Vec::new();
    if !step.text.is_empty() {
        content.push(json!({ "type": "text", "text": step.text }));
    }
    if let Some((name, input)) = &step.tool {
        content
            .push(json!({ "type": "tool_use", "id": id("toolu_"), "name": name, "input": input }));
    }
    let mut message = json!({
        "id": id("msg_"), "type": "message", "role": "assistant", "model": request.body["model"],
        "content": content, "usage": usage(step), "stop_sequence": null,
        "stop_reason": if step.tool.is_some() { "tool_use" } else { "end_turn" },
    });
    if request.body["stream"] != true {
        return Reply::json(200, &message);
    }
    let end = json!({ "stop_reason": message["stop_reason"].take(), "stop_sequence": null });
    message["content"] = json!([]);
    // The number of output tokens is known only at the end.
    message["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    for (index, block) in content.into_iter().enumerate() {
        let (empty, delta) = begun(block);
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let written = json!({ "output_tokens": step.tokens.output });
    events.push(json!({ "type": "message_delta", "delta": end, "usage": written }));
    events.push(json!({ "type": "message_stop" }));
    let named: Vec<(&str, Value)> = events
        .iter()
        .map(|event| (event["type"].as_str().unwrap_or_default(), event.clone()))
        .collect();
    Reply::events(&named)
}

fn usage(step: &Step) -> Value {
    json!({
        "input_tokens": step.tokens.input, "output_tokens": step.tokens.output,
        "cache_read_input_tokens": step.tokens.cache_read,
        "cache_creation_input_tokens": step.tokens.cache_write, "service_tier": "standard",
    })
}

/// Returns a content block's start, and the single delta that completes it.
fn begun(mut block: Value) -> (Value, Value) {
    if block["type"] == "text" {
        let delta = json!({ "type": "text_delta", "text": block["text"].take() });
        block["text"] = json!("");
        (block, delta)
    } else {
        let delta = json!({ "type": "input_json_delta", "partial_json": block["input"].take().to_string() });
        block["input"] = json!({});
        (block, delta)
    }
}
