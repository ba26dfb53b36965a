//! `OpenAI`'s responses protocol, as a stream of events or as one reply.

use super::http::{Reply, Request};
use super::{Step, id};
use serde_json::{Value, json};

pub(super) fn encode(request: &Request, step: &Step) -> Reply {
    let mut items = Vec::new();
    if !step.text.is_empty() {
        let part = json!({ "type": "output_text", "text": step.text, "annotations": [] });
        items.push(json!({
            "type": "message", "role": "assistant", "id": id("msg_"), "status": "completed", "content": [part],
        }));
    }
    if let Some((name, input)) = &step.tool {
        items.push(json!({
            "type": "function_call", "id": id("fc_"), "call_id": id("call_"), "name": name,
            "arguments": input.to_string(), "status": "completed",
        }));
    }
    let whole = json!({
        "id": id("resp_"), "object": "response", "created_at": 0, "status": "completed",
        "model": request.body["model"], "output": items, "usage": usage(step), "error": null,
        "incomplete_details": null, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
    });
    if request.body["stream"] != true {
        return Reply::json(200, &whole);
    }
    let mut begun = whole.clone();
    (begun["status"], begun["output"], begun["usage"]) =
        (json!("in_progress"), json!([]), Value::Null);
    let mut events = vec![("response.created", json!({ "response": begun }))];
    for (index, item) in items.iter().enumerate() {
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        if item["type"] == "message" {
            empty["content"] = json!([]);
            let delta = json!({ "item_id": item["id"], "output_index": index, "content_index": 0, "delta": step.text });
            events.push((
                "response.output_item.added",
                json!({ "output_index": index, "item": empty }),
            ));
            events.push(("response.output_text.delta", delta));
        } else {
            empty["arguments"] = json!("");
            events.push((
                "response.output_item.added",
                json!({ "output_index": index, "item": empty }),
            ));
        }
        events.push((
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        ));
    }
    events.push(("response.completed", json!({ "response": whole })));
    for (number, (name, event)) in events.iter_mut().enumerate() {
        event["type"] = json!(name);
        event["sequence_number"] = json!(number);
    }
    Reply::events(&events)
}

/// Cached tokens are part of the input tokens.
fn usage(step: &Step) -> Value {
    let tokens = step.tokens;
    let input = tokens.input + tokens.cache_read;
    json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": tokens.cache_read },
        "output_tokens": tokens.output, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + tokens.output,
    })
}
