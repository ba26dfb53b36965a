//! `ralph config`: prints every setting, its value, and the layer it comes from.

use super::run::{config_dir, settings_paths};
use super::workspace::ChosenWorkspace;
use crate::agent::redact::Redactor;
use crate::cli::ConfigArgs;
use crate::config::keys;
use crate::config::keys::{SettingKey, SettingKind, table};
use crate::config::trust::is_guarded_key;
use crate::config::url::redact_urls;
use crate::config::{LayerStack, Origin, SettingsFiles, schema};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::trust::TrustRecords;
use crate::ui::print::{note, print_json, print_output};
use crate::ui::trust_text;
use crate::ui::{hang, one_line, tty};
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
    let files = SettingsFiles::read(&settings_paths(workspace.path.clone(), config))?;
    let records = TrustRecords::new(config_dir().as_deref());
    let untrusted = records.untrusted(&files, &workspace.path);
    if !untrusted.is_empty() {
        note(trust_text::not_yet(&untrusted));
    }
    let untrusted: Vec<String> = untrusted.into_iter().map(|file| file.name).collect();
    let mut rows = rows(&files.into_stack(), &untrusted);
    let redactor = Redactor::from_env();
    for row in &mut rows {
        redactor.redact_json(&mut row.value);
        if let ("fleet", Value::String(urls)) = (row.name.as_str(), &mut row.value) {
            *urls = redact_urls(urls);
        }
    }
    if args.json {
        let all = rows.iter().map(|row| {
            let mut entry = json!({ "value": row.value, "from": row.from });
            if !row.is_trusted {
                entry["trusted"] = false.into();
            }
            (row.name.clone(), entry)
        });
        print_json(&format!("{:#}", Value::Object(all.collect())))?;
        return Ok(ExitCode::Success);
    }
    print_output(&text(&rows, tty::width()))?;
    Ok(ExitCode::Success)
}

/// Renders the rows. In a terminal of `columns` columns, long rows are broken between words.
fn text(rows: &[SettingRow], columns: Option<usize>) -> String {
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
        let value = format!(
            "{:value_width$}  {}{}",
            row.value_text(),
            one_line(&row.from),
            if row.is_trusted { "" } else { " (not trusted)" }
        );
        let value = hang(&value, columns, name_width + 2, name_width + 2);
        lines.push(format!("{:name_width$}  {value}\n", one_line(&row.name)));
    }
    lines.concat()
}

/// A row of the output: a setting, or a value inside an object.
struct SettingRow {
    heading: &'static str,
    name: String,
    value: Value,
    from: String,
    /// Whether a run would use the value without asking.
    is_trusted: bool,
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

/// Returns all rows. `untrusted` names the files that the user does not trust.
fn rows(stack: &LayerStack, untrusted: &[String]) -> Vec<SettingRow> {
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
                let path = [&[key.name.as_str()], path].concat();
                let from = if path.len() == 1 {
                    from.clone()
                } else {
                    origin(stack, key, &path)
                };
                let is_trusted = !untrusted.contains(&from) || !is_guarded_key(&path, value);
                let default_text = key.default_text.as_deref();
                rows.push(SettingRow {
                    heading: &key.heading,
                    name,
                    value: value.clone(),
                    from,
                    is_trusted,
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
