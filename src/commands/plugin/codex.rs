//! Installs the loop in Codex: hooks among the user's, skills that the user calls, and with
//! `--trust` the entries that mark the hooks as trusted.

use super::files;
use super::files::{CODEX_HOOKS, PluginFile};
use super::json::PathPart;
use super::record::{AppendedText, InstallRecord};
use super::settings_file;
use super::settings_file::JsonSettings;
use super::steps::FileStep;
use super::trust::{TrustedHook, add_trust, remove_trust};
use super::{ChangeSet, ClientKind, PluginContext, PluginStatus, keys};
use crate::lifecycle::error::CommandError;
use etcetera::home_dir;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, fs};
use toml::Table;

pub(super) const NAME: &str = "codex";
/// A sentence in every skill that ralph wrote.
const MARK: &str = "Written by `ralph plugin install`";

/// Returns the changes that install hooks and skills.
pub(super) fn install(
    context: &PluginContext,
    trust: bool,
    record: &mut InstallRecord,
) -> Result<ChangeSet, CommandError> {
    let home = codex_home()?;
    let mut changes = ChangeSet::default();
    changes.steps.extend(update_skills(&home.path)?);
    let mut hooks_file = JsonSettings::open(&home.hooks(), NAME, record)?;
    let wanted = groups(&context.program);
    for (event, group) in &wanted {
        set_group(&mut hooks_file, event, group)?;
    }
    let hooks = trusted_hooks(&hooks_file, &wanted, &home.key_path);
    changes.steps.extend(hooks_file.finish(record)?);
    let path = home.config();
    let config = settings_file::read_text(&path)?;
    let table: Option<Table> = config.as_deref().unwrap_or_default().parse().ok();
    let is_in_config = |hook: &TrustedHook| table.as_ref().is_some_and(|table| hook.is_in(table));
    if hooks.iter().all(is_in_config) {
        return Ok(changes);
    }
    if !trust {
        changes.notes.push(
            "Codex runs only hooks that you trust: start codex and press t when it asks, or run \
             ralph plugin install codex --trust"
                .into(),
        );
        return Ok(changes);
    }
    let (text, added) = add_trust(config.as_deref().unwrap_or_default(), &hooks).map_err(|error| {
        CommandError::usage(
            format!("cannot change {}: {error}", path.display()),
            "nothing was written; install without --trust, start codex, and press t when it asks",
        )
    })?;
    record.appended.retain(|old| old.file != path);
    record.appended.push(AppendedText {
        client: NAME.into(),
        file: path.clone(),
        is_new: config.is_none(),
        text: added,
    });
    let notes = hooks
        .iter()
        .map(|hook| format!("trusts {}", hook.key))
        .collect();
    changes.steps.push(settings_file::edit_step(
        &path,
        config.is_none(),
        text,
        notes,
    )?);
    Ok(changes)
}

/// Returns the changes that uninstall hooks and skills.
pub(super) fn uninstall(
    context: &PluginContext,
    record: &mut InstallRecord,
) -> Result<ChangeSet, CommandError> {
    let home = codex_home()?;
    let homes = record.dirs(NAME, home.path.clone(), |_| true);
    let mut changes = ChangeSet::default();
    for path in homes {
        let key_path = if path == home.path {
            home.key_path.clone()
        } else {
            path.clone()
        };
        let home = CodexHome { path, key_path };
        uninstall_from(context, &home, record, &mut changes)?;
    }
    Ok(changes)
}

fn uninstall_from(
    context: &PluginContext,
    home: &CodexHome,
    record: &mut InstallRecord,
    changes: &mut ChangeSet,
) -> Result<(), CommandError> {
    let mut hooks_file = JsonSettings::open(&home.hooks(), NAME, record)?;
    let wanted = groups(&context.program);
    let hooks = trusted_hooks(&hooks_file, &wanted, &home.key_path);
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
    changes
        .steps
        .extend(remove_trust_entries(&home.config(), &hooks, record)?);
    let skills = files::codex_skills().map(|name| home.path.join("skills").join(name));
    changes.steps.extend(
        skills
            .filter(|dir| is_own_skill(dir))
            .map(|path| FileStep::DeleteDir { path }),
    );
    if !is_last {
        changes.notes.push(
            "hooks after ralph's move up, so Codex will ask again whether you trust them".into(),
        );
    }
    Ok(())
}

/// Removes the trust entries, and everything else that was appended for them.
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

/// Returns the status of the hooks without changing anything.
pub(super) fn status(context: &PluginContext) -> Result<PluginStatus, CommandError> {
    let mut record = InstallRecord::read(&context.record_path())?;
    let hooks_file = JsonSettings::open(&codex_home()?.hooks(), NAME, &record)?;
    let is_installed = groups(&context.program)
        .iter()
        .any(|(event, _)| find_group(&hooks_file, event).is_some());
    let not_installed = PluginStatus::not_installed(ClientKind::Codex);
    if !is_installed {
        return Ok(not_installed);
    }
    let changes = install(context, false, &mut record)?;
    let is_current = changes.steps.is_empty();
    let is_untrusted = is_current && !changes.notes.is_empty();
    let problem =
        is_untrusted.then(|| "not trusted yet: start codex and press t when it asks".to_owned());
    Ok(PluginStatus {
        is_installed,
        is_current,
        problem,
        ..not_installed
    })
}

/// Adds a group to those of its event, or replaces ralph's earlier one in place: trust depends on
/// the position.
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

/// The group that calls ralph, and its index.
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

/// The hooks to install: events, each with its group.
fn groups(program: &str) -> Vec<(String, Value)> {
    let text = files::set_program(CODEX_HOOKS, program);
    let all: Value = serde_json::from_str(&text).expect("the hooks are JSON");
    let events = all["hooks"].as_object().expect("the hooks are an object");
    events
        .iter()
        .map(|(event, groups)| (event.clone(), groups[0].clone()))
        .collect()
}

/// Ralph's hooks in the file, with the keys and hashes under which Codex trusts them.
fn trusted_hooks(
    hooks_file: &JsonSettings,
    wanted: &[(String, Value)],
    home: &Path,
) -> Vec<TrustedHook> {
    let file = home.join("hooks.json").display().to_string();
    let all = wanted.iter().filter_map(|(event, _)| {
        let (index, group) = find_group(hooks_file, event)?;
        Some(TrustedHook::new(&file, event, index, &group["hooks"][0]))
    });
    all.collect()
}

/// Returns the step that updates the skills, if any differ. Skills that ralph did not write are not
/// replaced.
fn update_skills(home: &Path) -> Result<Option<FileStep>, CommandError> {
    let dir = home.join("skills");
    for name in files::codex_skills() {
        let path = dir.join(name);
        if path.exists() && !is_own_skill(&path) {
            return Err(CommandError::usage(
                format!("another skill exists at {}", path.display()),
                "nothing was written; move it away and try again",
            ));
        }
    }
    let differs =
        |(name, text): &PluginFile| fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text);
    let files: Vec<PluginFile> = files::codex_files().into_iter().filter(differs).collect();
    Ok((!files.is_empty()).then_some(FileStep::WriteFiles {
        dir,
        files,
        stale: Vec::new(),
    }))
}

fn is_own_skill(dir: &Path) -> bool {
    fs::read_to_string(dir.join("SKILL.md")).is_ok_and(|text| text.contains(MARK))
}

/// The user's Codex directory.
struct CodexHome {
    path: PathBuf,
    /// The path as Codex uses it in the keys of trusted hooks.
    key_path: PathBuf,
}

impl CodexHome {
    fn hooks(&self) -> PathBuf {
        self.path.join("hooks.json")
    }

    fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }
}

/// Codex resolves links in `CODEX_HOME`, but not in the default directory.
fn codex_home() -> Result<CodexHome, CommandError> {
    if let Some(set) = env::var_os("CODEX_HOME").filter(|set| !set.is_empty()) {
        let path = std::path::absolute(&set).map_err(CommandError::broken)?;
        let key_path = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        return Ok(CodexHome { path, key_path });
    }
    let home = home_dir().map_err(|error| {
        CommandError::broken(format!("cannot find the home directory: {error}"))
    })?;
    let path = home.join(".codex");
    Ok(CodexHome {
        key_path: path.clone(),
        path,
    })
}
