//! Installs the loop in a client whose hooks are in a file: hooks among the user's, skills that the
//! user calls, and with `--trust` the entries that mark the hooks as trusted.

use super::files;
use super::files::PluginFile;
use super::json::PathPart;
use super::record::{AppendedText, InstallRecord};
use super::settings_file;
use super::settings_file::JsonSettings;
use super::steps::FileStep;
use super::trust::{EarlierTrust, TrustedHook, add_trust, remove_trust};
use super::{
    ChangeSet, ClientVersion, InstallOptions, PluginContext, PluginInstaller, PluginStatus,
    client_home, keys,
};
use crate::client::descriptor::{Client, ClientHome, HooksFileSpec};
use crate::lifecycle::error::CommandError;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Text that identifies a skill as written by ralph.
const MARK: &str = "Written by `ralph plugin install`";

/// The installer for one client.
pub(super) struct HooksFileInstaller {
    pub(super) client: &'static Client,
    pub(super) spec: &'static HooksFileSpec,
}

impl PluginInstaller for HooksFileInstaller {
    fn install(
        &self,
        context: &PluginContext,
        options: InstallOptions,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError> {
        let home = client_home(self.client)?;
        let mut changes = ChangeSet::default();
        changes.steps.extend(self.update_skills(&home.path)?);
        let mut hooks_file = self.open_hooks(&home, record)?;
        let wanted = self.groups(&context.program);
        for (event, group) in &wanted {
            set_group(&mut hooks_file, event, group)?;
        }
        let hooks = self.trusted_hooks(&hooks_file, &wanted, &home);
        changes.steps.extend(hooks_file.finish(record)?);
        if let Some(file) = &self.spec.trust {
            self.trust(
                &home.path.join(file),
                &hooks,
                options.trust,
                record,
                &mut changes,
            )?;
        }
        Ok(changes)
    }

    fn uninstall(
        &self,
        context: &PluginContext,
        record: &mut InstallRecord,
    ) -> Result<ChangeSet, CommandError> {
        let home = client_home(self.client)?;
        let homes = record.dirs(&self.client.name, home.path.clone(), |_| true);
        let mut changes = ChangeSet::default();
        for path in homes {
            let client_path = if path == home.path {
                home.client_path.clone()
            } else {
                path.clone()
            };
            let home = ClientHome { path, client_path };
            self.uninstall_from(context, &home, record, &mut changes)?;
        }
        Ok(changes)
    }

    fn status(
        &self,
        context: &PluginContext,
        version: Option<ClientVersion>,
    ) -> Result<PluginStatus, CommandError> {
        let mut record = InstallRecord::read(&context.record_path())?;
        let hooks_file = self.open_hooks(&client_home(self.client)?, &record)?;
        let is_installed = self
            .groups(&context.program)
            .iter()
            .any(|(event, _)| find_group(&hooks_file, event).is_some());
        let not_installed = PluginStatus::not_installed(self.client);
        if !is_installed {
            return Ok(not_installed);
        }
        let options = InstallOptions {
            version,
            trust: false,
        };
        let changes = self.install(context, options, &mut record)?;
        let is_current = changes.steps.is_empty();
        let is_untrusted = is_current && !changes.notes.is_empty();
        let problem = is_untrusted.then(|| {
            format!(
                "{} does not trust the hooks yet: start {} and press t when it asks",
                self.client.title, self.client.name
            )
        });
        Ok(PluginStatus {
            is_installed,
            is_current,
            problem,
            ..not_installed
        })
    }
}

impl HooksFileInstaller {
    /// Adds the step that marks the hooks as trusted. If `is_asked` is false, adds a note on how to
    /// trust them instead.
    fn trust(
        &self,
        path: &Path,
        hooks: &[TrustedHook],
        is_asked: bool,
        record: &mut InstallRecord,
        changes: &mut ChangeSet,
    ) -> Result<(), CommandError> {
        let Client { name, title, .. } = self.client;
        let config = settings_file::read_text(path)?;
        let text = config.as_deref().unwrap_or_default();
        if hooks.iter().all(|hook| hook.is_in(text)) {
            return Ok(());
        }
        if !is_asked {
            changes.notes.push(format!(
                "{title} runs only hooks that you trust: start {name} and press t when it asks, or run \
                 `ralph plugin install {name} --trust`"
            ));
            return Ok(());
        }
        let old = record.appended.iter().find(|old| old.file == path);
        // Trusting again replaces the entries that were appended before. Undoing it must still
        // restore the original text.
        let was_new = old.is_some_and(|old| old.is_new);
        let earlier = old.map(|old| EarlierTrust {
            lacked_newline: old.text.starts_with("\n\n"),
        });
        let (text, added) = add_trust(text, hooks, earlier).map_err(|error| {
            CommandError::usage(
                format!("cannot change {}: {error}", path.display()),
                format!(
                    "nothing was written; run `ralph plugin install {name}`, start {name}, and press t when it asks"
                ),
            )
        })?;
        record.appended.retain(|old| old.file != path);
        record.appended.push(AppendedText {
            client: name.clone(),
            file: path.to_owned(),
            is_new: config.is_none() || was_new,
            text: added,
        });
        let notes = hooks
            .iter()
            .map(|hook| format!("trusts {}", hook.key))
            .collect();
        changes.steps.push(settings_file::edit_step(
            path,
            config.is_none(),
            text,
            notes,
        )?);
        Ok(())
    }

    fn uninstall_from(
        &self,
        context: &PluginContext,
        home: &ClientHome,
        record: &mut InstallRecord,
        changes: &mut ChangeSet,
    ) -> Result<(), CommandError> {
        let mut hooks_file = self.open_hooks(home, record)?;
        let wanted = self.groups(&context.program);
        let hooks = self.trusted_hooks(&hooks_file, &wanted, home);
        let is_last = wanted.iter().all(|(event, _)| {
            find_group(&hooks_file, event)
                .is_none_or(|(index, _)| index + 1 == group_count(&hooks_file, event))
        });
        hooks_file.undo();
        for (event, _) in &wanted {
            while let Some((_, old)) = find_group(&hooks_file, event) {
                hooks_file.remove_with_empty_parents(&group_path(event, &old));
            }
        }
        changes.steps.extend(hooks_file.finish(record)?);
        if let Some(file) = &self.spec.trust {
            let path = home.path.join(file);
            changes
                .steps
                .extend(remove_trust_entries(&path, &hooks, record)?);
        }
        let dir = home.path.join(&self.spec.skills);
        let skills = files::skill_names().map(|name| dir.join(name));
        changes.steps.extend(
            skills
                .filter(|dir| is_own_skill(dir))
                .map(|path| FileStep::DeleteDir { path }),
        );
        if !is_last && self.spec.trust.is_some() {
            changes.notes.push(format!(
                "removing ralph's hooks moves your later hooks up, so {} will ask again whether you trust them",
                self.client.title
            ));
        }
        Ok(())
    }

    fn open_hooks(
        &self,
        home: &ClientHome,
        record: &InstallRecord,
    ) -> Result<JsonSettings, CommandError> {
        JsonSettings::open(&home.path.join(&self.spec.hooks), &self.client.name, record)
    }

    /// Returns the hooks to install, as pairs of an event and its group.
    fn groups(&self, program: &str) -> Vec<(String, Value)> {
        let text = files::shared_hooks(self.client, program);
        let all: Value = serde_json::from_str(&text).expect("the hooks are JSON");
        let events = all["hooks"].as_object().expect("the hooks are an object");
        events
            .iter()
            .map(|(event, groups)| (event.clone(), groups[0].clone()))
            .collect()
    }

    /// Returns ralph's hooks in the file, with the keys and hashes under which the client trusts
    /// them.
    fn trusted_hooks(
        &self,
        hooks_file: &JsonSettings,
        wanted: &[(String, Value)],
        home: &ClientHome,
    ) -> Vec<TrustedHook> {
        let file = home
            .client_path
            .join(&self.spec.hooks)
            .display()
            .to_string();
        let all = wanted.iter().filter_map(|(event, _)| {
            let (index, group) = find_group(hooks_file, event)?;
            Some(TrustedHook::new(&file, event, index, &group["hooks"][0]))
        });
        all.collect()
    }

    /// Returns the step that updates the skills. `None` if all are up to date. Fails if ralph did
    /// not write an existing skill of the same name.
    fn update_skills(&self, home: &Path) -> Result<Option<FileStep>, CommandError> {
        let dir = home.join(&self.spec.skills);
        for name in files::skill_names() {
            let path = dir.join(name);
            if path.exists() && !is_own_skill(&path) {
                return Err(CommandError::usage(
                    format!(
                        "{} already exists and was not written by ralph",
                        path.display()
                    ),
                    "move that skill away and try again; nothing was written",
                ));
            }
        }
        let differs = |(name, text): &PluginFile| {
            fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text)
        };
        let files: Vec<PluginFile> = files::skill_files(self.client, self.spec)
            .into_iter()
            .filter(differs)
            .collect();
        Ok((!files.is_empty()).then_some(FileStep::WriteFiles {
            dir,
            files,
            stale: Vec::new(),
        }))
    }
}

/// Returns the step that removes the trust entries and the text that was appended with them. `None`
/// if there is nothing to remove.
fn remove_trust_entries(
    path: &Path,
    hooks: &[TrustedHook],
    record: &mut InstallRecord,
) -> Result<Option<FileStep>, CommandError> {
    let Some(config) = settings_file::read_text(path)? else {
        return Ok(None);
    };
    let added = record
        .appended
        .iter()
        .find(|added| added.file == path)
        .cloned();
    record.appended.retain(|added| added.file != path);
    let text = added
        .as_ref()
        .map_or(config.clone(), |added| config.replacen(&added.text, "", 1));
    let text = hooks
        .iter()
        .fold(text, |text, hook| remove_trust(&text, hook));
    if text == config {
        return Ok(None);
    }
    if text.trim().is_empty() && added.is_some_and(|added| added.is_new) {
        return Ok(Some(FileStep::DeleteFile {
            path: path.to_owned(),
        }));
    }
    settings_file::edit_step(
        path,
        false,
        text,
        vec!["hooks.state of ralph's hooks (removed)".into()],
    )
    .map(Some)
}

/// Adds a group to its event, or replaces ralph's earlier group in place. The position must not
/// change, because the client trusts a hook by its position.
fn set_group(
    hooks_file: &mut JsonSettings,
    event: &str,
    group: &Value,
) -> Result<(), CommandError> {
    match find_group(hooks_file, event) {
        Some((_, old)) if old != *group => {
            hooks_file.replace(&group_path(event, &old), &group_path(event, group), group)
        }
        _ => hooks_file.set(&group_path(event, group), group, true),
    }
}

/// Returns the group that calls ralph and its index in the event's groups.
fn find_group(hooks_file: &JsonSettings, event: &str) -> Option<(usize, Value)> {
    let groups = hooks_file.get(&keys(&["hooks", event]))?;
    let all = groups.as_array()?.iter().cloned().enumerate();
    all.rev().find(|(_, group)| is_ours(group))
}

fn group_count(hooks_file: &JsonSettings, event: &str) -> usize {
    hooks_file
        .get(&keys(&["hooks", event]))
        .and_then(|groups| Some(groups.as_array()?.len()))
        .unwrap_or(0)
}

fn is_ours(group: &Value) -> bool {
    let Some([hook]) = group["hooks"].as_array().map(Vec::as_slice) else {
        return false;
    };
    let args = hook["command"]
        .as_str()
        .and_then(shlex::split)
        .unwrap_or_default();
    let [program, subcommand, ..] = args.as_slice() else {
        return false;
    };
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "ralph")
        && subcommand == "hook"
}

fn group_path(event: &str, group: &Value) -> Vec<PathPart> {
    let mut path = keys(&["hooks", event]);
    path.push(PathPart::Item(group.clone()));
    path
}

fn is_own_skill(dir: &Path) -> bool {
    fs::read_to_string(dir.join("SKILL.md")).is_ok_and(|text| text.contains(MARK))
}
