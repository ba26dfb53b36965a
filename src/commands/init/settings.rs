//! The starter settings: the text of `.ralph/settings.toml`, and that it takes no other's place.
//!
//! In the text, `# ` begins a sentence, and `#` alone a setting that is left out.

use super::created;
use super::detect::{Found, detect};
use crate::commands::new_file::put;
use crate::config::agents::presets;
use crate::lifecycle::failure::Failure;
use crate::os::program;
use crate::ui::say;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

const NAME: &str = ".ralph/settings.toml";

pub(crate) fn write(here: &Path, force: bool) -> Result<(), Failure> {
    no_other(here)?;
    let found = detect(here);
    let text = text(here, &found);
    make_directory(here)?;
    let over = put(&here.join(NAME), NAME, &text, force)?;
    say(&created(NAME, over));
    say(&account(&found, here.join("PROMPT.md").is_file()));
    Ok(())
}

/// Settings in another format would be a second truth beside ours.
fn no_other(here: &Path) -> Result<(), Failure> {
    for end in ["json", "yaml", "yml"] {
        let name = format!(".ralph/settings.{end}");
        if fs::symlink_metadata(here.join(&name)).is_ok() {
            return Err(Failure::usage(
                format!("{name} already exists"),
                format!(
                    "there can be one file of settings: edit it, or move it away to get {NAME}"
                ),
            ));
        }
    }
    Ok(())
}

/// A `.ralph` that leads elsewhere is not written through.
fn make_directory(here: &Path) -> Result<(), Failure> {
    let dir = here.join(".ralph");
    match fs::create_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => {
            return done.map_err(|error| Failure::broken(format!("cannot make .ralph: {error}")));
        }
    }
    let inside =
        fs::canonicalize(here).and_then(|here| Ok(fs::canonicalize(&dir)?.starts_with(here)));
    if dir.is_dir() && inside.unwrap_or(false) {
        return Ok(());
    }
    Err(Failure::usage(
        ".ralph is not a directory in this one",
        "it is left as it is: move it away first",
    ))
}

fn text(here: &Path, found: &[Found]) -> String {
    let known = presets(&BTreeMap::new()).unwrap_or_default();
    let installed = known
        .into_iter()
        .find(|(_, preset)| program::find(&preset.command[0], here).is_some());
    let agent = installed.map_or_else(|| "claude".to_owned(), |(name, _)| name);
    let mut text = format!(
        "# Settings of ralph for this directory. A flag says the same for one run: ralph run --help.\n\
         # A line that begins with # and no space is a setting that is left out.\n\n\
         # The agent; without it, the first that is installed.\n\
         #agent = {agent:?}\n\n\
         # What it may do without asking: \"none\", \"edits\" or \"all\".\n\
         approve = \"edits\"\n\n\
         # Where a loop stops at the latest, done or not.\n\
         maxIterations = 25\n\
         #maxTime = \"2h\"\n\n\
         # What must be green before the work counts as done. Of a red one, the end of its output goes into the\n\
         # next prompt: \"append\" puts it after the task, \"prepend\" before it, \"replace\" in its place.\n"
    );
    let mut checks = 0;
    for Found {
        file,
        checks: commands,
    } in found
    {
        for command in commands {
            let there = can_run(command);
            let (hide, why) = if there {
                ("", "")
            } else {
                ("#", "; not installed here")
            };
            let _ = writeln!(text, "\n# From {file}{why}.\n{}", check(command, hide));
            checks += 1;
        }
    }
    if checks == 0 {
        let _ = writeln!(
            text,
            "\n# Nothing was found here; for example:\n{}",
            check("./test.sh", "#")
        );
    }
    text.push_str(
        "\n# What is done with the work of an iteration whose checks are all green: \"commit\", \"push\".\n\
         #[scm]\n\
         #tasks = []\n",
    );
    text
}

fn check(command: &str, hide: &str) -> String {
    format!(
        "{hide}[[checks]]\n{hide}command = {command:?}\n{hide}failAction = \"append\"\n{hide}timeout = \"10m\""
    )
}

/// Whether the program of a check is here; one named as a path may still come.
fn can_run(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    program.contains('/') || program::find(program, Path::new(".")).is_some()
}

/// What was found, and what comes next.
fn account(found: &[Found], has_prompt: bool) -> String {
    let mut text = String::new();
    for Found { file, checks } in found {
        let checks: Vec<String> = checks
            .iter()
            .map(|check| {
                if can_run(check) {
                    check.clone()
                } else {
                    format!("{check} (not installed: left as a comment)")
                }
            })
            .collect();
        let checks = if checks.is_empty() {
            "no checks in it".to_owned()
        } else {
            checks.join(" · ")
        };
        let _ = writeln!(text, "found {file}: {checks}");
    }
    if found.is_empty() {
        text.push_str("found nothing that says how this is checked: the file has an example\n");
    }
    if !found
        .iter()
        .flat_map(|found| &found.checks)
        .any(|check| can_run(check))
    {
        text.push_str("no check holds yet: until one does, a loop ends when the agent says so\n");
    }
    let next = if has_prompt {
        "ralph run"
    } else {
        "ralph run \"what is to be done\", or ralph init"
    };
    let _ = writeln!(text, "next: look the file over, then {next}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_right_with_and_without_what_is_left_out() {
        let cargo = Found {
            file: "Cargo.toml".into(),
            checks: vec!["cargo test".into(), "no-such-program x".into()],
        };
        for found in [vec![], vec![cargo]] {
            let text = text(Path::new("."), &found);
            let plain: toml::Table = toml::from_str(&text).unwrap();
            assert_eq!(plain["approve"].as_str(), Some("edits"));
            assert_eq!(plain.contains_key("checks"), !found.is_empty());
            let told: String = text
                .lines()
                .map(|line| {
                    line.strip_prefix('#')
                        .filter(|rest| !rest.starts_with(' '))
                        .unwrap_or(line)
                })
                .fold(String::new(), |all, line| all + line + "\n");
            let full: toml::Table =
                toml::from_str(&told).unwrap_or_else(|error| panic!("{error}\n{told}"));
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
