//! Merges layers of settings: defaults, the user's file, the project's file, the local file and
//! flags. Later layers win.

use super::keys::{SettingKey, find, table};
use serde_json::{Map, Value};
use std::fmt;

/// The source of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The defaults in the table of settings.
    Default,
    /// A settings file. The text is its path for messages.
    File(String),
    /// The command line, or a program that embeds the library.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File(path) => path,
            Self::Flag => "flag",
        })
    }
}

/// Settings from one source, such as a file.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The source of the values.
    pub(crate) origin: Origin,
    /// Normalized values, by the canonical names of their keys.
    pub(crate) values: Map<String, Value>,
}

/// All layers, lowest first. The first layer contains the defaults.
#[derive(Clone, Debug)]
pub(crate) struct LayerStack {
    layers: Vec<Layer>,
}

impl LayerStack {
    /// Returns a stack with only the defaults.
    pub(crate) fn defaults() -> Self {
        let rows = table()
            .iter()
            .filter_map(|key| Some((key.name.clone(), key.default.clone()?)));
        Self {
            layers: vec![Layer {
                origin: Origin::Default,
                values: rows.collect(),
            }],
        }
    }

    /// Adds a layer on top. Objects are merged with those in lower layers; any other value replaces
    /// the lower one.
    pub(crate) fn push(&mut self, layer: Layer) {
        let merged = self.merged();
        let agent_changes = matches!(
            (agent_name(&merged), agent_name(&layer.values)),
            (Some(old), Some(new)) if old != new
        );
        // Do not remove defaults: every setting must have a value.
        for below in self.layers.iter_mut().skip(1) {
            drop_replaced(table(), &layer.values, &mut below.values);
            if agent_changes {
                drop_agent_specific(&mut below.values);
            }
        }
        self.layers.push(layer);
    }

    /// Merges all layers into one object.
    pub(crate) fn merged(&self) -> Map<String, Value> {
        let mut merged = Map::new();
        for layer in &self.layers {
            merge(&mut merged, &layer.values);
        }
        merged
    }

    /// Returns the source of the effective value of a key. `path` lists the names of the
    /// objects that contain the key, and then the key's own name.
    pub(crate) fn origin(&self, path: &[&str]) -> &Origin {
        &self.layers[self.layer_index(path)].origin
    }

    /// Returns the index of the layer that sets the effective value of the key at `path`; 0 is the
    /// defaults.
    pub(super) fn layer_index(&self, path: &[&str]) -> usize {
        let sets = |layer: &Layer| {
            let mut values = &layer.values;
            path.iter()
                .enumerate()
                .all(|(depth, name)| match values.get(*name) {
                    Some(Value::Object(inner)) if depth + 1 < path.len() => {
                        values = inner;
                        true
                    }
                    Some(_) => true,
                    None => false,
                })
        };
        self.layers.iter().rposition(sets).unwrap_or(0)
    }

    /// Returns whether the effective value comes from a flag.
    pub(crate) fn is_from_flag(&self, name: &str) -> bool {
        *self.origin(&[name]) == Origin::Flag
    }

    /// Returns the name of a key for messages, depending on its source: `--max-cost`, or
    /// `.ralph/settings.json: maxCost`.
    pub(crate) fn display_name(&self, key: &str) -> String {
        let row = super::keys::key(key);
        match self.origin(&[key]) {
            Origin::Flag | Origin::Default => row
                .flag()
                .map_or_else(|| row.camel_case(), |flag| format!("--{flag}")),
            Origin::File(path) => format!("{path}: {}", row.camel_case()),
        }
    }
}

/// Removes from a lower layer the values that the layer above replaces, according to the table's
/// `replaces`.
fn drop_replaced(keys: &[SettingKey], above: &Map<String, Value>, below: &mut Map<String, Value>) {
    for (name, value) in above {
        let Some(key) = find(keys, name) else {
            continue;
        };
        let is_unset = matches!(value, Value::Null | Value::Bool(false));
        for replaced in key.replaces.iter().filter(|_| !is_unset) {
            below.remove(replaced);
        }
        if let (Value::Object(above), Some(Value::Object(below))) = (value, below.get_mut(name)) {
            drop_replaced(&key.children, above, below);
        }
    }
}

/// Returns the agent that a layer selects, by name or by command; `None` if it selects none.
fn agent_name(values: &Map<String, Value>) -> Option<&str> {
    let agent = values.get("agent")?;
    let program = agent["name"]
        .as_str()
        .or_else(|| agent["command"][0].as_str())?;
    program.rsplit('/').next()
}

/// Removes the flags and the model, which were meant for another agent.
fn drop_agent_specific(values: &mut Map<String, Value>) {
    values.remove("model");
    if let Some(agent) = values.get_mut("agent").and_then(Value::as_object_mut) {
        agent.remove("flags");
    }
}

pub(super) fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(all) => {
            all.retain(|_, value| !value.is_null());
            all.values_mut().for_each(remove_nulls);
        }
        Value::Array(all) => all.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Merges `above` into `below`. Nested objects are merged; any other value is replaced.
pub(super) fn merge(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (name, value) in above {
        match (below.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                below.insert(name.clone(), value.clone());
            }
        }
    }
}
