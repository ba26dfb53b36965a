//! Finds and reads settings files in JSON, TOML or YAML. An invalid file is an error as a whole.

use super::keys::{kebab_case, table};
use super::layers::{Layer, LayerStack, Origin};
use super::strict_value::StrictValue;
use super::trust::{GuardedValue, guarded_values, remove_guarded};
use super::validate::normalize_all;
use super::{ConfigError, config_error};
use crate::os::regular_file;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FORMATS: [&str; 4] = ["json", "toml", "yaml", "yml"];
const MAX_BYTES: u64 = 1 << 20;

/// The locations of settings files.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsPaths {
    /// The directory whose `.ralph/` contains the project's settings.
    pub(crate) workspace: PathBuf,
    /// Ralph's directory in the user's configuration directory; `None` if unknown.
    pub(crate) user_dir: Option<PathBuf>,
    /// The file passed with `--config`, which replaces the project's settings; `None` if the flag
    /// is missing.
    pub(crate) project_file: Option<PathBuf>,
}

/// A settings file: its text, and the values parsed from exactly that text.
#[derive(Clone, Debug)]
pub(crate) struct SettingsFile {
    /// The path for messages, relative to the workspace if the file is in it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Whether the file is the project's or its local one. The user's own file and the one that
    /// the user named need no trust.
    is_of_project: bool,
    values: Map<String, Value>,
}

impl SettingsFile {
    /// Returns the values that apply only if the user trusts the file.
    pub(crate) fn guarded_values(&self) -> Vec<GuardedValue> {
        if self.is_of_project {
            guarded_values(&self.values)
        } else {
            Vec::new()
        }
    }
}

/// Rejects a directory of ralph's that is a link to somewhere outside the workspace: ralph would
/// write there, and a link may come with a repository.
fn reject_outside(workspace: &Path, name: &str) -> Result<(), ConfigError> {
    if regular_file::leads_outside(workspace, name) {
        return config_error(
            format!(
                "{name} is a link to a directory outside {}",
                workspace.display()
            ),
            format!("ralph would write its files there: remove the link {name} and try again"),
        );
    }
    Ok(())
}

/// All settings files, lowest layer first, each read once: a file that is replaced after the user
/// has approved it cannot take effect.
#[derive(Clone, Debug)]
pub(crate) struct SettingsFiles {
    files: Vec<SettingsFile>,
}

impl SettingsFiles {
    /// Finds, reads and validates all settings files.
    pub(crate) fn read(paths: &SettingsPaths) -> Result<Self, ConfigError> {
        let project_dir = paths.workspace.join(".ralph");
        let is_other = match project_dir.metadata() {
            Ok(metadata) => !metadata.is_dir(),
            Err(error) => error.kind() == ErrorKind::NotFound && project_dir.is_symlink(),
        };
        if is_other {
            return config_error(
                format!("{} is not a directory", project_dir.display()),
                "ralph keeps its settings and working files in a directory of this name; \
                 rename the file and try again",
            );
        }
        for name in [".ralph", ".ralph/task"] {
            reject_outside(&paths.workspace, name)?;
        }
        let user = paths
            .user_dir
            .as_deref()
            .map(|dir| find(dir, "settings"))
            .transpose()?
            .flatten();
        let (named, project) = match &paths.project_file {
            Some(path) => (Some(paths.workspace.join(path)), None),
            None => (None, find(&project_dir, "settings")?),
        };
        let local = find(&project_dir, "settings.local")?;
        let found = [
            (user, false),
            (named, false),
            (project, true),
            (local, true),
        ];
        let found = found
            .into_iter()
            .filter_map(|(path, is_of_project)| Some((path?, is_of_project)));
        let files = found.map(|(path, is_of_project)| {
            let name = display_path(&path, &paths.workspace);
            let (text, values) = read(&path, &name)?;
            Ok(SettingsFile {
                name,
                path,
                text,
                is_of_project,
                values,
            })
        });
        let files = files.collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SettingsFile> {
        self.files.iter()
    }

    /// Removes the values that need trust from the file at `path`.
    pub(crate) fn remove_guarded(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            remove_guarded(&mut file.values);
        }
    }

    /// Puts the files on top of the defaults.
    pub(crate) fn into_stack(self) -> LayerStack {
        let mut stack = LayerStack::defaults();
        for SettingsFile { name, values, .. } in self.files {
            stack.push(Layer {
                origin: Origin::File(name),
                values,
            });
        }
        stack
    }
}

/// Returns whether a directory has a project's settings file.
pub(crate) fn has_settings(dir: &Path) -> bool {
    !matches!(find(&dir.join(".ralph"), "settings"), Ok(None))
}

/// Finds the settings file named `stem` in a directory, in any format; `None` if there is none. Two
/// files are an error, because neither would take precedence.
fn find(dir: &Path, stem: &str) -> Result<Option<PathBuf>, ConfigError> {
    let mut found = Vec::new();
    for path in FORMATS.map(|format| dir.join(format!("{stem}.{format}"))) {
        // Not `exists`: a broken link, or a directory that cannot be entered, must be an error.
        // Settings that the user relies on must not be skipped silently.
        match path.symlink_metadata() {
            Ok(_) => found.push(path),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                return config_error(
                    format!("cannot look for settings in {}: {error}", dir.display()),
                    "fix the directory's permissions, or remove it",
                );
            }
        }
    }
    match &found[..] {
        [] => Ok(None),
        [_] => Ok(found.pop()),
        [first, second, ..] => config_error(
            format!(
                "found two settings files: {} and {}",
                first.display(),
                second.display()
            ),
            "keep one, and remove the other",
        ),
    }
}

/// Rejects a session in a subdirectory whose settings are further up in the repository. They do not
/// apply, because their checks are written for their own directory. Ignoring them silently would
/// skip the checks, so the user has to choose.
pub(crate) fn reject_parent_settings(workspace: &Path) -> Result<(), ConfigError> {
    if has_settings(workspace) {
        return Ok(());
    }
    let above = workspace
        .ancestors()
        .take_while(|dir| !dir.join(".git").exists())
        .collect::<Vec<_>>();
    let Some(top) = above.last().and_then(|dir| dir.parent()) else {
        return Ok(());
    };
    let within = above.iter().skip(1).copied().chain([top]);
    for dir in within {
        if let Some(path) = find(&dir.join(".ralph"), "settings")? {
            return config_error(
                format!(
                    "this session is in {}, but the project's settings are in {}",
                    workspace.display(),
                    path.display()
                ),
                format!(
                    "a loop in a session works in the session's directory: start the session in {}",
                    dir.display()
                ),
            );
        }
    }
    Ok(())
}

/// Returns a path relative to the workspace, for display. A path outside the workspace is
/// unchanged.
fn display_path(path: &Path, workspace: &Path) -> String {
    path.strip_prefix(workspace)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Reads and normalizes a settings file, which must exist. `name` is its path for messages.
fn read(path: &Path, name: &str) -> Result<(String, Map<String, Value>), ConfigError> {
    let parse = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => json,
        Some("toml") => toml,
        Some("yaml" | "yml") => yaml,
        _ => {
            return config_error(
                format!("{name}: unknown file type"),
                "a settings file ends in .json, .toml, .yaml or .yml; for a promise, use --promise TEXT",
            );
        }
    };
    let text = match regular_file::read(path, MAX_BYTES, true) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return config_error(
                format!("settings file not found: {name}"),
                "-c and --config name a settings file; for a promise, use --promise TEXT",
            );
        }
        Err(error) => {
            return config_error(
                format!("cannot read {name}: {error}"),
                "fix the file, or remove it",
            );
        }
        Ok((_, true)) => {
            return config_error(
                format!("{name} is too large"),
                "a settings file can have at most 1 MiB",
            );
        }
        Ok((bytes, false)) => bytes,
    };
    let Ok(text) = String::from_utf8(text) else {
        return config_error(
            format!("{name} is not valid UTF-8"),
            "save it as UTF-8 text",
        );
    };
    let values = match parse(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
        Err(error) => {
            return config_error(
                format!("{name}: {error}"),
                "nothing was started; fix the file and try again",
            );
        }
        Ok(Value::Null) => Map::new(),
        Ok(Value::Object(values)) => {
            let is_toml = path.extension().is_some_and(|end| end == "toml");
            normalize_settings(values, name, is_toml)?
        }
        Ok(_) => {
            return config_error(
                format!("{name} does not contain settings"),
                "a settings file must contain an object with keys and values",
            );
        }
    };
    Ok((text, values))
}

fn normalize_settings(
    mut values: Map<String, Value>,
    file: &str,
    is_toml: bool,
) -> Result<Map<String, Value>, ConfigError> {
    // Other programs may use the same file. If it has this section, only the section is read.
    let section = values
        .keys()
        .find(|name| kebab_case(name) == "ralph-loop")
        .cloned();
    let path = section.clone().unwrap_or_default();
    if let Some(name) = section {
        values = match values.remove(&name) {
            Some(Value::Object(section)) => section,
            Some(Value::Null) => Map::new(),
            _ => {
                return config_error(
                    format!("{file}: {name} does not contain settings"),
                    "the section must be an object with settings as keys",
                );
            }
        };
        if values.get("agent").and_then(Value::as_str) == Some("build") {
            values.remove("agent");
        }
    }
    // The key is for editors.
    values.remove("$schema");
    normalize_all(table(), &values, &path).map_err(|error| ConfigError {
        message: format!("{file}: {} {}", error.path, error.message),
        hint: error.hint.text(is_toml),
    })
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map(|StrictValue(value)| value)
        .map_err(|error| error.to_string())
}

fn toml(text: &str) -> Result<Value, String> {
    toml::from_str(text)
        .map(|StrictValue(value)| value)
        .map_err(|error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let line = line
                .map(|line| format!(" at line {line}"))
                .unwrap_or_default();
            format!("{}{line}", error.message())
        })
}

fn yaml(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text)
        .map(|StrictValue(value)| value)
        .map_err(|error| {
            let text = error.to_string();
            let text = text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            // Cut off the parser's advice about its own API.
            let end = ["; use ", ", set "]
                .iter()
                .filter_map(|advice| text.find(advice))
                .min();
            text[..end.unwrap_or(text.len())].to_owned()
        })
}
