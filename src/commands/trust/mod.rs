//! `ralph trust`: trusts the settings of a project to run commands, lists the trusted files, or
//! revokes the trust.

pub(super) mod consent;

use super::run::{config_dir, settings_paths};
use super::workspace::ChosenWorkspace;
use crate::cli::setup::TrustArgs;
use crate::config::SettingsFiles;
use crate::engine::ExitCode;
use crate::git;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::trust::{TrustRecord, TrustRecords, is_inside_loop};
use crate::ui::print::{print_message, print_output};
use crate::ui::trust_text;
use std::path::{Path, PathBuf};

pub(crate) fn trust(args: &TrustArgs) -> Result<ExitCode, CommandError> {
    if is_inside_loop() {
        return Err(CommandError::usage(
            "an agent cannot decide which settings are trusted",
            "ask a person to run `ralph trust` outside the loop",
        ));
    }
    let records = TrustRecords::new(config_dir().as_deref());
    if args.list {
        print_output(&trust_text::list(&current_records(&records)))?;
        return Ok(ExitCode::Success);
    }
    let workspace = match &args.path {
        Some(path) => std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)),
        None => Ok(ChosenWorkspace::choose(false)?.path),
    };
    let workspace = workspace.map_err(CommandError::broken)?;
    if args.revoke {
        return revoke(&records, &workspace);
    }
    add(&records, &workspace)
}

/// Trusts the settings files of a directory.
fn add(records: &TrustRecords, workspace: &Path) -> Result<ExitCode, CommandError> {
    let dir = workspace.display();
    if !workspace.is_dir() {
        return Err(CommandError::usage(
            format!("{dir} is not a directory"),
            "name the directory that contains .ralph, or run `ralph trust` in it",
        ));
    }
    let files = SettingsFiles::read(&settings_paths(workspace.to_owned(), None))?;
    let guarded = records.check(&files, workspace);
    if guarded.is_empty() {
        print_message(&format!(
            "nothing to trust: no settings file in {dir} runs a command\n"
        ));
    }
    let (known, new): (Vec<_>, Vec<_>) = guarded.into_iter().partition(|file| file.is_trusted);
    for file in known {
        print_message(&format!("{} is trusted already\n", file.name));
    }
    consent::show(records, &new, workspace);
    for file in new {
        records.add(&file).map_err(|error| {
            CommandError::broken(format!(
                "cannot remember that you trust {}: {error}",
                file.name
            ))
        })?;
        print_message(&format!("trusted {} in {dir}\n", file.name));
    }
    Ok(ExitCode::Success)
}

/// Removes the records of the repository that contains `workspace`, or of the directory itself if it
/// no longer exists.
fn revoke(records: &TrustRecords, workspace: &Path) -> Result<ExitCode, CommandError> {
    let project = if workspace.exists() {
        git::repository(workspace).project
    } else {
        workspace.to_owned()
    };
    let removed = records.revoke(&project).map_err(|error| {
        CommandError::broken(format!("cannot remove a record of trust: {error}"))
    })?;
    let project = project.display();
    print_message(&match removed {
        0 => format!("no settings of {project} were trusted\n"),
        _ => format!("the settings of {project} are no longer trusted\n"),
    });
    Ok(ExitCode::Success)
}

/// Returns the newest record for each file.
fn current_records(records: &TrustRecords) -> Vec<TrustRecord> {
    let mut all = records.list();
    let path = |record: &TrustRecord| -> PathBuf { record.project.join(&record.file) };
    all.dedup_by_key(|record| path(record));
    all
}
