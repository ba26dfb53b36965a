//! How Claude Code learns of the plugin: a marketplace of one directory, enabled in the user's settings.
//!
//! The files are written here, and not by the client's own commands, because those write the settings anew.

use super::files;
use super::files::File;
use super::json::Part;
use super::record::Record;
use super::settings_file::Sheet;
use super::steps::Step;
use super::{Base, Client, Standing, Version, Work, keys};
use crate::lifecycle::failure::Failure;
use etcetera::home_dir;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::{env, fs};

pub(crate) const NAME: &str = "claude";
/// The first version that knows `StopFailure`, as far as is known; older ones drop every hook of a file with an event
/// that they do not know.
const KNOWS_FAILURE: [u32; 3] = [2, 1, 197];
/// Measured: it knows a plugin's command without the plugin's name, if the command says its own.
const KNOWS_BARE: [u32; 3] = [2, 1, 50];
/// Else the client lets a session go after eight stops in a row without a tool in between.
const CAP: [&str; 2] = ["env", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"];
const MARKETPLACE: [&str; 2] = ["extraKnownMarketplaces", "ralph"];
const ENABLED: [&str; 2] = ["enabledPlugins", "ralph@ralph"];
/// The same loop by others, which would hear the same stops.
const ORIGINALS: [&str; 2] = ["ralph-loop@", "ralph-wiggum@"];

/// What has to be done so that the client finds the plugin.
pub(crate) fn install(
    base: &Base,
    version: Option<Version>,
    record: &mut Record,
) -> Result<Work, Failure> {
    let dir = directory(&base.root);
    let Some(path) = dir.to_str() else {
        return Err(Failure::usage(
            format!("{} is no text", dir.display()),
            "set RALPH_STATE_DIR to another directory",
        ));
    };
    let config = config_dir()?;
    let Work {
        mut steps,
        mut notes,
    } = Work::default();
    steps.extend(write(&dir, &base.program, version));
    let mut settings = Sheet::open(&config.join("settings.json"), NAME, record)?;
    let mut known = Sheet::open(
        &config.join("plugins/known_marketplaces.json"),
        NAME,
        record,
    )?;
    for (sheet, at) in [(&settings, keys(&MARKETPLACE)), (&known, keys(&["ralph"]))] {
        if sheet.get(&at).is_some_and(|entry| !is_ours(&entry, &dir)) {
            return Err(Failure::usage(
                format!(
                    "{} has another marketplace that is called ralph",
                    sheet.path().display()
                ),
                "claude plugin marketplace remove ralph, if you do not need it",
            ));
        }
    }
    let source = json!({ "source": "directory", "path": path });
    let names =
        |sheet: &Sheet, at: &[Part]| sheet.get(at).is_some_and(|entry| entry["source"] == source);
    if !names(&settings, &keys(&MARKETPLACE)) {
        settings.set(&keys(&MARKETPLACE), &json!({ "source": source }), true)?;
    }
    settings.set(&keys(&ENABLED), &true.into(), true)?;
    match settings.get(&keys(&CAP)) {
        None => settings.set(&keys(&CAP), &"0".into(), false)?,
        Some(Value::String(zero)) if zero == "0" => {}
        Some(own) => notes.push(format!(
            "{} is {own} in your settings, and stays so: a session is let go after so many stops in a row without a tool",
            CAP[1]
        )),
    }
    // Older clients look here alone.
    if !names(&known, &keys(&["ralph"])) {
        let now = jiff::Timestamp::now()
            .round(jiff::Unit::Millisecond)
            .unwrap_or_default();
        let entry =
            json!({ "source": source, "installLocation": path, "lastUpdated": now.to_string() });
        known.set(&keys(&["ralph"]), &entry, true)?;
    }
    steps.extend(known.close(record)?);
    steps.extend(settings.close(record)?);
    if version.is_none() {
        notes.push("claude did not say its version: errors of the service are not noted until it does, and you say this again".into());
    }
    if version.is_some_and(|version| version < KNOWS_BARE) {
        notes.push("this version knows the command as /ralph:ralph-loop".into());
    }
    if let Some(original) = original_enabled(&config) {
        notes.push(format!(
            "{original} hears the same stops; to be rid of it: claude plugin disable {original}"
        ));
    }
    Ok(Work { steps, notes })
}

/// What has to be done so that nothing is left of it.
pub(crate) fn uninstall(base: &Base, record: &mut Record) -> Result<Work, Failure> {
    let dir = directory(&base.root);
    let is_settings = |file: &Path| file.ends_with("settings.json");
    let configs = record.dirs(NAME, config_dir()?, is_settings);
    let mut steps = Vec::new();
    for config in configs {
        steps.extend(leave(&config, &dir, record)?);
    }
    if dir.exists() {
        steps.push(Step::Clear { path: dir });
    }
    Ok(Work {
        steps,
        notes: Vec::new(),
    })
}

fn leave(config: &Path, dir: &Path, record: &mut Record) -> Result<Vec<Step>, Failure> {
    let plugins = config.join("plugins");
    let mut settings = Sheet::open(&config.join("settings.json"), NAME, record)?;
    let mut known = Sheet::open(&plugins.join("known_marketplaces.json"), NAME, record)?;
    let mut installed = Sheet::open(&plugins.join("installed_plugins.json"), NAME, record)?;
    let mut is_here = false;
    for (sheet, names) in [
        (&mut settings, &[&MARKETPLACE[..], &ENABLED][..]),
        (&mut known, &[&["ralph"]]),
    ] {
        let entry = sheet.get(&keys(names[0]));
        is_here |= entry.as_ref().is_some_and(|entry| is_ours(entry, dir));
        if entry.is_some_and(|entry| !is_ours(&entry, dir)) {
            // Somebody else has taken the name since.
            for at in names {
                sheet.forget(&keys(at));
            }
            sheet.undo();
        } else if !sheet.undo() && is_here {
            // The record is lost.
            for at in names {
                sheet.remove(&keys(at));
            }
        }
    }
    let mut steps = Vec::new();
    if is_here {
        // What the client itself has made of the plugin.
        installed.take(&keys(&["plugins", ENABLED[1]]));
        let copies = [
            plugins.join("cache/ralph"),
            plugins.join("data/ralph-ralph"),
        ];
        steps.extend(
            copies
                .into_iter()
                .filter(|path| path.exists())
                .map(|path| Step::Clear { path }),
        );
    }
    let sheets = [settings, known, installed]
        .into_iter()
        .map(|sheet| sheet.close(record));
    let mut edits: Vec<Step> = sheets
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    edits.append(&mut steps);
    Ok(edits)
}

/// How the plugin stands, for whoever looks around.
pub(crate) fn standing(base: &Base, version: Option<Version>) -> Result<Standing, Failure> {
    let dir = directory(&base.root);
    let config = config_dir()?;
    let mut record = Record::read(&base.record())?;
    let settings = Sheet::open(&config.join("settings.json"), NAME, &record)?;
    let is_there = settings
        .get(&keys(&MARKETPLACE))
        .is_some_and(|entry| is_ours(&entry, &dir));
    let is_enabled = settings.get(&keys(&ENABLED)) == Some(true.into());
    let is_installed = is_there && is_enabled;
    // A client that is slow to answer is no other one.
    let version = version.or_else(|| dir.join(files::FAILURE).exists().then_some(KNOWS_FAILURE));
    let is_current = is_installed && install(base, version, &mut record)?.steps.is_empty();
    Ok(Standing {
        is_installed,
        is_current,
        ..Standing::unknown(Client::Claude)
    })
}

/// The directory of the plugin itself, and what makes its files what they should be.
pub(crate) fn plugin_dir(base: &Base, version: Option<Version>) -> (PathBuf, Option<Step>) {
    let dir = directory(&base.root);
    let step = write(&dir, &base.program, version);
    (dir.join("ralph"), step)
}

/// The other plugin that hears the stops of sessions, if one is enabled here.
pub(crate) fn original_enabled(config_dir: &Path) -> Option<String> {
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

/// Where the client keeps the user's settings.
pub(crate) fn config_dir() -> Result<PathBuf, Failure> {
    let set = env::var_os("CLAUDE_CONFIG_DIR")
        .filter(|set| !set.is_empty())
        .map(PathBuf::from);
    let dir = match set {
        Some(set) => set,
        None => home_dir()
            .map_err(|error| Failure::broken(format!("cannot find the home directory: {error}")))?
            .join(".claude"),
    };
    std::path::absolute(&dir)
        .map_err(|error| Failure::broken(format!("cannot find {}: {error}", dir.display())))
}

fn directory(root: &Path) -> PathBuf {
    root.join("plugin").join(NAME)
}

/// Whether this describes a marketplace that ralph has written, here or, earlier, elsewhere.
fn is_ours(entry: &Value, dir: &Path) -> bool {
    let path = entry["source"]["path"].as_str().map(Path::new);
    path.is_some_and(|path| path == dir || path.ends_with("plugin/claude"))
}

/// What makes the plugin's files what they should be.
fn write(dir: &Path, program: &str, version: Option<Version>) -> Option<Step> {
    let wanted = files::claude(
        program,
        version.is_some_and(|version| version >= KNOWS_FAILURE),
    );
    let differs =
        |(name, text): &File| fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text);
    let stale: Vec<PathBuf> = files::claude_names()
        .filter(|name| wanted.iter().all(|(wanted, _)| wanted != name))
        .map(|name| dir.join(name))
        .filter(|path| path.exists())
        .collect();
    let files: Vec<File> = wanted.into_iter().filter(differs).collect();
    let changes = !files.is_empty() || !stale.is_empty();
    changes.then(|| Step::Files {
        dir: dir.to_owned(),
        files,
        stale,
    })
}
