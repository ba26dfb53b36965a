//! Reads check recipes with conventional names in a makefile, a justfile or a Taskfile, and the
//! modules of a Go workspace.

use super::ProjectDir;
use crate::engine::format::shell_quote;
use serde::Deserialize;
use serde_json::Value;

/// What reads a kind's file, where the conditions of the table are not enough.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reader {
    Node,
    Python,
    GoWork,
    Make,
    Just,
    Task,
}

const NAMES: [&str; 3] = ["test", "check", "lint"];

/// Reads the checks in a file; `None` if another reader reads it.
pub(super) fn checks(reader: Reader, project: &ProjectDir<'_>, file: &str) -> Option<Vec<String>> {
    let text = project.read(file);
    Some(match reader {
        Reader::Node | Reader::Python => return None,
        Reader::GoWork => go_workspace(&text),
        Reader::Make => recipes("make", &heads(&text, make_names)),
        Reader::Just => recipes("just", &heads(&text, just_names)),
        Reader::Task => {
            let taskfile: Value = serde_saphyr::from_str(&text).unwrap_or_default();
            let tasks = taskfile["tasks"].as_object();
            let names = tasks.into_iter().flat_map(|tasks| tasks.keys());
            recipes("task", &names.map(String::as_str).collect::<Vec<_>>())
        }
    })
}

fn recipes(program: &str, known: &[&str]) -> Vec<String> {
    NAMES
        .iter()
        .filter(|name| known.contains(*name))
        .map(|name| format!("{program} {name}"))
        .collect()
}

fn make_names(head: &str) -> Vec<&str> {
    head.split_whitespace().collect()
}

/// Returns the recipe's name. Parameters follow it; a recipe with a required one cannot run as a
/// check.
fn just_names(head: &str) -> Vec<&str> {
    let mut parts = head.trim_start_matches('@').split_whitespace();
    let name = parts.next();
    name.filter(|_| parts.all(|parameter| parameter.starts_with('*')))
        .into_iter()
        .collect()
}

/// Returns the names in the heads of a file: the text before the first colon of a line that is not
/// indented, not a comment and not an assignment.
fn heads(text: &str, names: fn(&str) -> Vec<&str>) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.starts_with([' ', '\t', '#']))
        .filter_map(|line| {
            let (head, rest) = line.split_once(':')?;
            (!rest.trim_start_matches(':').starts_with('=') && !head.contains('=')).then_some(head)
        })
        .flat_map(names)
        .collect()
}

/// Returns the checks of a Go workspace. `./...` matches nothing where the top directory is no
/// module, so that each module is named.
fn go_workspace(text: &str) -> Vec<String> {
    let mut modules: Vec<String> = Vec::new();
    let mut in_use = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match line.strip_prefix("use").map(str::trim_start) {
            Some(rest) if rest.starts_with('(') => in_use = true,
            Some(module) if !module.is_empty() && !in_use => modules.push(pattern(module)),
            _ if line == ")" => in_use = false,
            _ if in_use && !line.is_empty() => modules.push(pattern(line)),
            _ => {}
        }
    }
    if modules.is_empty() {
        return Vec::new();
    }
    ["test", "vet"]
        .map(|verb| format!("go {verb} {}", modules.join(" ")))
        .to_vec()
}

/// Returns the package pattern of a module's directory: `./api/...`.
fn pattern(module: &str) -> String {
    let module = module.trim_matches('"').trim_end_matches('/');
    shell_quote(&format!("{module}/..."))
}
