//! `ralph init --settings`: writes `.ralph/settings.toml` with the checks detected in the
//! directory.
//!
//! In the generated file, `#` and a space begin a comment, and `#` alone comments out a setting.

use super::created_message;
use super::detect::{DetectedChecks, detect};
use crate::commands::atomic_file::write_atomically;
use crate::commands::run::{config_dir, settings_paths};
use crate::config::SettingsFiles;
use crate::config::agents::presets;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::trust::{TrustRecords, is_inside_loop};
use crate::os::program;
use crate::ui::print::{print_message, warn};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

const NAME: &str = ".ralph/settings.toml";

pub(crate) fn write(here: &Path, force: bool) -> Result<(), CommandError> {
    reject_other_formats(here)?;
    let found = detect(here);
    let text = settings_text(here, &found);
    create_ralph_dir(here)?;
    let replaced = write_atomically(&here.join(NAME), NAME, &text, force)?;
    print_message(&created_message(NAME, replaced));
    trust_own_file(here, &text);
    print_message(&describe_checks(&found, here.join("PROMPT.md").is_file()));
    Ok(())
}

/// Trusts the file that was just written: the user asked for it. An agent's request does not count,
/// and neither does a file that has been replaced in the meantime.
fn trust_own_file(here: &Path, text: &str) {
    let config_dir = config_dir();
    let (records, paths) = (
        TrustRecords::new(config_dir.as_deref()),
        settings_paths(here.to_owned(), None),
    );
    let Ok(files) = SettingsFiles::read(&paths) else {
        return;
    };
    let written = records.untrusted(&files, here);
    for file in written.iter().filter(|file| file.has_text(text)) {
        if is_inside_loop() {
            warn(format!(
                "{NAME} is not trusted, because an agent wrote it: ask a person to run `ralph trust`"
            ));
        } else if let Err(error) = records.add(file) {
            warn(format!("cannot remember that you trust {NAME}: {error}"));
        }
    }
}

/// Returns an error if a settings file in another format exists, because neither file would take
/// precedence.
fn reject_other_formats(here: &Path) -> Result<(), CommandError> {
    for end in ["json", "yaml", "yml"] {
        let name = format!(".ralph/settings.{end}");
        if fs::symlink_metadata(here.join(&name)).is_ok() {
            return Err(CommandError::usage(
                format!("{name} already exists"),
                format!("edit {name}, or move it away to create {NAME}: there can be only one"),
            ));
        }
    }
    Ok(())
}

/// Creates `.ralph` unless it exists. Fails if it is a link to a directory outside the workspace.
fn create_ralph_dir(here: &Path) -> Result<(), CommandError> {
    let dir = here.join(".ralph");
    match fs::create_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => {
            return result
                .map_err(|error| CommandError::broken(format!("cannot create .ralph: {error}")));
        }
    }
    let is_inside =
        fs::canonicalize(here).and_then(|here| Ok(fs::canonicalize(&dir)?.starts_with(here)));
    if dir.is_dir() && is_inside.unwrap_or(false) {
        return Ok(());
    }
    Err(CommandError::usage(
        ".ralph is not a directory, or is a link to a directory outside this one",
        "move .ralph away and try again",
    ))
}

fn settings_text(here: &Path, found: &[DetectedChecks]) -> String {
    let known = presets(&BTreeMap::new()).unwrap_or_default();
    let installed = known
        .into_iter()
        .find(|(_, preset)| program::find(&preset.command[0], here).is_some());
    let agent = installed.map_or_else(|| "claude".to_owned(), |(name, _)| name);
    let mut text = format!(
        "# ralph's settings for this directory. Flags override them for one run: see `ralph run --help`.\n\
         # A # without a space after it marks a setting that is commented out.\n\n\
         # The agent. Default: the first known agent that is installed.\n\
         #agent = {agent:?}\n\n\
         # What the agent may do without asking: \"none\", \"edits\" or \"all\".\n\
         approve = \"edits\"\n\n\
         # Limits. Once one is reached, no new iteration starts.\n\
         maxIterations = 25\n\
         #maxTime = \"2h\"\n\n\
         # Checks. All of them must pass before the work counts as done. The end of a red check's output goes\n\
         # into the next prompt: \"append\" puts it after the task, \"prepend\" before it, \"replace\" in its place.\n"
    );
    let mut checks = 0;
    for project in found {
        let file = &project.file;
        for check in &project.checks {
            let (prefix, note) = if can_run(check) {
                ("", "")
            } else {
                ("#", "; not installed here")
            };
            let _ = writeln!(
                text,
                "\n# From {file}{note}.\n{}",
                check_text(&project.command(check), prefix)
            );
            checks += 1;
        }
    }
    if checks == 0 {
        let _ = writeln!(
            text,
            "\n# No checks were detected. An example:\n{}",
            check_text("./test.sh", "#")
        );
    }
    text.push_str(
        "\n# Git tasks after an iteration with changes and only green checks: \"commit\", \"push\".\n\
         #[scm]\n\
         #tasks = []\n",
    );
    text
}

fn check_text(command: &str, prefix: &str) -> String {
    format!(
        "{prefix}[[checks]]\n{prefix}command = {command:?}\n{prefix}onFail = \"append\"\n{prefix}timeout = \"10m\""
    )
}

/// Returns whether a check's program is installed. A path counts as installed even if the file does
/// not exist yet.
fn can_run(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    program.contains('/') || program::find(program, Path::new(".")).is_some()
}

/// Describes the detected checks and the suggested next step.
fn describe_checks(found: &[DetectedChecks], has_prompt: bool) -> String {
    let mut text = String::new();
    for project in found {
        let checks: Vec<String> = project
            .checks
            .iter()
            .map(|check| {
                let command = project.command(check);
                if can_run(check) {
                    command
                } else {
                    format!("{command} (not installed: commented out)")
                }
            })
            .collect();
        let checks = if checks.is_empty() {
            "no checks".to_owned()
        } else {
            checks.join(" · ")
        };
        let _ = writeln!(text, "found {}: {checks}", project.file);
    }
    if found.is_empty() {
        text.push_str("no checks detected: the settings contain an example\n");
    }
    let mut checks = found.iter().flat_map(|found| &found.checks);
    let has_checks = checks.any(|check| can_run(check));
    if !has_checks {
        text.push_str("no check is enabled: a loop ends when the agent claims to be done\n");
    }
    let next = if has_prompt {
        "ralph run"
    } else {
        "ralph run \"your task\", or ralph init"
    };
    let _ = writeln!(text, "next: review {NAME}, then {next}");
    if has_checks {
        text.push_str("ralph selftest shows whether these checks can be fooled\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_valid_with_and_without_the_commented_settings() {
        let cargo = DetectedChecks {
            file: "Cargo.toml".into(),
            checks: vec!["cargo test".into(), "no-such-program x".into()],
            dir: None,
        };
        for found in [vec![], vec![cargo]] {
            let text = settings_text(Path::new("."), &found);
            let plain: toml::Table = toml::from_str(&text).unwrap();
            assert_eq!(plain["approve"].as_str(), Some("edits"));
            assert_eq!(plain.contains_key("checks"), !found.is_empty());
            let uncommented: String = text
                .lines()
                .map(|line| {
                    line.strip_prefix('#')
                        .filter(|rest| !rest.starts_with(' '))
                        .unwrap_or(line)
                })
                .fold(String::new(), |all, line| all + line + "\n");
            let full: toml::Table = toml::from_str(&uncommented)
                .unwrap_or_else(|error| panic!("{error}\n{uncommented}"));
            for key in [
                "agent",
                "approve",
                "maxIterations",
                "maxTime",
                "checks",
                "scm",
            ] {
                assert!(full.contains_key(key), "{key}");
            }
            let checks = full["checks"].as_array().unwrap();
            assert_eq!(
                checks.len(),
                found.first().map_or(1, |found| found.checks.len())
            );
            assert!(
                checks
                    .iter()
                    .all(|check| check["command"].is_str() && check["timeout"].is_str())
            );
        }
    }
}
