//! Validates values against the table of settings, and normalizes them to canonical key names
//! without shorthands.

use super::keys::{SettingKey, SettingKind, camel_case, find, kebab_case, nearest};
use super::units::{BackoffRange, ByteSize, Millis};
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// An error in the value of a setting: its key does not accept it.
#[derive(Debug, PartialEq)]
pub(crate) struct ValueError {
    /// The path of the key, such as `checks[1].failAction`.
    pub(crate) path: String,
    /// A description of the error that follows the path: `must be a string, not 5`.
    pub(crate) message: String,
    /// How to fix the error.
    pub(crate) hint: FixHint,
}

/// How to fix an error in the value of a setting.
#[derive(Debug, PartialEq)]
pub(crate) enum FixHint {
    Text(String),
    /// What to write in the file, after a phrase such as `for example`.
    Assign {
        phrase: &'static str,
        key: String,
        value: String,
    },
}

impl FixHint {
    /// Formats the hint. An assignment is written as in TOML, or as in JSON and YAML.
    pub(crate) fn text(&self, is_toml: bool) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Assign { phrase, key, value } if is_toml => {
                format!("{phrase} {key} = {}", value.replace("\": ", "\" = "))
            }
            Self::Assign { phrase, key, value } => format!("{phrase} {key}: {value}"),
        }
    }
}

fn value_error<T>(path: &str, message: String, hint: FixHint) -> Result<T, ValueError> {
    Err(ValueError {
        path: path.into(),
        message,
        hint,
    })
}

/// Validates and normalizes all settings in the object at `path`.
pub(crate) fn normalize_all(
    keys: &[SettingKey],
    object: &Map<String, Value>,
    path: &str,
) -> Result<Map<String, Value>, ValueError> {
    let mut normalized = Map::new();
    for (name, value) in object {
        let inner = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let Some(key) = find(keys, name) else {
            return unknown_key(keys, &inner, name);
        };
        if key.required && value.is_null() {
            continue;
        }
        if normalized
            .insert(key.name.clone(), normalize(key, value, &inner)?)
            .is_some()
        {
            let hint = FixHint::Text(format!("keep one spelling of {}", key.camel_case()));
            return value_error(&inner, "is set twice".into(), hint);
        }
    }
    for key in keys.iter().filter(|key| key.required) {
        if !normalized.contains_key(&key.name) {
            return value_error(path, format!("has no {}", key.camel_case()), example(key));
        }
    }
    Ok(normalized)
}

fn unknown_key<T>(keys: &[SettingKey], path: &str, name: &str) -> Result<T, ValueError> {
    // `--no-preflight` on the command line is `preflight: false` in files.
    let kebab = kebab_case(name);
    let is_flag =
        |key: &&SettingKey| key.flag.as_ref() == Some(&kebab) || key.flag_aliases.contains(&kebab);
    if let Some(key) = keys.iter().find(is_flag) {
        return value_error(
            path,
            "is a flag, not a setting".into(),
            FixHint::Assign {
                phrase: "use",
                key: key.camel_case(),
                value: "false".into(),
            },
        );
    }
    let known: Vec<String> = keys
        .iter()
        .flat_map(|key| std::iter::once(&key.name).chain(&key.aliases))
        .map(|name| camel_case(name))
        .collect();
    let hint = match nearest(&camel_case(&kebab), known.iter().map(String::as_str)) {
        Some(suggestion) => format!("did you mean {suggestion}?"),
        None if keys.len() < 20 => format!("known keys: {}", known.join(", ")),
        None => "run `ralph config` to list every setting".into(),
    };
    value_error(path, "is not a setting".into(), FixHint::Text(hint))
}

/// Validates and normalizes the value at `path`.
pub(crate) fn normalize(key: &SettingKey, value: &Value, path: &str) -> Result<Value, ValueError> {
    let invalid = || unexpected(key, value, path);
    let text = |parse: fn(&str) -> bool| match value {
        Value::String(text) if parse(text) => Ok(value.clone()),
        _ => invalid(),
    };
    let or_none = |normalized: Option<Value>| match (value, normalized) {
        (Value::Null, _) => Ok(json!(0)),
        (_, Some(normalized)) => Ok(normalized),
        _ => invalid(),
    };
    match key.kind {
        SettingKind::Text | SettingKind::Path if value.is_null() && key.is_nullable() => {
            Ok(Value::Null)
        }
        SettingKind::Text | SettingKind::Path => text(|_| true),
        SettingKind::Switch if value.is_boolean() => Ok(value.clone()),
        SettingKind::Branch => match value {
            Value::Null => Ok(json!(false)),
            Value::Bool(_) => Ok(value.clone()),
            // The flag passes booleans as text.
            Value::String(text) if text == "true" || text == "false" => Ok(json!(text == "true")),
            _ => text(|branch| !branch.trim().is_empty()),
        },
        SettingKind::Count => or_none(
            value
                .as_u64()
                .filter(|count| *count <= key.count_max())
                .map(Value::from),
        ),
        SettingKind::Code => or_none(value.as_u64().filter(|code| *code <= 255).map(Value::from)),
        SettingKind::Amount => or_none(value.as_f64().filter(|usd| *usd >= 0.0).map(Value::from)),
        SettingKind::Duration => or_none(if_parses::<Millis>(value)),
        SettingKind::Size => if_parses::<ByteSize>(value).map_or_else(invalid, Ok),
        SettingKind::Backoff => or_none(if_parses::<BackoffRange>(value)),
        SettingKind::Choice => {
            let choice = match (value, &key.bare) {
                (Value::Bool(true), Some(bare)) => Some(bare.clone()),
                (Value::Bool(false), Some(_)) => key.choices.first().cloned(),
                _ => value.as_str().map(str::to_lowercase),
            };
            match choice {
                Some(choice) if key.choices.contains(&choice) => Ok(choice.into()),
                _ => invalid(),
            }
        }
        SettingKind::Texts => normalize_list(key, value, path, if_string),
        SettingKind::Command => match value {
            Value::String(line) => split_args(line, path),
            // The arguments of a command may contain spaces: `["sh", "-c", "a b"]`.
            Value::Array(items) if items.len() > 1 => normalize_list(key, value, path, if_string),
            _ => split_each(key, value, path),
        },
        SettingKind::Flags => match value {
            Value::String(line) => split_args(line, path),
            _ => split_each(key, value, path),
        },
        SettingKind::Variables => match value {
            Value::Object(all) if all.values().all(Value::is_string) => Ok(value.clone()),
            _ => invalid(),
        },
        SettingKind::Object => match (value, &key.shorthand) {
            (Value::Object(object), _) => {
                Ok(Value::Object(normalize_all(&key.children, object, path)?))
            }
            (Value::Null, _) => Ok(Value::Null),
            (_, Some(_)) => expand_shorthand(key, value, path),
            _ => invalid(),
        },
        SettingKind::Objects => normalize_list(key, value, path, |item, path| match item {
            Value::Object(object) => {
                Some(normalize_all(&key.children, object, path).map(Value::Object))
            }
            Value::String(_) if key.shorthand.is_some() => Some(expand_shorthand(key, item, path)),
            _ => None,
        }),
        SettingKind::Map => match value {
            Value::Object(all) => {
                let entries = all.iter().map(|(name, entry)| {
                    let path = format!("{path}.{name}");
                    match entry {
                        Value::Object(object) => Ok((
                            name.clone(),
                            Value::Object(normalize_all(&key.children, object, &path)?),
                        )),
                        _ => value_error(
                            &path,
                            format!("must be an object, not {}", describe(entry)),
                            example(key),
                        ),
                    }
                });
                Ok(Value::Object(entries.collect::<Result<_, _>>()?))
            }
            _ => invalid(),
        },
        SettingKind::Switch => invalid(),
    }
}

fn unexpected<T>(key: &SettingKey, value: &Value, path: &str) -> Result<T, ValueError> {
    value_error(
        path,
        format!("must be {}, not {}", expected(key), describe(value)),
        example(key),
    )
}

/// Converts a plain value to an object that sets the key's shorthand child.
fn expand_shorthand(key: &SettingKey, value: &Value, path: &str) -> Result<Value, ValueError> {
    let child = key.shorthand_key().expect("the key has a shorthand");
    // A single string means a list with one item.
    let as_list = json!([value]);
    let value = if child.is_list() && value.is_string() {
        &as_list
    } else {
        value
    };
    let is_valid = if child.is_list() {
        value.is_array()
    } else {
        value.is_string()
    };
    if !is_valid {
        return unexpected(key, value, path);
    }
    Ok(json!({ child.name.clone(): normalize(child, value, path)? }))
}

fn normalize_list(
    key: &SettingKey,
    value: &Value,
    path: &str,
    item: impl Fn(&Value, &str) -> Option<Result<Value, ValueError>>,
) -> Result<Value, ValueError> {
    let items = match value {
        Value::Null => return Ok(json!([])),
        Value::Array(items) => items,
        _ => return unexpected(key, value, path),
    };
    let normalized = items.iter().enumerate().map(|(number, value)| {
        let path = format!("{path}[{number}]");
        item(value, &path).unwrap_or_else(|| {
            let what = match key.kind {
                SettingKind::Objects if key.shorthand.is_some() => "a string or an object",
                SettingKind::Objects => "an object",
                _ => "a string",
            };
            value_error(
                &path,
                format!("must be {what}, not {}", describe(value)),
                example(key),
            )
        })
    });
    Ok(Value::Array(normalized.collect::<Result<_, _>>()?))
}

/// Returns an item of a list if it is a string; `None` otherwise.
fn if_string(item: &Value, _path: &str) -> Option<Result<Value, ValueError>> {
    item.is_string().then(|| Ok(item.clone()))
}

/// Splits each item of a list into arguments and concatenates them.
fn split_each(key: &SettingKey, value: &Value, path: &str) -> Result<Value, ValueError> {
    let lists = normalize_list(key, value, path, |item, path| {
        item.as_str().map(|line| split_args(line, path))
    })?;
    let args = lists
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten();
    Ok(Value::Array(args.cloned().collect()))
}

/// Splits a line into arguments as a shell would.
fn split_args(line: &str, path: &str) -> Result<Value, ValueError> {
    match shlex::split(line) {
        Some(args) => Ok(Value::from(args)),
        None => value_error(
            path,
            format!("has an unclosed quotation mark: {line}"),
            FixHint::Text("close it, or put a \\ before it".into()),
        ),
    }
}

/// Returns the value unchanged if it parses as `T`; `None` otherwise.
fn if_parses<T: FromStr>(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    text.parse::<T>().ok().map(|_| value.clone())
}

/// Describes the values that a key accepts. The text follows "must be".
fn expected(key: &SettingKey) -> String {
    let or_shorthand = if key.shorthand.is_some() {
        " or a string"
    } else {
        ""
    };
    match key.kind {
        SettingKind::Text => "a string".into(),
        SettingKind::Path => "a path".into(),
        SettingKind::Texts => "a list of strings".into(),
        SettingKind::Switch => "true or false".into(),
        SettingKind::Branch => "true, false or the name of a branch".into(),
        SettingKind::Count => "a whole number, 0 or more".into(),
        SettingKind::Code => "an exit code, 0 to 255".into(),
        SettingKind::Amount => "an amount in dollars".into(),
        SettingKind::Duration => "a duration".into(),
        SettingKind::Size => "a size".into(),
        SettingKind::Backoff => "two durations, the shorter one first".into(),
        SettingKind::Choice if key.bare.is_some() => {
            format!("true, false or one of {}", key.choices.join(", "))
        }
        SettingKind::Choice => format!("one of {}", key.choices.join(", ")),
        SettingKind::Command | SettingKind::Flags => "a string or a list of strings".into(),
        SettingKind::Variables => "an object with strings as values".into(),
        SettingKind::Object if key.is_list() => "an object or a list of strings".into(),
        SettingKind::Object | SettingKind::Map => format!("an object{or_shorthand}"),
        SettingKind::Objects => "a list".into(),
    }
}

/// Returns a hint with an example of a valid value.
fn example(key: &SettingKey) -> FixHint {
    let value = match key.kind {
        SettingKind::Text | SettingKind::Path => "\"…\"".into(),
        SettingKind::Texts => "[\"…\", \"…\"]".into(),
        SettingKind::Switch => "true".into(),
        SettingKind::Branch => "true, or \"feature/parser\"".into(),
        SettingKind::Count => "10".into(),
        SettingKind::Code => "42".into(),
        SettingKind::Amount => "2.50".into(),
        SettingKind::Duration => "90, \"90s\", \"5m\" or \"1h30m\"".into(),
        SettingKind::Size => "\"64MiB\"".into(),
        SettingKind::Backoff => "\"1s..300s\"".into(),
        SettingKind::Choice => format!("\"{}\"", key.choices[0]),
        SettingKind::Command | SettingKind::Flags => "[\"claude\", \"-p\"]".into(),
        SettingKind::Variables => "{ \"NAME\": \"value\" }".into(),
        SettingKind::Object | SettingKind::Objects | SettingKind::Map => {
            let children = key.children.iter().take(4).map(SettingKey::camel_case);
            return FixHint::Text(format!(
                "{} has {}; docs/settings.md has examples",
                key.camel_case(),
                children.collect::<Vec<_>>().join(", ")
            ));
        }
    };
    FixHint::Assign {
        phrase: "for example",
        key: key.camel_case(),
        value,
    }
}

/// Describes a value for a message. A long value is abbreviated.
fn describe(value: &Value) -> String {
    match value {
        // The TOML parser represents a date like this.
        Value::Object(object) if object.contains_key("$__toml_private_datetime") => "a date".into(),
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        Value::Null => "nothing".into(),
        other => {
            let text = other.to_string();
            if text.chars().count() > 40 {
                text.chars().take(39).chain(['…']).collect()
            } else {
                text
            }
        }
    }
}
