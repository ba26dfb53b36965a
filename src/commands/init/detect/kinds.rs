//! The table of project kinds: which files identify a kind, and which checks it implies.

use super::readers::Reader;
use super::{ProjectDir, node, python, readers};
use crate::engine::ProcessExit;
use crate::os::program;
use crate::process::probe::{ProbeResult, run_probes};
use serde::Deserialize;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Debug, Deserialize)]
struct KindTable {
    kind: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    files: Vec<String>,
    #[serde(default)]
    executable: bool,
    #[serde(default)]
    whole: bool,
    reader: Option<Reader>,
    #[serde(default)]
    checks: Vec<Vec<CheckRow>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRow {
    run: String,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default)]
    mentions: Vec<String>,
    wrapper: Option<String>,
    subcommand: Option<String>,
}

/// A kind that was found in a directory.
pub(super) struct FoundKind {
    pub(super) kind: String,
    pub(super) file: String,
    /// Whether the checks cover the subdirectories as well.
    pub(super) whole: bool,
    pub(super) checks: Vec<String>,
}

fn table() -> &'static [Kind] {
    static TABLE: OnceLock<KindTable> = OnceLock::new();
    &TABLE
        .get_or_init(|| {
            toml::from_str(include_str!("../../../../presets/projects.toml"))
                .expect("the embedded table of projects is valid")
        })
        .kind
}

/// Finds the kinds of a directory. Of several rows of one kind, the first that applies counts.
pub(super) fn detect(project: &ProjectDir<'_>) -> Vec<FoundKind> {
    let mut all: Vec<FoundKind> = Vec::new();
    for kind in table() {
        if all.iter().any(|found| found.kind == kind.name) {
            continue;
        }
        let file = kind
            .files
            .iter()
            .filter_map(|pattern| project.find(pattern))
            .find(|file| !kind.executable || project.is_executable(file));
        all.extend(file.and_then(|file| find_checks(project, kind, file)));
    }
    all
}

fn find_checks(project: &ProjectDir<'_>, kind: &Kind, file: String) -> Option<FoundKind> {
    let checks = match kind.reader {
        None => kind
            .checks
            .iter()
            .filter_map(|alternatives| alternatives.iter().find(|row| row.applies(project, kind)))
            .map(|row| row.command(project, &file))
            .collect(),
        Some(Reader::Node) => node::checks(project, &file),
        Some(Reader::Python) => python::checks(project, &kind.files),
        // A makefile, justfile or Taskfile without checks says nothing about the project.
        Some(reader) => readers::checks(reader, project, &file).filter(|all| !all.is_empty())?,
    };
    Some(FoundKind {
        kind: kind.name.clone(),
        file,
        whole: kind.whole,
        checks,
    })
}

impl CheckRow {
    fn applies(&self, project: &ProjectDir<'_>, kind: &Kind) -> bool {
        let files = || kind.files.iter().filter_map(|file| project.find(file));
        let mentions = |text: &String| files().any(|file| project.read(&file).contains(text));
        (self.has.is_empty() || self.has.iter().any(|name| project.has(name)))
            && (self.mentions.is_empty() || self.mentions.iter().any(mentions))
            && self
                .subcommand
                .as_ref()
                .is_none_or(|subcommand| has_subcommand(first_word(&self.run), subcommand))
    }

    fn command(&self, project: &ProjectDir<'_>, file: &str) -> String {
        let command = self.run.replace("{file}", file);
        match &self.wrapper {
            Some(wrapper) if project.has(wrapper) => {
                command.replacen(first_word(&self.run), &format!("./{wrapper}"), 1)
            }
            _ => command,
        }
    }
}

fn first_word(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or_default()
}

/// Returns whether a program's subcommand is installed. rustup's launcher may exist without it, so
/// this runs the subcommand. It does not run in the project, where a `rust-toolchain` file could
/// make the launcher download another toolchain.
fn has_subcommand(program: &str, subcommand: &str) -> bool {
    let command = [program, subcommand, "--version"]
        .map(str::to_owned)
        .to_vec();
    let results = program::find(program, Path::new("/"))
        .map(|_| run_probes(&[command], Path::new("/"), Duration::from_secs(5)));
    let result = results
        .and_then(Result::ok)
        .and_then(|mut results| results.pop());
    matches!(
        result,
        Some(ProbeResult::Exited(ProcessExit { code: Some(0), .. }, _))
    )
}
