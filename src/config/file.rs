//! How a settings file is found and read: JSON, TOML or YAML, whole or not at all.

use super::keys::{kebab, table};
use super::strict_value::Strict;
use super::validate::{Flaw, settle_all};
use super::{Wrong, wrong};
use crate::os::regular;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FORMATS: [&str; 4] = ["json", "toml", "yaml", "yml"];
/// Nobody writes more than this by hand.
const MOST: u64 = 1 << 20;

/// The settings file of a directory, of whatever format; two would leave open which one counts.
pub fn find(dir: &Path, stem: &str) -> Result<Option<PathBuf>, Wrong> {
    let mut found = Vec::new();
    for path in FORMATS.map(|format| dir.join(format!("{stem}.{format}"))) {
        // Not `exists`: a link that leads nowhere is a file that cannot be read, not one that is not there. And
        // in a directory that may not be entered there may be settings that hold.
        match path.symlink_metadata() {
            Ok(_) => found.push(path),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                let place = dir.display();
                return wrong(
                    format!("cannot look for settings in {place}: {error}"),
                    "mend it, or take it away",
                );
            }
        }
    }
    match &found[..] {
        [] => Ok(None),
        [_] => Ok(found.pop()),
        [first, second, ..] => wrong(
            format!(
                "there are two settings files: {} and {}",
                first.display(),
                second.display()
            ),
            "keep one of them",
        ),
    }
}

/// In a repository's subdirectory, the settings of its top do not hold: its checks would be missed silently, and
/// would not work here as they are. Whoever wants either must say so.
pub fn none_above(workspace: &Path) -> Result<(), Wrong> {
    let above = workspace
        .ancestors()
        .take_while(|dir| !dir.join(".git").exists())
        .collect::<Vec<_>>();
    let Some(top) = above.last().and_then(|dir| dir.parent()) else {
        return Ok(());
    };
    let within = above.iter().skip(1).copied().chain([top]);
    for (up, dir) in within.enumerate() {
        if let Some(path) = find(&dir.join(".ralph"), "settings")? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = format!("{}.ralph/{name}", "../".repeat(up + 1));
            return wrong(
                format!("{file} holds in {}, not here", dir.display()),
                format!("run ralph there; or take it here as well, with -c {file}"),
            );
        }
    }
    Ok(())
}

/// Reads a settings file that must be there.
pub fn read(path: &Path, shown: &str) -> Result<Map<String, Value>, Wrong> {
    let parse = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => json,
        Some("toml") => toml,
        Some("yaml" | "yml") => yaml,
        _ => {
            return wrong(
                format!("{shown}: the name does not say what it is"),
                "a settings file ends in .json, .toml, .yaml or .yml; for a promise, say --promise TEXT",
            );
        }
    };
    let text = match regular::read(path, MOST, true) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return wrong(
                format!("there is no settings file {shown}"),
                "-c and --config name one; for a promise, say --promise TEXT",
            );
        }
        Err(error) => {
            return wrong(
                format!("cannot read {shown}: {error}"),
                "mend it, or take it away",
            );
        }
        Ok((_, true)) => return wrong(format!("{shown} is too long"), "settings fit in 1 MiB"),
        Ok((bytes, false)) => bytes,
    };
    let Ok(text) = String::from_utf8(text) else {
        return wrong(format!("{shown} is not UTF-8"), "write it as UTF-8 text");
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match parse(text) {
        Err(error) => wrong(
            format!("{shown}: {error}"),
            "nothing was started; correct that place",
        ),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Object(all)) => settings(all, shown),
        Ok(_) => wrong(
            format!("{shown} does not hold settings"),
            "it must be an object: names and values",
        ),
    }
}

fn settings(mut all: Map<String, Value>, shown: &str) -> Result<Map<String, Value>, Wrong> {
    // A file that other programs read too: only this section is ours.
    let section = all.keys().find(|name| kebab(name) == "ralph-loop").cloned();
    let place = section.clone().unwrap_or_default();
    if let Some(name) = section {
        all = match all.remove(&name) {
            Some(Value::Object(section)) => section,
            Some(Value::Null) => Map::new(),
            _ => {
                return wrong(
                    format!("{shown}: {name} does not hold settings"),
                    "it must be an object",
                );
            }
        };
        if all.get("agent").and_then(Value::as_str) == Some("build") {
            all.remove("agent");
        }
    }
    // What an editor reads to know the rest.
    all.remove("$schema");
    settle_all(table(), &all, &place).map_err(|Flaw { place, error, hint }| Wrong {
        error: format!("{shown}: {place} {error}"),
        hint,
    })
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map(|Strict(value)| value)
        .map_err(|error| error.to_string())
}

fn toml(text: &str) -> Result<Value, String> {
    toml::from_str(text)
        .map(|Strict(value)| value)
        .map_err(|error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let line = line
                .map(|line| format!(" at line {line}"))
                .unwrap_or_default();
            format!("{}{line}", error.message())
        })
}

fn yaml(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text)
        .map(|Strict(value)| value)
        .map_err(|error| {
            let words = error.to_string();
            let words = words
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            // What follows is advice for programmers.
            let end = ["; use ", ", set "]
                .iter()
                .filter_map(|advice| words.find(advice))
                .min();
            words[..end.unwrap_or(words.len())].to_owned()
        })
}
