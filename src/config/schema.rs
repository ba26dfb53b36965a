//! The JSON schema of a settings file, for editors: the table in another notation.

use super::keys::{Key, Kind, camel, kebab, table};
use serde_json::{Map, Value, json};

/// Where the schema of the settings themselves is.
const SETTINGS: &str = "#/$defs/settings";

/// The schema, as it is checked in.
pub fn schema() -> String {
    let mut settings = object(table(), SETTINGS);
    settings["properties"]["$schema"] = json!({ "type": "string" });
    let section = json!({
        "description": "In a file that other programs read too: only this section is read",
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

/// The schema of an object, which is at this place. Editors offer the names as files spell them; other names of
/// a key and other spellings are only understood.
fn object(keys: &[Key], place: &str) -> Value {
    let mut properties = Map::new();
    let mut others = Map::new();
    for key in keys {
        let here = format!("{place}/properties/{}", key.camel());
        let flag = key
            .flag()
            .filter(|flag| key.kind != Kind::Switch && *flag != key.name);
        for alias in &key.aliases {
            let same = format!("The same as {}", key.camel());
            properties.insert(camel(alias), json!({ "description": same, "$ref": here }));
        }
        for name in key
            .aliases
            .iter()
            .map(String::as_str)
            .chain([key.name.as_str()])
        {
            if name.contains('-') {
                others.insert(
                    format!("^{}$", name.replace('-', "[-_]")),
                    json!({ "$ref": here }),
                );
            }
        }
        others.extend(flag.map(|flag| (format!("^{}$", kebab(flag)), json!({ "$ref": here }))));
        properties.insert(key.camel(), entry(key, &here));
    }
    let required: Vec<String> = keys
        .iter()
        .filter(|key| key.required)
        .map(Key::camel)
        .collect();
    let mut object =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !others.is_empty() {
        object["patternProperties"] = others.into();
    }
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

fn entry(key: &Key, place: &str) -> Value {
    let mut entry = kind(key, place);
    let otherwise = key
        .otherwise
        .as_ref()
        .map(|words| format!(" [default: {words}]"))
        .unwrap_or_default();
    entry["description"] = format!("{}{otherwise}", key.help).into();
    if let Some(default) = key.default.as_ref().filter(|_| key.otherwise.is_none()) {
        entry["default"] = default.clone();
    }
    entry
}

fn kind(key: &Key, place: &str) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": ["array", "null"], "items": text });
    match key.kind {
        Kind::Text | Kind::Path if key.may_be_nothing() => json!({ "type": ["string", "null"] }),
        Kind::Text | Kind::Path => text,
        Kind::Texts => texts,
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Branch => json!({ "type": ["boolean", "string", "null"], "minLength": 1 }),
        Kind::Count => json!({ "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX }),
        Kind::Code if key.required => json!({ "type": "integer", "minimum": 0, "maximum": 255 }),
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
        Kind::Command => json!({ "type": ["string", "array", "null"], "items": text }),
        Kind::Variables => json!({ "type": "object", "additionalProperties": text }),
        // With several types, each keyword speaks of its own: an object, the items of a list, or neither.
        Kind::Object => {
            let mut object = object(&key.inner, place);
            object["type"] = match key.bare_key() {
                None => json!(["object", "null"]),
                Some(inner) if inner.is_list() => json!(["object", "array", "string", "null"]),
                Some(_) => json!(["object", "string", "null"]),
            };
            if key.is_list() {
                object["items"] = text;
            }
            object
        }
        Kind::Objects => {
            let mut item = object(&key.inner, &format!("{place}/items"));
            if key.bare.is_some() {
                item["type"] = json!(["object", "string"]);
            }
            json!({ "type": ["array", "null"], "items": item })
        }
        Kind::Map => {
            let item = object(&key.inner, &format!("{place}/additionalProperties"));
            json!({ "type": "object", "additionalProperties": item })
        }
    }
}
