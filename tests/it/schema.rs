//! The schema of settings files accepts and rejects the same files as the program.

use crate::kit::Test;
use regex::Regex;
use serde_json::{Map, Value, json};

/// Returns whether a value is valid according to a schema. Implements the part of JSON Schema
/// 2020-12 that ours uses.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(rules) = schema else {
        return schema != &Value::Bool(false);
    };
    let holds = |name: &str| {
        rules
            .get(name)
            .is_some_and(|rule| is_valid(root, rule, value))
    };
    rules.iter().all(|(name, rule)| match name.as_str() {
        "$ref" => {
            let place = rule.as_str().unwrap().strip_prefix('#').unwrap();
            is_valid(
                root,
                root.pointer(place)
                    .unwrap_or_else(|| panic!("{place} is nowhere")),
                value,
            )
        }
        "type" => match rule {
            Value::Array(types) => types.iter().any(|one| is_a(one, value)),
            one => is_a(one, value),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => value
            .as_f64()
            .is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => value
            .as_f64()
            .is_none_or(|number| number <= rule.as_f64().unwrap()),
        "pattern" => value
            .as_str()
            .is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
        "items" => value
            .as_array()
            .is_none_or(|all| all.iter().all(|item| is_valid(root, rule, item))),
        "required" => value.as_object().is_none_or(|object| {
            rule.as_array()
                .unwrap()
                .iter()
                .all(|name| object.contains_key(name.as_str().unwrap()))
        }),
        "properties" => value
            .as_object()
            .is_none_or(|object| fits(root, rules, object)),
        "additionalProperties" if !rules.contains_key("properties") => value
            .as_object()
            .is_none_or(|object| object.values().all(|value| is_valid(root, rule, value))),
        "if" if holds("if") => !rules.contains_key("then") || holds("then"),
        "if" => !rules.contains_key("else") || holds("else"),
        // Handled elsewhere, or only informative.
        "patternProperties"
        | "additionalProperties"
        | "then"
        | "else"
        | "$schema"
        | "$defs"
        | "title"
        | "description"
        | "default" => true,
        other => panic!("{other} is not understood here"),
    })
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

fn fits(root: &Value, rules: &Map<String, Value>, object: &Map<String, Value>) -> bool {
    let patterns = rules.get("patternProperties").and_then(Value::as_object);
    object.iter().all(|(name, value)| {
        let by_name = rules["properties"].get(name);
        let by_pattern = patterns
            .into_iter()
            .flatten()
            .filter(|(pattern, _)| Regex::new(pattern).unwrap().is_match(name));
        let mut known = by_name
            .into_iter()
            .chain(by_pattern.map(|(_, rule)| rule))
            .peekable();
        let may_be_other = rules.get("additionalProperties") != Some(&Value::Bool(false));
        (known.peek().is_some() || may_be_other) && known.all(|rule| is_valid(root, rule, value))
    })
}

/// An example that uses alternative spellings of the keys.
const EXAMPLE: &str = r#"{
  "maximumIterations": 10, "completionResponse": "DONE", "outputTruncateChars": 5000, "streamAgentOutput": true,
  "agent": { "command": "claude", "flags": ["--model opus", "--no-auto-compact"] },
  "guardrails": [{ "command": "./mvnw clean install -T 2C -q -e", "failAction": "APPEND" }],
  "scm": { "command": "git", "tasks": ["commit", "push"] }
}"#;

#[test]
fn the_schema_and_the_program_agree() {
    let test = Test::new();
    let schema: Value =
        serde_json::from_str(&test.ralph(&["config", "--schema"]).exits(0).out).unwrap();
    let preset = |name: &str| -> Value {
        let path = format!("{}/presets/agents/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let right = [
        json!({}),
        serde_json::from_str(EXAMPLE).unwrap(),
        json!({ "$schema": "./settings.schema.json", "ralph_loop": {
            "max_iterations": 25, "max_cost": null, "max_time": null, "completion_tag": "COMPLETE", "agent": "build",
        } }),
        json!({ "llm": { "model": 5 }, "model": [], "ralph_loop": { "model": "big" } }),
        json!({ "maxIterations": null, "promise": null, "checks": null, "agent": null, "scm": null }),
        json!({ "max-time": "90s", "log_cap": 5, "backoff": "1s..2s", "check": ["a", { "command": "b", "on_fail": "REPLACE" }] }),
        json!({ "backoff": 0, "probe": null, "maxTime": "1h30m" }),
        json!({ "backoff": "0" }),
        json!({ "agent": "claude", "scm": "commit", "approve": "ALL", "fallbackPromises": [] }),
        json!({ "scm": ["commit", "push"], "agents": { "a": preset("claude"), "b": preset("amp"), "c": preset("aider") } }),
        json!({ "agents": { "a": { "command": "x -y", "approve": { "none": null, "all": { "words": "-a", "env": { "A": "b" } } } } } }),
    ];
    let wrong = [
        json!([]),
        json!({ "zebra": 1 }),
        json!({ "max_iterations": "x" }),
        json!({ "maxIterations": -1 }),
        json!({ "maxTime": "soon" }),
        json!({ "maxTime": "1h30" }),
        json!({ "backoff": 5 }),
        json!({ "preflight": null }),
        json!({ "noPreflight": true }),
        json!({ "approve": "most" }),
        json!({ "exitWaiting": 300 }),
        json!({ "checks": "x" }),
        json!({ "checks": [{}] }),
        json!({ "checks": [{ "command": null }] }),
        json!({ "checks": [{ "command": "x", "zebra": 1 }] }),
        json!({ "agent": ["claude"] }),
        json!({ "agent": { "comand": "x" } }),
        json!({ "scm": [5] }),
        json!({ "agents": { "a": 5 } }),
        json!({ "agents": { "a": { "command": "x", "exit": [{ "code": 1 }] } } }),
        json!({ "agents": { "a": { "command": "x", "approve": { "all": { "env": { "A": 5 } } } } } }),
        json!({ "ralph_loop": { "zebra": 1 } }),
        json!({ "ralph_loop": [] }),
    ];
    for (settings, code) in right
        .iter()
        .map(|one| (one, 0))
        .chain(wrong.iter().map(|one| (one, 2)))
    {
        test.write(".ralph/settings.json", &settings.to_string());
        test.ralph(&["config"]).exits(code);
        assert_eq!(
            is_valid(&schema, &schema, settings),
            code == 0,
            "{settings}"
        );
    }
}
