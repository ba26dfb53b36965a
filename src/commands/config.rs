//! `ralph config`: prints every setting, its value, and the layer it comes from.

use super::run::settings_paths;
use super::workspace::ChosenWorkspace;
use crate::cli::ConfigArgs;
use crate::config::keys;
use crate::config::keys::{SettingKey, SettingKind, table};
use crate::config::{LayerStack, Origin, schema};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::ui::one_line;
use crate::ui::print::{print_json, print_output};
use serde_json::{Value, json};

pub(crate) fn config(args: &ConfigArgs) -> Result<ExitCode, CommandError> {
    if args.schema {
        print_output(&schema::settings_schema())?;
        return Ok(ExitCode::Success);
    }
    let workspace = ChosenWorkspace::choose(args.here)?;
    let config = args
        .config
        .as_deref()
        .map(|path| workspace.typed_path(path));
    let stack = LayerStack::load(&settings_paths(workspace.path, config))?;
    let rows = rows(&stack);
    if args.json {
        let all = rows.iter().map(|row| {
            (
                row.name.clone(),
                json!({ "value": row.value, "from": row.from }),
            )
        });
        print_json(&format!("{:#}", Value::Object(all.collect())))?;
        return Ok(ExitCode::Success);
    }
    print_output(&text(&rows))?;
    Ok(ExitCode::Success)
}

fn text(rows: &[SettingRow]) -> String {
    let (mut lines, mut heading) = (Vec::new(), "");
    // Very long cells do not widen their column.
    let column_width = |cell_width: fn(&SettingRow) -> usize| {
        rows.iter()
            .map(cell_width)
            .filter(|width| *width < 50)
            .max()
            .unwrap_or(0)
    };
    let name_width = column_width(|row| row.name.len());
    let value_width = column_width(|row| row.value_text().chars().count());
    for row in rows {
        if row.heading != heading {
            heading = row.heading;
            lines.push(format!(
                "{}# {heading}\n",
                if lines.is_empty() { "" } else { "\n" }
            ));
        }
        lines.push(format!(
            "{:name_width$}  {:value_width$}  {}\n",
            one_line(&row.name),
            row.value_text(),
            one_line(&row.from)
        ));
    }
    lines.concat()
}

/// A row of the output: a setting, or a value inside an object.
struct SettingRow {
    heading: &'static str,
    name: String,
    value: Value,
    from: String,
    default_text: Option<&'static str>,
}

impl SettingRow {
    fn value_text(&self) -> String {
        match (&self.value, self.default_text) {
            (Value::Null, Some(text)) => format!("({text})"),
            (Value::Null, None) => "(none)".into(),
            (value, _) => value.to_string(),
        }
    }
}

fn rows(stack: &LayerStack) -> Vec<SettingRow> {
    let merged = stack.merged();
    let mut rows = Vec::new();
    for key in table() {
        let value = merged.get(&key.name).cloned().unwrap_or(Value::Null);
        let from = origin(stack, key, &[&key.name]);
        visit_leaves(
            key.kind,
            &key.children,
            &key.camel_case(),
            &value,
            &mut |path, name, value| {
                let from = if path.is_empty() {
                    from.clone()
                } else {
                    origin(stack, key, &[&[key.name.as_str()], path].concat())
                };
                let default_text = key.default_text.as_deref();
                rows.push(SettingRow {
                    heading: &key.heading,
                    name,
                    value: value.clone(),
                    from,
                    default_text,
                });
            },
        );
    }
    rows
}

fn origin(stack: &LayerStack, key: &SettingKey, path: &[&str]) -> String {
    match stack.origin(path) {
        Origin::Flag => format!("--{}", key.flag().unwrap_or(&key.name)),
        other => other.to_string(),
    }
}

/// Calls `visit` for each leaf of a setting's value. Passes the leaf's path below the setting and
/// its name as settings files spell it.
fn visit_leaves(
    kind: SettingKind,
    children: &[SettingKey],
    name: &str,
    value: &Value,
    visit: &mut dyn FnMut(&[&str], String, &Value),
) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (child, value) in object {
                // Names that the user chose are not converted.
                let key = keys::find(children, child).filter(|_| kind != SettingKind::Map);
                let spelled = key.map_or_else(|| child.clone(), SettingKey::camel_case);
                let name = format!("{name}.{spelled}");
                let (kind, children) = key.map_or((SettingKind::Object, children), |key| {
                    (key.kind, &key.children)
                });
                visit_leaves(kind, children, &name, value, &mut |path, name, value| {
                    visit(&[&[child.as_str()], path].concat(), name, value);
                });
            }
        }
        Value::Object(_) => visit(&[], name.to_owned(), &Value::Null),
        Value::Array(items) if kind == SettingKind::Objects && !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                visit_leaves(
                    SettingKind::Object,
                    children,
                    &format!("{name}[{number}]"),
                    item,
                    &mut |_, name, value| {
                        visit(&[], name, value);
                    },
                );
            }
        }
        value => visit(&[], name.to_owned(), value),
    }
}
