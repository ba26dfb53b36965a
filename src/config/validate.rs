//! Is a value what its key asks for? Each comes out in one form, whatever spelling and short form it came in.

use super::keys::{Key, Kind, camel, find, kebab, nearest};
use super::units::{Backoff, Size, Span};
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// What is wrong with a value, and where in its layer.
#[derive(Debug, PartialEq)]
pub struct Flaw {
    /// The key as a path, `checks[1].failAction`.
    pub place: String,
    /// What is wrong with it.
    pub error: String,
    /// What would be right.
    pub hint: String,
}

fn flaw<T>(place: &str, error: String, hint: impl Into<String>) -> Result<T, Flaw> {
    Err(Flaw {
        place: place.into(),
        error,
        hint: hint.into(),
    })
}

/// The settings in an object, by their one name each.
pub fn settle_all(
    keys: &[Key],
    object: &Map<String, Value>,
    place: &str,
) -> Result<Map<String, Value>, Flaw> {
    let mut settled = Map::new();
    for (name, value) in object {
        let inner = if place.is_empty() {
            name.clone()
        } else {
            format!("{place}.{name}")
        };
        let Some(key) = find(keys, name) else {
            return unknown(keys, &inner, name);
        };
        if key.required && value.is_null() {
            continue;
        }
        if settled
            .insert(key.name.clone(), settle(key, value, &inner)?)
            .is_some()
        {
            let hint = format!("it is {} in another spelling: keep one", key.camel());
            return flaw(&inner, "is given twice".into(), hint);
        }
    }
    for key in keys.iter().filter(|key| key.required) {
        if !settled.contains_key(&key.name) {
            return flaw(place, format!("has no {}", key.camel()), example(key));
        }
    }
    Ok(settled)
}

fn unknown<T>(keys: &[Key], place: &str, name: &str) -> Result<T, Flaw> {
    // Files say `preflight: false` where the command line says `--no-preflight`.
    let kebab = kebab(name);
    let is_flag =
        |key: &&Key| key.flag.as_ref() == Some(&kebab) || key.flag_aliases.contains(&kebab);
    if let Some(key) = keys.iter().find(is_flag) {
        return flaw(
            place,
            "is a flag, not a setting".into(),
            format!("say {}: false", key.camel()),
        );
    }
    let known: Vec<String> = keys
        .iter()
        .flat_map(|key| std::iter::once(&key.name).chain(&key.aliases))
        .map(|name| camel(name))
        .collect();
    let hint = match nearest(&camel(&kebab), known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {meant}?"),
        None if keys.len() < 20 => format!("there are {}", known.join(", ")),
        None => "ralph config shows every setting".into(),
    };
    flaw(place, "is not a setting".into(), hint)
}

/// One value in its one form.
pub fn settle(key: &Key, value: &Value, place: &str) -> Result<Value, Flaw> {
    let wrong = || {
        flaw(
            place,
            format!("must be {}, not {}", expected(key), shortened(value)),
            example(key),
        )
    };
    let text = |parse: fn(&str) -> bool| match value {
        Value::String(text) if parse(text) => Ok(value.clone()),
        _ => wrong(),
    };
    let or_none = |settled: Option<Value>| match (value, settled) {
        (Value::Null, _) => Ok(json!(0)),
        (_, Some(settled)) => Ok(settled),
        _ => wrong(),
    };
    match key.kind {
        Kind::Text | Kind::Path if value.is_null() && key.may_be_nothing() => Ok(Value::Null),
        Kind::Text | Kind::Path => text(|_| true),
        Kind::Switch if value.is_boolean() => Ok(value.clone()),
        Kind::Branch => match value {
            Value::Null => Ok(json!(false)),
            Value::Bool(_) => Ok(value.clone()),
            // A flag has no other way to say yes or no.
            Value::String(word) if word == "true" || word == "false" => Ok(json!(word == "true")),
            _ => text(|branch| !branch.trim().is_empty()),
        },
        Kind::Count => or_none(
            value
                .as_u64()
                .filter(|count| u32::try_from(*count).is_ok())
                .map(Value::from),
        ),
        Kind::Code => or_none(value.as_u64().filter(|code| *code <= 255).map(Value::from)),
        Kind::Amount => or_none(value.as_f64().filter(|usd| *usd >= 0.0).map(Value::from)),
        Kind::Duration => or_none(written::<Span>(value)),
        Kind::Size => written::<Size>(value).map_or_else(wrong, Ok),
        Kind::Backoff => written::<Backoff>(value).map_or_else(wrong, Ok),
        Kind::Choice => match value.as_str().map(str::to_lowercase) {
            Some(word) if key.choices.contains(&word) => Ok(word.into()),
            _ => wrong(),
        },
        Kind::Texts => list(key, value, place, |item, _| {
            item.is_string().then(|| Ok(item.clone()))
        }),
        Kind::Command => match value {
            Value::String(line) => split(line, place),
            _ => words(key, value, place),
        },
        Kind::Variables => match value {
            Value::Object(all) if all.values().all(Value::is_string) => Ok(value.clone()),
            _ => wrong(),
        },
        Kind::Object => match (value, &key.bare) {
            (Value::Object(object), _) => Ok(Value::Object(settle_all(&key.inner, object, place)?)),
            (Value::Null, _) => Ok(Value::Null),
            (_, Some(_)) => bare(key, value, place),
            _ => wrong(),
        },
        Kind::Objects => list(key, value, place, |item, place| match item {
            Value::Object(object) => Some(settle_all(&key.inner, object, place).map(Value::Object)),
            Value::String(_) if key.bare.is_some() => Some(bare(key, item, place)),
            _ => None,
        }),
        Kind::Map => match value {
            Value::Object(all) => {
                let entries = all.iter().map(|(name, entry)| {
                    let place = format!("{place}.{name}");
                    match entry {
                        Value::Object(object) => Ok((
                            name.clone(),
                            Value::Object(settle_all(&key.inner, object, &place)?),
                        )),
                        _ => flaw(
                            &place,
                            format!("must be an object, not {}", shortened(entry)),
                            example(key),
                        ),
                    }
                });
                Ok(Value::Object(entries.collect::<Result<_, _>>()?))
            }
            _ => wrong(),
        },
        Kind::Switch => wrong(),
    }
}

/// A bare value stands for an object with the one key that people mean by it.
fn bare(key: &Key, value: &Value, place: &str) -> Result<Value, Flaw> {
    let inner = key.bare_key().expect("the table has one");
    // One task is a list of one.
    let listed = json!([value]);
    let value = if inner.is_list() && value.is_string() {
        &listed
    } else {
        value
    };
    let fits = if inner.is_list() {
        value.is_array()
    } else {
        value.is_string()
    };
    if !fits {
        return flaw(
            place,
            format!("must be {}, not {}", expected(key), shortened(value)),
            example(key),
        );
    }
    Ok(json!({ inner.name.clone(): settle(inner, value, place)? }))
}

fn list(
    key: &Key,
    value: &Value,
    place: &str,
    item: impl Fn(&Value, &str) -> Option<Result<Value, Flaw>>,
) -> Result<Value, Flaw> {
    let items = match value {
        Value::Null => return Ok(json!([])),
        Value::Array(items) => items,
        _ => {
            return flaw(
                place,
                format!("must be {}, not {}", expected(key), shortened(value)),
                example(key),
            );
        }
    };
    let settled = items.iter().enumerate().map(|(number, value)| {
        let place = format!("{place}[{number}]");
        item(value, &place).unwrap_or_else(|| {
            let what = match key.kind {
                Kind::Objects if key.bare.is_some() => "a text or an object",
                Kind::Objects => "an object",
                _ => "a text",
            };
            flaw(
                &place,
                format!("must be {what}, not {}", shortened(value)),
                example(key),
            )
        })
    });
    Ok(Value::Array(settled.collect::<Result<_, _>>()?))
}

/// The words of a list, each of which may be several.
fn words(key: &Key, value: &Value, place: &str) -> Result<Value, Flaw> {
    let lists = list(key, value, place, |item, place| {
        item.as_str().map(|line| split(line, place))
    })?;
    let words = lists
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten();
    Ok(Value::Array(words.cloned().collect()))
}

/// Words as a shell would split them.
fn split(line: &str, place: &str) -> Result<Value, Flaw> {
    match shlex::split(line) {
        Some(words) => Ok(Value::from(words)),
        None => flaw(
            place,
            format!("has a quotation without an end: {line}"),
            "close it, or put a \\ before it",
        ),
    }
}

fn written<T: FromStr>(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    text.parse::<T>().ok().map(|_| value.clone())
}

/// What a key's values are, in words.
fn expected(key: &Key) -> String {
    let or_bare = if key.bare.is_some() { " or a text" } else { "" };
    match key.kind {
        Kind::Text => "a text".into(),
        Kind::Path => "a path".into(),
        Kind::Texts => "a list of texts".into(),
        Kind::Switch => "true or false".into(),
        Kind::Branch => "true, false or the name of a branch".into(),
        Kind::Count => "a whole number, 0 or more".into(),
        Kind::Code => "an exit code, 0 to 255".into(),
        Kind::Amount => "an amount in dollars".into(),
        Kind::Duration => "a duration".into(),
        Kind::Size => "a size".into(),
        Kind::Backoff => "two durations, the shorter one first".into(),
        Kind::Choice => format!("one of {}", key.choices.join(", ")),
        Kind::Command => "a text or a list of texts".into(),
        Kind::Variables => "an object of texts".into(),
        Kind::Object if key.is_list() => "an object or a list of texts".into(),
        Kind::Object | Kind::Map => format!("an object{or_bare}"),
        Kind::Objects => "a list".into(),
    }
}

/// What a right value looks like.
fn example(key: &Key) -> String {
    let value = match key.kind {
        Kind::Text | Kind::Path => "\"…\"".into(),
        Kind::Texts => "[\"…\", \"…\"]".into(),
        Kind::Switch => "true".into(),
        Kind::Branch => "true, or \"feature/parser\"".into(),
        Kind::Count => "10".into(),
        Kind::Code => "42".into(),
        Kind::Amount => "2.50".into(),
        Kind::Duration => "90, \"90s\", \"5m\" or \"2h\"".into(),
        Kind::Size => "\"64MiB\"".into(),
        Kind::Backoff => "\"1s..300s\"".into(),
        Kind::Choice => format!("\"{}\"", key.choices[0]),
        Kind::Command => "[\"claude\", \"-p\"]".into(),
        Kind::Variables => "{ \"NAME\": \"value\" }".into(),
        Kind::Object | Kind::Objects | Kind::Map => {
            let inner: Vec<String> = key.inner.iter().take(4).map(Key::camel).collect();
            return format!(
                "{} has {}; docs/settings.md has examples",
                key.camel(),
                inner.join(", ")
            );
        }
    };
    format!("for example {}: {value}", key.camel())
}

fn shortened(value: &Value) -> String {
    match value {
        // As the reader of TOML calls it.
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
