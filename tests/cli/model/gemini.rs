//! Gemini's protocol, as one event or as one reply.

use super::http::{Reply, Request};
use super::{Step, id};
use serde_json::json;

pub(super) fn encode(request: &Request, step: &Step) -> Reply {
    let mut parts = Vec::new();
    if !step.text.is_empty() {
        parts.push(json!({ "text": step.text }));
    }
    if let Some((name, input)) = &step.tool {
        parts.push(json!({ "functionCall": { "id": id("call"), "name": name, "args": input } }));
    }
    let tokens = step.tokens;
    let input = tokens.input + tokens.cache_read;
    let content = json!({ "role": "model", "parts": parts });
    let whole = json!({
        "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": input, "cachedContentTokenCount": tokens.cache_read,
            "candidatesTokenCount": tokens.output, "totalTokenCount": input + tokens.output,
        },
        "modelVersion": "mock", "responseId": id("resp"),
    });
    if request.path.ends_with(":streamGenerateContent") {
        Reply::events(&[("", whole)])
    } else {
        Reply::json(200, &whole)
    }
}
