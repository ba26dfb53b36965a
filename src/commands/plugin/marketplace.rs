//! Installs the plugin in a client that supports marketplaces: writes one to a directory, and
//! enables it in the user's settings.
//!
//! The settings are edited directly, because the client's own commands rewrite them as a whole.

use super::files;
use super::files::PluginFile;
use super::json::PathPart;
use super::record::InstallRecord;
use super::settings_file::JsonSettings;
use super::steps::FileStep;
use super::{
    ChangeSet, ClientVersion, InstallOptions, PluginContext, PluginInstaller, PluginStatus,
    client_home, keys,
};
use crate::client::descriptor::{Client, MarketplaceSpec};
use crate::lifecycle::error::CommandError;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const MARKETPLACE: [&str; 2] = ["extraKnownMarketplaces", "ralph"];
const ENABLED: [&str; 2] = ["enabledPlugins", "ralph@ralph"];

/// The installer for one client.
pub(super) struct MarketplaceInstaller {
    pub(super) client: &'static Client,
    pub(super) spec: &'static MarketplaceSpec,
}

impl PluginInstaller for MarketplaceInstaller {
    fn install(
        &self,
        context: &PluginContext,
        options: InstallOptions,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError> {
        let (client, version) = (self.client, options.version);
        let dir = self.directory(&context.root);
        let Some(path) = dir.to_str() else {
            return Err(CommandError::usage(
                format!("the path {} is not valid UTF-8", dir.display()),
                "set RALPH_STATE_DIR to a directory whose path is UTF-8",
            ));
        };
        let config = client_home(client)?.path;
        let ChangeSet {
            mut steps,
            mut notes,
        } = ChangeSet::default();
        steps.extend(self.update_files(&dir, &context.program, version));
        let mut settings = JsonSettings::open(&config.join("settings.json"), &client.name, record)?;
        let mut known = JsonSettings::open(
            &config.join("plugins/known_marketplaces.json"),
            &client.name,
            record,
        )?;
        for (settings, path) in [(&settings, keys(&MARKETPLACE)), (&known, keys(&["ralph"]))] {
            if settings
                .get(&path)
                .is_some_and(|entry| !self.is_ours(&entry, &dir))
            {
                return Err(CommandError::usage(
                    format!(
                        "{} has another marketplace named ralph",
                        settings.path().display()
                    ),
                    format!(
                        "if you do not need that marketplace, run `{} plugin marketplace remove ralph` to remove it",
                        client.name
                    ),
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
        if let Some(cap) = client.block_cap_variable() {
            let path = keys(&["env", cap]);
            match settings.get(&path) {
                None => settings.set(&path, &"0".into(), false)?,
                Some(Value::String(zero)) if zero == "0" => {}
                Some(own) => notes.push(format!(
                    "{cap} is {own} in your settings and was not changed: a loop ends after that many stops in a row without a tool call"
                )),
            }
        }
        // Older clients read only this file.
        if !has_source(&known, &keys(&["ralph"])) {
            let now = jiff::Timestamp::now()
                .round(jiff::Unit::Millisecond)
                .unwrap_or_default();
            let entry = json!({ "source": source, "installLocation": path, "lastUpdated": now.to_string() });
            known.set(&keys(&["ralph"]), &entry, true)?;
        }
        steps.extend(known.finish(record)?);
        steps.extend(settings.finish(record)?);
        if version.is_none() {
            notes.push(format!(
                "{0} did not print its version, so ralph will not record service errors; once `{0} --version` works, install again",
                client.name
            ));
        }
        if version.is_some_and(|version| version < self.spec.bare_commands_since) {
            notes.push(format!(
                "in this version of {}, the command is {}",
                client.title,
                client.command("ralph:ralph-loop")
            ));
        }
        if let Some(original) = self.conflict() {
            notes.push(format!(
                "{original} reacts to the same stop events; to turn it off, run `{} plugin disable {original}`",
                client.name
            ));
        }
        Ok(ChangeSet { steps, notes })
    }

    fn uninstall(
        &self,
        context: &PluginContext,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError> {
        let dir = self.directory(&context.root);
        let is_settings = |file: &Path| file.ends_with("settings.json");
        let configs = record.dirs(
            &self.client.name,
            client_home(self.client)?.path,
            is_settings,
        );
        let mut steps = Vec::new();
        for config in configs {
            steps.extend(self.uninstall_from(&config, &dir, record)?);
        }
        if dir.exists() {
            steps.push(FileStep::DeleteDir { path: dir });
        }
        Ok(ChangeSet {
            steps,
            notes: Vec::new(),
        })
    }

    fn status(
        &self,
        context: &PluginContext,
        version: Option<ClientVersion>,
    ) -> Result<PluginStatus, CommandError> {
        let dir = self.directory(&context.root);
        let config = client_home(self.client)?.path;
        let mut record = InstallRecord::read(&context.record_path())?;
        let settings =
            JsonSettings::open(&config.join("settings.json"), &self.client.name, &record)?;
        let has_marketplace = settings
            .get(&keys(&MARKETPLACE))
            .is_some_and(|entry| self.is_ours(&entry, &dir));
        let is_enabled = settings.get(&keys(&ENABLED)) == Some(true.into());
        let is_installed = has_marketplace && is_enabled;
        // A client that is too slow to print its version probably still has the version that the
        // plugin was installed for.
        let version = version.or_else(|| {
            dir.join(files::FAILURE)
                .exists()
                .then_some(self.spec.failure_event_since)
        });
        let options = InstallOptions {
            version,
            trust: false,
        };
        let is_current = is_installed
            && self
                .install(context, options, &mut record)?
                .steps
                .is_empty();
        Ok(PluginStatus {
            is_installed,
            is_current,
            ..PluginStatus::not_installed(self.client)
        })
    }

    fn conflict(&self) -> Option<String> {
        let settings = client_home(self.client).ok()?.path.join("settings.json");
        let settings: Value = serde_json::from_str(&fs::read_to_string(settings).ok()?).ok()?;
        let enabled = settings["enabledPlugins"]
            .as_object()?
            .iter()
            .filter(|(_, on)| **on != Value::Bool(false));
        let mut names = enabled.map(|(name, _)| name);
        names
            .find(|name| {
                self.spec
                    .conflicts
                    .iter()
                    .any(|other| name.starts_with(other))
            })
            .cloned()
    }
}

impl MarketplaceInstaller {
    /// Returns the directory of the plugin itself, and the step that updates its files.
    pub(super) fn plugin_dir(
        &self,
        context: &PluginContext,
        version: Option<ClientVersion>,
    ) -> (PathBuf, Option<FileStep>) {
        let dir = self.directory(&context.root);
        let step = self.update_files(&dir, &context.program, version);
        (dir.join("ralph"), step)
    }

    fn uninstall_from(
        &self,
        config: &Path,
        dir: &Path,
        record: &mut InstallRecord,
    ) -> Result<Vec<FileStep>, CommandError> {
        let name = &self.client.name;
        let plugins = config.join("plugins");
        let mut settings = JsonSettings::open(&config.join("settings.json"), name, record)?;
        let mut known = JsonSettings::open(&plugins.join("known_marketplaces.json"), name, record)?;
        let mut installed =
            JsonSettings::open(&plugins.join("installed_plugins.json"), name, record)?;
        let mut is_installed = false;
        for (file, paths) in [
            (&mut settings, &[&MARKETPLACE[..], &ENABLED][..]),
            (&mut known, &[&["ralph"]]),
        ] {
            let entry = file.get(&keys(paths[0]));
            is_installed |= entry.as_ref().is_some_and(|entry| self.is_ours(entry, dir));
            if entry.is_some_and(|entry| !self.is_ours(&entry, dir)) {
                // Another marketplace now has this name, so keep its entries.
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
            // Remove the entries that the client itself created for the plugin.
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

    fn directory(&self, root: &Path) -> PathBuf {
        root.join("plugin").join(&self.client.name)
    }

    /// Returns whether `entry` describes a marketplace that ralph wrote. It may be in `dir` or,
    /// from an earlier setup, in another directory.
    fn is_ours(&self, entry: &Value, dir: &Path) -> bool {
        let path = entry["source"]["path"].as_str().map(Path::new);
        path.is_some_and(|path| path == dir || path.ends_with(self.directory(Path::new(""))))
    }

    /// Returns the step that updates the plugin's files. `None` if all are up to date.
    fn update_files(
        &self,
        dir: &Path,
        program: &str,
        version: Option<ClientVersion>,
    ) -> Option<FileStep> {
        let wanted = files::marketplace_files(
            program,
            version.is_some_and(|version| version >= self.spec.failure_event_since),
        );
        let differs = |(name, text): &PluginFile| {
            fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text)
        };
        let stale: Vec<PathBuf> = files::marketplace_paths()
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
}
