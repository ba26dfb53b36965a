//! Which layer says what: defaults, the user's file, the project's, the local one, flags; later ones win.

use super::keys::{Key, find, table};
use super::{Wrong, file};
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The embedded table.
    Default,
    /// A settings file, as people would name it.
    File(String),
    /// The command line, or a program that uses the library.
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

/// What one layer says.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Who says so.
    pub origin: Origin,
    /// What, each key by its one name.
    pub values: Map<String, Value>,
}

/// All layers, the lowest first.
#[derive(Clone, Debug)]
pub struct Stack {
    layers: Vec<Layer>,
}

/// Where settings are looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The directory whose `.ralph/` holds the project's.
    pub workspace: PathBuf,
    /// Where the user's own lie.
    pub user: Option<PathBuf>,
    /// Another file instead of the project's.
    pub project: Option<PathBuf>,
}

impl Stack {
    /// The defaults alone.
    pub fn defaults() -> Self {
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

    /// The defaults and every settings file there is.
    pub fn load(places: &Places) -> Result<Self, Wrong> {
        let mut stack = Self::defaults();
        let project_dir = places.workspace.join(".ralph");
        let user = places
            .user
            .as_deref()
            .map(|dir| file::find(dir, "settings"))
            .transpose()?
            .flatten();
        let project = match &places.project {
            Some(path) => Some(places.workspace.join(path)),
            None => file::find(&project_dir, "settings")?,
        };
        if project.is_none() {
            file::none_above(&places.workspace)?;
        }
        let local = file::find(&project_dir, "settings.local")?;
        for path in [user, project, local].into_iter().flatten() {
            let shown = shown(&path, &places.workspace);
            let values = file::read(&path, &shown)?;
            stack.push(Layer {
                origin: Origin::File(shown),
                values,
            });
        }
        Ok(stack)
    }

    /// Lays another on top. Objects merge; anything else takes the place of what was below.
    pub fn push(&mut self, layer: Layer) {
        let another = matches!((named(&self.merged()), named(&layer.values)), (Some(old), Some(new)) if old != new);
        // The defaults stay: every setting must have a value.
        for below in self.layers.iter_mut().skip(1) {
            take_away(table(), &layer.values, &mut below.values);
            if another {
                leave_out_agent_s_own(&mut below.values);
            }
        }
        self.layers.push(layer);
    }

    /// What holds, all layers together.
    pub fn merged(&self) -> Map<String, Value> {
        let mut merged = Map::new();
        for layer in &self.layers {
            lay(&mut merged, &layer.values);
        }
        merged
    }

    /// Who says what holds for a key, named by its path.
    pub fn origin(&self, path: &[&str]) -> &Origin {
        &self.layers[self.level(path)].origin
    }

    /// How high the layer is that says what holds for a key; the defaults are 0.
    pub(super) fn level(&self, path: &[&str]) -> usize {
        let says = |layer: &Layer| {
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
        self.layers.iter().rposition(says).unwrap_or(0)
    }

    /// Whether the command line said so.
    pub fn is_typed(&self, name: &str) -> bool {
        *self.origin(&[name]) == Origin::Flag
    }

    /// A key as the one who gave it would name it: `--max-cost`, or `.ralph/settings.json: maxCost`.
    pub fn name(&self, key: &str) -> String {
        let row = super::keys::key(key);
        match self.origin(&[key]) {
            Origin::Flag | Origin::Default => row
                .flag()
                .map_or_else(|| row.camel(), |flag| format!("--{flag}")),
            Origin::File(path) => format!("{path}: {}", row.camel()),
        }
    }
}

/// A path as people would name it: from the workspace if it is there.
fn shown(path: &Path, workspace: &Path) -> String {
    path.strip_prefix(workspace)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// What a layer says may leave no room for what a lower one said under another key.
fn take_away(keys: &[Key], above: &Map<String, Value>, below: &mut Map<String, Value>) {
    for (name, value) in above {
        let Some(key) = find(keys, name) else {
            continue;
        };
        let says_nothing = matches!(value, Value::Null | Value::Bool(false));
        for replaced in key.replaces.iter().filter(|_| !says_nothing) {
            below.remove(replaced);
        }
        if let (Value::Object(above), Some(Value::Object(below))) = (value, below.get_mut(name)) {
            take_away(&key.inner, above, below);
        }
    }
}

/// The agent that a layer names, by a name or by a command.
fn named(values: &Map<String, Value>) -> Option<&str> {
    let agent = values.get("agent")?;
    let program = agent["name"]
        .as_str()
        .or_else(|| agent["command"][0].as_str())?;
    program.rsplit('/').next()
}

/// Flags and a model that were meant for one agent are not given to another.
fn leave_out_agent_s_own(values: &mut Map<String, Value>) {
    values.remove("model");
    if let Some(agent) = values.get_mut("agent").and_then(Value::as_object_mut) {
        agent.remove("flags");
    }
}

/// Takes out what was said to be nothing.
pub(super) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(all) => {
            all.retain(|_, value| !value.is_null());
            all.values_mut().for_each(without_nulls);
        }
        Value::Array(all) => all.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// Lays one object over another.
pub(super) fn lay(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (name, value) in above {
        match (below.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lay(below, above),
            _ => {
                below.insert(name.clone(), value.clone());
            }
        }
    }
}
