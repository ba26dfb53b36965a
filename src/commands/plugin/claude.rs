//! Installs the plugin in Claude Code: a marketplace that is one directory, enabled in the user's
//! settings.
//!
//! The files are edited directly instead of with `claude plugin`, which rewrites the settings as a
//! whole.

use super::files;
use super::files::PluginFile;
use super::json::PathPart;
use super::record::InstallRecord;
use super::settings_file::JsonSettings;
use super::steps::FileStep;
use super::{ChangeSet, ClientKind, ClientVersion, PluginContext, PluginStatus, keys};
use crate::lifecycle::error::CommandError;
use etcetera::home_dir;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::{env, fs};

pub(crate) const NAME: &str = "claude";
/// The first version known to support `StopFailure`; older ones ignore every hook in a file with an
/// unknown event.
const KNOWS_FAILURE: [u32; 3] = [2, 1, 197];
/// The first version, as measured, that accepts a plugin's command without the plugin's name as
/// prefix, if the command declares its own name.
const KNOWS_BARE: [u32; 3] = [2, 1, 50];
/// The setting that lifts the client's cap: by default it ends a session after eight stops in a row
/// without a tool.
const CAP: [&str; 2] = ["env", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"];
const MARKETPLACE: [&str; 2] = ["extraKnownMarketplaces", "ralph"];
const ENABLED: [&str; 2] = ["enabledPlugins", "ralph@ralph"];
/// Plugins by others that react to the same stop events.
const ORIGINALS: [&str; 2] = ["ralph-loop@", "ralph-wiggum@"];

/// Returns the changes that install the plugin.
pub(crate) fn install(
    context: &PluginContext,
    version: Option<ClientVersion>,
    record: &mut InstallRecord,
) -> Result<ChangeSet, CommandError> {
    let dir = directory(&context.root);
    let Some(path) = dir.to_str() else {
        return Err(CommandError::usage(
            format!("the path {} is not UTF-8", dir.display()),
            "set RALPH_STATE_DIR to another directory",
        ));
    };
    let config = config_dir()?;
    let ChangeSet {
        mut steps,
        mut notes,
    } = ChangeSet::default();
    steps.extend(update_files(&dir, &context.program, version));
    let mut settings = JsonSettings::open(&config.join("settings.json"), NAME, record)?;
    let mut known = JsonSettings::open(
        &config.join("plugins/known_marketplaces.json"),
        NAME,
        record,
    )?;
    for (settings, path) in [(&settings, keys(&MARKETPLACE)), (&known, keys(&["ralph"]))] {
        if settings
            .get(&path)
            .is_some_and(|entry| !is_ours(&entry, &dir))
        {
            return Err(CommandError::usage(
                format!(
                    "{} has another marketplace named ralph",
                    settings.path().display()
                ),
                "if you do not need it: claude plugin marketplace remove ralph",
            ));
        }
    }
    let source = json!({ "source": "directory", "path": path });
    let has_source = |settings: &JsonSettings, path: &[PathPart]| {
        settings
            .get(path)
            .is_some_and(|entry| entry["source"] == source)
    };
    if !has_source(&settings, &keys(&MARKETPLACE)) {
        settings.set(&keys(&MARKETPLACE), &json!({ "source": source }), true)?;
    }
    settings.set(&keys(&ENABLED), &true.into(), true)?;
    match settings.get(&keys(&CAP)) {
        None => settings.set(&keys(&CAP), &"0".into(), false)?,
        Some(Value::String(zero)) if zero == "0" => {}
        Some(own) => notes.push(format!(
            "{} is {own} in your settings and was not changed: a session ends after that many stops in a row without a tool",
            CAP[1]
        )),
    }
    // Older clients read only this file.
    if !has_source(&known, &keys(&["ralph"])) {
        let now = jiff::Timestamp::now()
            .round(jiff::Unit::Millisecond)
            .unwrap_or_default();
        let entry =
            json!({ "source": source, "installLocation": path, "lastUpdated": now.to_string() });
        known.set(&keys(&["ralph"]), &entry, true)?;
    }
    steps.extend(known.finish(record)?);
    steps.extend(settings.finish(record)?);
    if version.is_none() {
        notes.push(
            "claude did not print its version, so service errors are not recorded; once it does, install again"
                .into(),
        );
    }
    if version.is_some_and(|version| version < KNOWS_BARE) {
        notes.push("in this version the command is /ralph:ralph-loop".into());
    }
    if let Some(original) = enabled_original(&config) {
        notes.push(format!(
            "{original} reacts to the same stop events; to turn it off: claude plugin disable {original}"
        ));
    }
    Ok(ChangeSet { steps, notes })
}

/// Returns the changes that uninstall the plugin.
pub(crate) fn uninstall(
    context: &PluginContext,
    record: &mut InstallRecord,
) -> Result<ChangeSet, CommandError> {
    let dir = directory(&context.root);
    let is_settings = |file: &Path| file.ends_with("settings.json");
    let configs = record.dirs(NAME, config_dir()?, is_settings);
    let mut steps = Vec::new();
    for config in configs {
        steps.extend(uninstall_from(&config, &dir, record)?);
    }
    if dir.exists() {
        steps.push(FileStep::DeleteDir { path: dir });
    }
    Ok(ChangeSet {
        steps,
        notes: Vec::new(),
    })
}

fn uninstall_from(
    config: &Path,
    dir: &Path,
    record: &mut InstallRecord,
) -> Result<Vec<FileStep>, CommandError> {
    let plugins = config.join("plugins");
    let mut settings = JsonSettings::open(&config.join("settings.json"), NAME, record)?;
    let mut known = JsonSettings::open(&plugins.join("known_marketplaces.json"), NAME, record)?;
    let mut installed = JsonSettings::open(&plugins.join("installed_plugins.json"), NAME, record)?;
    let mut is_installed = false;
    for (file, paths) in [
        (&mut settings, &[&MARKETPLACE[..], &ENABLED][..]),
        (&mut known, &[&["ralph"]]),
    ] {
        let entry = file.get(&keys(paths[0]));
        is_installed |= entry.as_ref().is_some_and(|entry| is_ours(entry, dir));
        if entry.is_some_and(|entry| !is_ours(&entry, dir)) {
            // Another plugin has taken the name since: keep its entries.
            for path in paths {
                file.forget(&keys(path));
            }
            file.undo();
        } else if !file.undo() && is_installed {
            // Without a record, remove the keys that are ralph's.
            for path in paths {
                file.remove_with_empty_parents(&keys(path));
            }
        }
    }
    let mut steps = Vec::new();
    if is_installed {
        // What the client itself created for the plugin.
        installed.remove(&keys(&["plugins", ENABLED[1]]));
        let copies = [
            plugins.join("cache/ralph"),
            plugins.join("data/ralph-ralph"),
        ];
        steps.extend(
            copies
                .into_iter()
                .filter(|path| path.exists())
                .map(|path| FileStep::DeleteDir { path }),
        );
    }
    let edits = [settings, known, installed]
        .into_iter()
        .map(|file| file.finish(record));
    let mut edits: Vec<FileStep> = edits
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    edits.append(&mut steps);
    Ok(edits)
}

/// Returns the status of the plugin without changing anything.
pub(crate) fn status(
    context: &PluginContext,
    version: Option<ClientVersion>,
) -> Result<PluginStatus, CommandError> {
    let dir = directory(&context.root);
    let config = config_dir()?;
    let mut record = InstallRecord::read(&context.record_path())?;
    let settings = JsonSettings::open(&config.join("settings.json"), NAME, &record)?;
    let has_marketplace = settings
        .get(&keys(&MARKETPLACE))
        .is_some_and(|entry| is_ours(&entry, &dir));
    let is_enabled = settings.get(&keys(&ENABLED)) == Some(true.into());
    let is_installed = has_marketplace && is_enabled;
    // A client that was too slow to print its version probably still has the version it was
    // installed for.
    let version = version.or_else(|| dir.join(files::FAILURE).exists().then_some(KNOWS_FAILURE));
    let is_current = is_installed && install(context, version, &mut record)?.steps.is_empty();
    Ok(PluginStatus {
        is_installed,
        is_current,
        ..PluginStatus::not_installed(ClientKind::Claude)
    })
}

/// Returns the directory of the plugin itself, and the step that updates its files.
pub(crate) fn plugin_dir(
    context: &PluginContext,
    version: Option<ClientVersion>,
) -> (PathBuf, Option<FileStep>) {
    let dir = directory(&context.root);
    let step = update_files(&dir, &context.program, version);
    (dir.join("ralph"), step)
}

/// Returns another enabled plugin that reacts to the same stop events.
pub(crate) fn enabled_original(config_dir: &Path) -> Option<String> {
    let text = fs::read_to_string(config_dir.join("settings.json")).ok()?;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let enabled = settings["enabledPlugins"]
        .as_object()?
        .iter()
        .filter(|(_, on)| **on != Value::Bool(false));
    let mut names = enabled.map(|(name, _)| name);
    names
        .find(|name| ORIGINALS.iter().any(|original| name.starts_with(original)))
        .cloned()
}

/// The directory of the client's user settings.
pub(crate) fn config_dir() -> Result<PathBuf, CommandError> {
    let set = env::var_os("CLAUDE_CONFIG_DIR")
        .filter(|set| !set.is_empty())
        .map(PathBuf::from);
    let dir = match set {
        Some(set) => set,
        None => home_dir()
            .map_err(|error| {
                CommandError::broken(format!("cannot find the home directory: {error}"))
            })?
            .join(".claude"),
    };
    std::path::absolute(&dir)
        .map_err(|error| CommandError::broken(format!("cannot find {}: {error}", dir.display())))
}

fn directory(root: &Path) -> PathBuf {
    root.join("plugin").join(NAME)
}

/// Returns whether the entry describes a marketplace that ralph wrote, to this directory or earlier
/// to another.
fn is_ours(entry: &Value, dir: &Path) -> bool {
    let path = entry["source"]["path"].as_str().map(Path::new);
    path.is_some_and(|path| path == dir || path.ends_with("plugin/claude"))
}

/// Returns the step that updates the plugin's files, if any differ.
fn update_files(dir: &Path, program: &str, version: Option<ClientVersion>) -> Option<FileStep> {
    let wanted = files::claude_files(
        program,
        version.is_some_and(|version| version >= KNOWS_FAILURE),
    );
    let differs =
        |(name, text): &PluginFile| fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text);
    let stale: Vec<PathBuf> = files::claude_paths()
        .filter(|name| wanted.iter().all(|(wanted, _)| wanted != name))
        .map(|name| dir.join(name))
        .filter(|path| path.exists())
        .collect();
    let files: Vec<PluginFile> = wanted.into_iter().filter(differs).collect();
    let changes = !files.is_empty() || !stale.is_empty();
    changes.then(|| FileStep::WriteFiles {
        dir: dir.to_owned(),
        files,
        stale,
    })
}
