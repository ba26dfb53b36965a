//! `ralph config`: every setting, its value, and the layer that it comes from.

use super::run::{places, workspace};
use crate::cli::ConfigWords;
use crate::config::keys;
use crate::config::keys::{Key, Kind, table};
use crate::config::{Origin, Stack, schema};
use crate::lifecycle::failure::{Failure, answer};
use serde_json::{Value, json};

pub(crate) fn config(words: &ConfigWords) -> Result<i32, Failure> {
    if words.schema {
        answer(&schema::schema())?;
        return Ok(0);
    }
    let stack = Stack::load(&places(workspace()?, words.config.clone()))?;
    let rows = rows(&stack);
    if words.json {
        let all = rows.iter().map(|row| {
            (
                row.name.clone(),
                json!({ "value": row.value, "from": row.from }),
            )
        });
        answer(&format!("{:#}\n", Value::Object(all.collect())))?;
        return Ok(0);
    }
    answer(&text(&rows))?;
    Ok(0)
}

fn text(rows: &[Row]) -> String {
    let (mut lines, mut axis) = (Vec::new(), "");
    let width = |of: fn(&Row) -> usize| {
        rows.iter()
            .map(of)
            .filter(|width| *width < 50)
            .max()
            .unwrap_or(0)
    };
    let (names, values) = (
        width(|row| row.name.len()),
        width(|row| row.shown().chars().count()),
    );
    for row in rows {
        if row.axis != axis {
            axis = row.axis;
            lines.push(format!(
                "{}# {axis}\n",
                if lines.is_empty() { "" } else { "\n" }
            ));
        }
        lines.push(format!(
            "{:names$}  {:values$}  {}\n",
            row.name,
            row.shown(),
            row.from
        ));
    }
    lines.concat()
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
        let value = merged.get(&key.name).cloned().unwrap_or(Value::Null);
        let from = origin(stack, key, &[&key.name]);
        leaves(
            key.kind,
            &key.inner,
            &key.camel(),
            &value,
            &mut |path, name, value| {
                let from = if path.is_empty() {
                    from.clone()
                } else {
                    origin(stack, key, &[&[key.name.as_str()], path].concat())
                };
                let otherwise = key.otherwise.as_deref();
                rows.push(Row {
                    axis: &key.axis,
                    name,
                    value: value.clone(),
                    from,
                    otherwise,
                });
            },
        );
    }
    rows
}

fn origin(stack: &Stack, key: &Key, path: &[&str]) -> String {
    match stack.origin(path) {
        Origin::Flag => format!("--{}", key.flag().unwrap_or(&key.name)),
        other => other.to_string(),
    }
}

/// Tells of every value inside a value: its path, its name as files spell it, and the value.
fn leaves(
    kind: Kind,
    inner: &[Key],
    name: &str,
    value: &Value,
    tell: &mut dyn FnMut(&[&str], String, &Value),
) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (inside, value) in object {
                // Names of the user's own choice stay as they are.
                let known = keys::find(inner, inside).filter(|_| kind != Kind::Map);
                let spelled = known.map_or_else(|| inside.clone(), Key::camel);
                let name = format!("{name}.{spelled}");
                let (kind, inner) =
                    known.map_or((Kind::Object, inner), |known| (known.kind, &known.inner));
                leaves(kind, inner, &name, value, &mut |path, name, value| {
                    tell(&[&[inside.as_str()], path].concat(), name, value);
                });
            }
        }
        Value::Object(_) => tell(&[], name.to_owned(), &Value::Null),
        Value::Array(items) if kind == Kind::Objects && !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                leaves(
                    Kind::Object,
                    inner,
                    &format!("{name}[{number}]"),
                    item,
                    &mut |_, name, value| {
                        tell(&[], name, value);
                    },
                );
            }
        }
        value => tell(&[], name.to_owned(), value),
    }
}
