//! Generates the JSON schema of settings files from the table of settings, for editors.

use super::keys::{SettingKey, SettingKind, camel_case, kebab_case, table};
use serde_json::{Map, Value, json};

const SETTINGS: &str = "#/$defs/settings";

/// Returns the schema as formatted JSON.
pub(crate) fn settings_schema() -> String {
    let mut settings = object_schema(table(), SETTINGS);
    settings["properties"]["$schema"] = json!({ "type": "string" });
    let section = json!({
        "description": "If a file has this section, ralph reads nothing else in it",
        "$ref": SETTINGS,
    });
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of ralph",
        "type": "object",
        "if": { "required": ["ralph_loop"] },
        "then": { "properties": { "ralph_loop": section } },
        "else": { "$ref": SETTINGS },
        "$defs": { "settings": settings },
    });
    format!("{root:#}\n")
}

/// Generates the schema of the object at `pointer`. Names in camel case are properties, which
/// editors suggest. Other spellings are patterns, which editors accept but do not suggest.
fn object_schema(keys: &[SettingKey], pointer: &str) -> Value {
    let mut properties = Map::new();
    let mut patterns = Map::new();
    for key in keys {
        let key_pointer = format!("{pointer}/properties/{}", key.camel_case());
        let flag = key
            .flag()
            .filter(|flag| key.kind != SettingKind::Switch && *flag != key.name);
        for alias in &key.aliases {
            let same = format!("The same as {}", key.camel_case());
            properties.insert(
                camel_case(alias),
                json!({ "description": same, "$ref": key_pointer }),
            );
        }
        for name in key
            .aliases
            .iter()
            .map(String::as_str)
            .chain([key.name.as_str()])
        {
            if name.contains('-') {
                patterns.insert(
                    format!("^{}$", name.replace('-', "[-_]")),
                    json!({ "$ref": key_pointer }),
                );
            }
        }
        patterns.extend(flag.map(|flag| {
            (
                format!("^{}$", kebab_case(flag)),
                json!({ "$ref": key_pointer }),
            )
        }));
        properties.insert(key.camel_case(), key_schema(key, &key_pointer));
    }
    let required: Vec<String> = keys
        .iter()
        .filter(|key| key.required)
        .map(SettingKey::camel_case)
        .collect();
    let mut object =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !patterns.is_empty() {
        object["patternProperties"] = patterns.into();
    }
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

fn key_schema(key: &SettingKey, pointer: &str) -> Value {
    let mut schema = type_schema(key, pointer);
    let default_text = key
        .default_text
        .as_ref()
        .map(|text| format!(" [default: {text}]"))
        .unwrap_or_default();
    let trust = key
        .describe_trust()
        .map(|values| format!(" [needs trust: {values}]"))
        .unwrap_or_default();
    schema["description"] = format!("{}{default_text}{trust}", key.help).into();
    if let Some(default) = key.default.as_ref().filter(|_| key.default_text.is_none()) {
        schema["default"] = default.clone();
    }
    schema
}

fn type_schema(key: &SettingKey, pointer: &str) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": ["array", "null"], "items": text });
    match key.kind {
        SettingKind::Text | SettingKind::Path if key.is_nullable() => {
            json!({ "type": ["string", "null"] })
        }
        SettingKind::Text | SettingKind::Path => text,
        SettingKind::Texts => texts,
        SettingKind::Switch => json!({ "type": "boolean" }),
        SettingKind::Branch => json!({ "type": ["boolean", "string", "null"], "minLength": 1 }),
        SettingKind::Count => {
            json!({ "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX })
        }
        SettingKind::Code if key.required => {
            json!({ "type": "integer", "minimum": 0, "maximum": 255 })
        }
        SettingKind::Code => json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 255 }),
        SettingKind::Amount => json!({ "type": ["number", "null"], "minimum": 0 }),
        SettingKind::Duration => json!({
            "type": ["string", "number", "null"],
            "minimum": 0,
            "pattern": "^\\s*([0-9.]+|([0-9.]+\\s*(ms|s|m|h|d))+)\\s*$",
        }),
        SettingKind::Size => json!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": "^\\s*[0-9.]+\\s*(B|KiB|MiB|GiB)?\\s*$",
        }),
        SettingKind::Backoff => json!({
            "type": ["string", "integer", "null"],
            "maximum": 0,
            "pattern": "\\.\\.|^0$",
        }),
        SettingKind::Choice => {
            let upper = key.choices.iter().map(|choice| choice.to_uppercase());
            let words = key.choices.iter().cloned().chain(upper).map(Value::from);
            let switches = [true, false].map(Value::from).into_iter();
            let switches = switches.filter(|_| key.bare.is_some());
            json!({ "enum": words.chain(switches).collect::<Vec<_>>() })
        }
        SettingKind::Command | SettingKind::Flags => {
            json!({ "type": ["string", "array", "null"], "items": text })
        }
        SettingKind::Variables => json!({ "type": "object", "additionalProperties": text }),
        // With several types, each keyword applies to its own type only: `properties` to objects,
        // `items` to lists.
        SettingKind::Object => {
            let mut object = object_schema(&key.children, pointer);
            object["type"] = match key.shorthand_key() {
                None => json!(["object", "null"]),
                Some(child) if child.is_list() => json!(["object", "array", "string", "null"]),
                Some(_) => json!(["object", "string", "null"]),
            };
            if key.is_list() {
                object["items"] = text;
            }
            object
        }
        SettingKind::Objects => {
            let mut item = object_schema(&key.children, &format!("{pointer}/items"));
            if key.shorthand.is_some() {
                item["type"] = json!(["object", "string"]);
            }
            json!({ "type": ["array", "null"], "items": item })
        }
        SettingKind::Map => {
            let item = object_schema(&key.children, &format!("{pointer}/additionalProperties"));
            json!({ "type": "object", "additionalProperties": item })
        }
    }
}
