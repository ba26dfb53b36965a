//! The JSON schema of a settings file, for editors: the table in another notation.

use super::keys::{Key, Kind, camel, table};
use serde_json::{Map, Value, json};

/// The schema, as it is checked in.
pub fn schema() -> String {
    let mut root = object(table());
    root.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("title".into(), "Settings of ralph".into());
    let properties =
        root.get_mut("properties").and_then(Value::as_object_mut).expect("an object has properties");
    let section = json!({
        "description": "In a file that other programs read too: only this section is read",
        "$ref": "#",
    });
    properties.insert("ralph_loop".into(), section);
    properties.insert("$schema".into(), json!({ "type": "string" }));
    let mut text = serde_json::to_string_pretty(&Value::Object(root)).expect("a schema is JSON");
    text.push('\n');
    text
}

fn object(keys: &[Key]) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys {
        let entry = entry(key);
        for alias in &key.aliases {
            let mut entry = entry.clone();
            entry["description"] = format!("The same as {}", key.camel()).into();
            properties.insert(camel(alias), entry);
        }
        properties.insert(key.camel(), entry);
    }
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), Value::Object(properties));
    object.insert("additionalProperties".into(), false.into());
    object
}

fn entry(key: &Key) -> Value {
    let mut entry = kind(key);
    let otherwise = key.otherwise.as_ref().map(|words| format!(" [default: {words}]")).unwrap_or_default();
    entry["description"] = format!("{}{otherwise}", key.help).into();
    if let Some(default) = key.default.as_ref().filter(|_| key.otherwise.is_none()) {
        entry["default"] = default.clone();
    }
    entry
}

fn kind(key: &Key) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    match key.kind {
        Kind::Text | Kind::Path => json!({ "type": ["string", "null"] }),
        Kind::Texts => texts,
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Count => json!({ "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX }),
        Kind::Code => json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 255 }),
        Kind::Amount => json!({ "type": ["number", "null"], "minimum": 0 }),
        Kind::Duration => json!({
            "type": ["string", "number", "null"],
            "minimum": 0,
            "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h|d)?\\s*$",
        }),
        Kind::Size => json!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": "^\\s*[0-9.]+\\s*(B|KiB|MiB|GiB)?\\s*$",
        }),
        Kind::Backoff => json!({ "type": "string", "pattern": "\\.\\." }),
        Kind::Choice => {
            let upper = key.choices.iter().map(|choice| choice.to_uppercase());
            json!({ "enum": key.choices.iter().cloned().chain(upper).collect::<Vec<_>>() })
        }
        Kind::Command => json!({ "anyOf": [text, texts] }),
        Kind::Variables => json!({ "type": "object", "additionalProperties": text }),
        Kind::Object => match key.bare.as_deref() {
            Some("tasks") => json!({ "anyOf": [object(&key.inner), texts, text] }),
            Some(_) => json!({ "anyOf": [object(&key.inner), text] }),
            None => Value::Object(object(&key.inner)),
        },
        Kind::Objects => {
            let item = Value::Object(object(&key.inner));
            let item = if key.bare.is_some() { json!({ "anyOf": [item, text] }) } else { item };
            json!({ "type": "array", "items": item })
        }
        Kind::Map => json!({ "type": "object", "additionalProperties": object(&key.inner) }),
    }
}
