//! Finds the values in a settings file that run something or widen what the agent may do. The
//! table of settings says which these are.

use super::keys::{SettingKey, SettingKind, find, table};
use serde_json::{Map, Value};

/// A value that a file of the project may set only once the user trusts the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuardedValue {
    /// The key as settings files spell it, without the index of a list's item: `agent.command`.
    pub(crate) key: String,
    /// The value; a command as a shell would read it.
    pub(crate) text: String,
}

/// Returns the values that need trust, in the order of the table. Several values of a list have the
/// same key.
pub(super) fn guarded_values(values: &Map<String, Value>) -> Vec<GuardedValue> {
    let mut found = Vec::new();
    find_in_object(table(), values, "", false, &mut found);
    found
}

/// Removes the values that need trust.
pub(super) fn remove_guarded(values: &mut Map<String, Value>) {
    remove_from_object(table(), values);
}

fn remove_from_object(keys: &[SettingKey], values: &mut Map<String, Value>) {
    for key in keys {
        if is_guarded(key, values) {
            values.remove(&key.name);
        } else if let Some(Value::Object(inner)) = values.get_mut(&key.name) {
            remove_from_object(&key.children, inner);
        }
    }
}

/// Returns whether the key's own row guards its value in this object.
fn is_guarded(key: &SettingKey, values: &Map<String, Value>) -> bool {
    let mut found = Vec::new();
    if let (Some(value), false) = (values.get(&key.name), key.trust.is_empty()) {
        find_in_value(key, value, &key.camel_case(), false, &mut found);
    }
    !found.is_empty()
}

/// Adds the guarded values of an object. `all` means that the object as a whole needs trust.
fn find_in_object(
    keys: &[SettingKey],
    values: &Map<String, Value>,
    path: &str,
    all: bool,
    found: &mut Vec<GuardedValue>,
) {
    for key in keys {
        if let Some(value) = values.get(&key.name) {
            find_in_value(key, value, &join(path, &key.camel_case()), all, found);
        }
    }
}

fn find_in_value(
    key: &SettingKey,
    value: &Value,
    path: &str,
    all: bool,
    found: &mut Vec<GuardedValue>,
) {
    let inner_all = all || key.trust.iter().any(|pattern| pattern == "*");
    match (key.kind, value) {
        (SettingKind::Object, Value::Object(object)) => {
            find_in_object(&key.children, object, path, inner_all, found);
        }
        (SettingKind::Map, Value::Object(entries)) => {
            for (name, entry) in entries {
                if let Value::Object(object) = entry {
                    find_in_object(&key.children, object, &join(path, name), inner_all, found);
                }
            }
        }
        (SettingKind::Variables, Value::Object(variables)) if inner_all => {
            found.extend(variables.iter().map(|(name, value)| GuardedValue {
                key: join(path, name),
                text: plain_text(value),
            }));
        }
        (SettingKind::Objects, Value::Array(items)) => {
            for object in items.iter().filter_map(Value::as_object) {
                match key.shorthand.as_deref().and_then(|name| object.get(name)) {
                    Some(value) if inner_all => found.push(GuardedValue {
                        key: path.to_owned(),
                        text: plain_text(value),
                    }),
                    _ => find_in_object(&key.children, object, path, inner_all, found),
                }
            }
        }
        (SettingKind::Command | SettingKind::Flags, Value::Array(args))
            if inner_all && !args.is_empty() =>
        {
            let args = args.iter().map(|arg| arg.as_str().unwrap_or_default());
            found.push(GuardedValue {
                key: path.to_owned(),
                // A NUL, which no shell can quote, cannot be part of a command either.
                text: shlex::try_join(args.clone())
                    .unwrap_or_else(|_| args.collect::<Vec<_>>().join(" ")),
            });
        }
        (_, Value::Array(items)) if inner_all => {
            found.extend(items.iter().map(|item| GuardedValue {
                key: path.to_owned(),
                text: plain_text(item),
            }));
        }
        (_, Value::Null) if !all => {}
        (_, value) => {
            let text = plain_text(value);
            if all || key.needs_trust(&text) {
                found.push(GuardedValue {
                    key: path.to_owned(),
                    text,
                });
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns whether the value at `path` of the table needs trust, as set by a file of the project.
pub(crate) fn is_guarded_key(path: &[&str], value: &Value) -> bool {
    let mut keys = table();
    let mut all = false;
    for (depth, name) in path.iter().enumerate() {
        let Some(key) = find(keys, name) else {
            // A name that the user chose, in a map.
            continue;
        };
        all |= key.trust.iter().any(|pattern| pattern == "*");
        if all || (depth + 1 == path.len() && key.needs_trust(&plain_text(value))) {
            return true;
        }
        keys = &key.children;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::validate::normalize_all;
    use super::*;
    use serde_json::json;

    fn normalized(value: &Value) -> Map<String, Value> {
        normalize_all(table(), value.as_object().unwrap(), "").unwrap()
    }

    #[test]
    fn every_value_that_runs_or_widens_is_found_and_removed() {
        let mut values = normalized(&json!({
            "prompt": "Do it.",
            "maxIterations": 7,
            "protect": ["api/**"],
            "allow": ["tests/golden/**"],
            "checks": ["./a", { "command": "./b 'x y'", "timeout": "5m" }],
            "agent": { "name": "claude, script:../evil", "flags": "--yolo 'a b'" },
            "model": "--dangerous",
            "approve": "ALL",
            "allowApiKey": true,
            "agents": {
                "claude": {
                    "version": ["-p", "evil"],
                    "approve": { "edits": { "env": { "PATH": "/evil" } } },
                    "exit": [{ "code": 3, "means": "login" }],
                },
            },
            "scm": ["commit", "push"],
            "notify": "./c",
        }));
        let found: Vec<_> = guarded_values(&values)
            .into_iter()
            .map(|value| format!("{}: {}", value.key, value.text))
            .collect();
        assert_eq!(
            found,
            [
                "checks: ./a",
                "checks: ./b 'x y'",
                "allow: tests/golden/**",
                "agent.name: claude, script:../evil",
                "agent.flags: --yolo 'a b'",
                "model: --dangerous",
                "approve: all",
                "allowApiKey: true",
                "agents.claude.approve.edits.env.PATH: /evil",
                "agents.claude.exit.code: 3",
                "agents.claude.exit.means: login",
                "agents.claude.version: -p evil",
                "scm.tasks: commit",
                "scm.tasks: push",
                "notify: ./c",
            ]
        );
        remove_guarded(&mut values);
        assert_eq!(guarded_values(&values), []);
        assert_eq!(
            Value::Object(values),
            json!({ "prompt": "Do it.", "max-iterations": 7, "protect": ["api/**"], "agent": {} })
        );
    }

    #[test]
    fn limits_prompts_and_names_of_known_agents_need_no_trust() {
        let values = normalized(&json!({
            "promptFile": "spec.md", "promise": "OK", "doneFile": "x", "donePattern": "y",
            "maxCost": 3, "checkTimeout": 5, "onFail": "replace", "agent": "claude,codex",
            "model": "opus", "approve": "edits", "allowApiKey": false, "context": "none",
            "checks": [], "scm": [], "agents": {}, "notify": null, "worktree": "side",
        }));
        assert_eq!(guarded_values(&values), []);
        let mut kept = values.clone();
        remove_guarded(&mut kept);
        assert_eq!(kept, values);
    }
}
