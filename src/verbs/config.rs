//! `ralph config`: every setting, its value, and the layer that it comes from.

use super::failure::Failure;
use super::run::{places, workspace};
use crate::cli::ConfigWords;
use crate::config::keys::{self, Key, Kind, table};
use crate::config::{Origin, Stack, schema};
use crate::show::say;
use serde_json::{Map, Value, json};

pub(super) fn config(words: &ConfigWords) -> Result<i32, Failure> {
    if words.schema {
        say(&schema::schema());
        return Ok(0);
    }
    let stack = Stack::load(&places(workspace()?, words.config.clone()))?;
    let rows = rows(&stack);
    if words.json {
        let all = rows.iter().map(|row| (row.name.clone(), json!({ "value": row.value, "from": row.from })));
        say(&format!("{:#}\n", Value::Object(all.collect())));
        return Ok(0);
    }
    let (mut text, mut axis) = (String::new(), "");
    let width = |of: fn(&Row) -> usize| rows.iter().map(of).filter(|width| *width < 50).max().unwrap_or(0);
    let (names, values) = (width(|row| row.name.len()), width(|row| row.shown().chars().count()));
    for row in &rows {
        if row.axis != axis {
            axis = row.axis;
            text += &format!("{}# {axis}\n", if text.is_empty() { "" } else { "\n" });
        }
        text += &format!("{:names$}  {:values$}  {}\n", row.name, row.shown(), row.from);
    }
    say(&text);
    Ok(0)
}

/// One setting as it stands; of an object, one inner value.
struct Row {
    axis: &'static str,
    name: String,
    value: Value,
    from: String,
    otherwise: Option<&'static str>,
}

impl Row {
    fn shown(&self) -> String {
        match (&self.value, self.otherwise) {
            (Value::Null, Some(words)) => format!("({words})"),
            (Value::Null, None) => "(none)".into(),
            (value, _) => value.to_string(),
        }
    }
}

fn rows(stack: &Stack) -> Vec<Row> {
    let merged = stack.merged();
    let mut rows = Vec::new();
    for key in table() {
        let from = rows.len();
        if let Some(Value::Object(inner)) = merged.get(&key.name) {
            inside(stack, key, &mut vec![key.name.clone()], inner, &mut rows);
        }
        if rows.len() == from {
            let value = merged.get(&key.name).filter(|value| !value.is_object()).cloned();
            rows.push(row(stack, key, &[key.name.clone()], value.unwrap_or(Value::Null)));
        }
    }
    rows
}

fn inside(
    stack: &Stack,
    key: &'static Key,
    path: &mut Vec<String>,
    object: &Map<String, Value>,
    rows: &mut Vec<Row>,
) {
    for (name, value) in object {
        path.push(name.clone());
        match value {
            Value::Object(inner) => inside(stack, key, path, inner, rows),
            value => rows.push(row(stack, key, path, value.clone())),
        }
        path.pop();
    }
}

fn row(stack: &Stack, key: &'static Key, path: &[String], value: Value) -> Row {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let from = match stack.origin(&names) {
        Origin::Flag => format!("--{}", key.flag().unwrap_or(&key.name)),
        other => other.to_string(),
    };
    Row { axis: &key.axis, name: spelled(key, path), value, from, otherwise: key.otherwise.as_deref() }
}

/// A path as files spell it; names of the user's own choice stay as they are.
fn spelled(key: &Key, path: &[String]) -> String {
    let mut spelled = key.camel();
    let (mut keys, mut named_by_user) = (&key.inner[..], key.kind == Kind::Map);
    for name in &path[1..] {
        let inner = keys::find(keys, name).filter(|_| !named_by_user);
        spelled = format!("{spelled}.{}", inner.map_or_else(|| name.clone(), Key::camel));
        keys = inner.map_or(keys, |inner| &inner.inner);
        named_by_user = false;
    }
    spelled
}
