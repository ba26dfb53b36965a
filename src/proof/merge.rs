//! Merges a manifest such as `package.json`: dependencies as the agent left them, everything else as
//! it was at the start.
//!
//! A dependency that came from a registry keeps doing so: a path or a repository in its place would
//! let the agent supply the test runner.

use super::guards::{ManifestFormat, MergeRow, rows};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Returns the row that says how files with this name are merged.
pub(super) fn merge_row(path: &[u8]) -> Option<&'static MergeRow> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    rows()
        .manifests
        .iter()
        .find(|row| row.name.as_bytes() == name)
}

/// Merges the manifest `candidate` with the original. Returns `None` if either cannot be parsed.
pub(super) fn merge(row: &MergeRow, original: &[u8], candidate: &[u8]) -> Option<Vec<u8>> {
    let original = std::str::from_utf8(original).ok()?;
    let candidate = std::str::from_utf8(candidate).ok()?;
    let merged = match row.format {
        ManifestFormat::Json => merge_json(row, original, candidate)?,
        ManifestFormat::Toml => merge_toml(row, original, candidate)?,
        ManifestFormat::Lines => merge_lines(row, original, candidate),
    };
    Some(merged.into_bytes())
}

/// Returns whether two manifests mean the same.
pub(super) fn is_same(row: &MergeRow, a: &[u8], b: &[u8]) -> bool {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    let (a, b) = (text(a), text(b));
    match row.format {
        ManifestFormat::Json => {
            let parse = |text: &str| {
                serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')).ok()
            };
            parse(a) == parse(b)
        }
        ManifestFormat::Toml => {
            let parse = |text: &str| toml::from_str::<toml::Table>(text).ok();
            parse(a) == parse(b)
        }
        ManifestFormat::Lines => {
            let sorted = |text: &str| {
                let mut all = directives(text);
                all.sort();
                all
            };
            sorted(a) == sorted(b)
        }
    }
}

// ---------------------------------------------------------------- JSON

/// A JSON object whose values keep their text, and whose keys keep their order.
struct RawObject(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut pairs: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    // Readers use the last of several values.
                    pairs.retain(|(known, _)| *known != key);
                    pairs.push((key, value));
                }
                Ok(RawObject(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

impl RawObject {
    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
    }

    fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.get())
    }
}

fn merge_json(row: &MergeRow, original: &str, candidate: &str) -> Option<String> {
    let (original, candidate) = (RawObject::parse(original)?, RawObject::parse(candidate)?);
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (key, value) in &original.0 {
        if !row.keys.contains(key) {
            pairs.push((key, value.get().to_owned()));
        }
    }
    for key in &row.keys {
        if let Some(value) = candidate.get(key) {
            pairs.push((key, json_dependencies(original.get(key), value)));
        }
    }
    let lines = pairs
        .iter()
        .map(|(key, value)| format!("  {}: {value}", json_text(key)));
    Some(format!(
        "{{\n{}\n}}\n",
        lines.collect::<Vec<_>>().join(",\n")
    ))
}

/// Returns the candidate's dependencies, with the original sources of those that have moved away
/// from a registry.
fn json_dependencies(original: Option<&str>, candidate: &str) -> String {
    let (Some(original), Some(now)) = (
        original.and_then(RawObject::parse),
        RawObject::parse(candidate),
    ) else {
        return candidate.to_owned();
    };
    let pairs = now.0.iter().map(|(name, value)| {
        let before = original.get(name);
        let kept =
            before.filter(|before| is_json_registry(before) && !is_json_registry(value.get()));
        format!("    {}: {}", json_text(name), kept.unwrap_or(value.get()))
    });
    format!("{{\n{}\n  }}", pairs.collect::<Vec<_>>().join(",\n"))
}

/// Returns whether a dependency's value is a range of versions, not a path, URL or alias.
fn is_json_registry(value: &str) -> bool {
    let text: Result<String, _> = serde_json::from_str(value);
    text.is_ok_and(|text| !text.contains([':', '/']))
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

// ---------------------------------------------------------------- TOML

fn merge_toml(row: &MergeRow, original: &str, candidate: &str) -> Option<String> {
    let mut merged: DocumentMut = original.parse().ok()?;
    let original: DocumentMut = original.parse().ok()?;
    let candidate: DocumentMut = candidate.parse().ok()?;
    for key in &row.keys {
        let parts: Vec<&str> = key.split('.').collect();
        let mut paths = Vec::new();
        expand(original.as_table(), &parts, &mut Vec::new(), &mut paths);
        expand(candidate.as_table(), &parts, &mut Vec::new(), &mut paths);
        paths.sort();
        paths.dedup();
        for path in paths {
            let before = lookup(original.as_table(), &path);
            let now = lookup(candidate.as_table(), &path);
            put(
                merged.as_table_mut(),
                &path,
                now.map(|now| toml_dependencies(before, now)),
            )?;
        }
    }
    Some(merged.to_string())
}

/// Adds the paths in `table` that `parts` match, where `*` matches any key.
fn expand(
    table: &dyn TableLike,
    parts: &[&str],
    path: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    let Some((part, rest)) = parts.split_first() else {
        found.push(path.clone());
        return;
    };
    for (key, item) in table.iter().filter(|(key, _)| *part == "*" || key == part) {
        path.push(key.to_owned());
        match item.as_table_like() {
            _ if rest.is_empty() => found.push(path.clone()),
            Some(inner) => expand(inner, rest, path, found),
            None => {}
        }
        path.pop();
    }
}

fn lookup<'a>(table: &'a dyn TableLike, path: &[String]) -> Option<&'a Item> {
    let (key, rest) = path.split_first()?;
    let item = table.get(key)?;
    match rest {
        [] => Some(item),
        rest => lookup(item.as_table_like()?, rest),
    }
}

/// Sets or removes the item at a path. Returns `None` if the path leads through something other than
/// a table.
fn put(table: &mut dyn TableLike, path: &[String], item: Option<Item>) -> Option<()> {
    let (key, rest) = path.split_first()?;
    if rest.is_empty() {
        match item {
            Some(item) => drop(table.insert(key, item)),
            None => drop(table.remove(key)),
        }
        return Some(());
    }
    if table.get(key).is_none() {
        if item.is_none() {
            return Some(());
        }
        let mut new = toml_edit::Table::new();
        new.set_implicit(true);
        table.insert(key, Item::Table(new));
    }
    put(table.get_mut(key)?.as_table_like_mut()?, rest, item)
}

fn toml_dependencies(original: Option<&Item>, candidate: &Item) -> Item {
    let mut merged = candidate.clone();
    if let (Some(before), Some(now)) = (
        original.and_then(Item::as_table_like),
        merged.as_table_like_mut(),
    ) {
        let moved: Vec<(String, Item)> = now
            .iter()
            .filter_map(|(name, item)| {
                let before = before.get(name)?;
                // Groups of dependencies are lists in a table.
                let item = match item.as_array() {
                    Some(_) => Some(toml_dependencies(Some(before), item)),
                    None => (is_toml_registry(before) && !is_toml_registry(item))
                        .then(|| before.clone()),
                };
                Some((name.to_owned(), item?))
            })
            .collect();
        for (name, item) in moved {
            now.insert(&name, item);
        }
    }
    if let Some(list) = merged.as_array_mut() {
        let before = original.and_then(Item::as_array);
        let is_kept = |value: &Value| {
            let Some(text) = value.as_str().filter(|text| text.contains('@')) else {
                return true;
            };
            let name = |text: &str| {
                text.split(['@', '[', ' ', '=', '<', '>', '~', '!', ';'])
                    .next()
                    .unwrap_or_default()
                    .to_lowercase()
            };
            let known = before.into_iter().flatten().filter_map(Value::as_str);
            let mut same = known.filter(|known| name(known) == name(text)).peekable();
            same.peek().is_none() || same.any(|known| known.contains('@'))
        };
        let kept: Vec<Value> = list
            .iter()
            .filter(|value| is_kept(value))
            .cloned()
            .collect();
        list.clear();
        list.extend(kept);
    }
    merged
}

/// Returns whether a dependency's value is a range of versions, not a path, repository or renamed
/// package.
fn is_toml_registry(item: &Item) -> bool {
    let elsewhere = [
        "path", "git", "url", "file", "registry", "package", "source",
    ];
    item.as_table_like()
        .is_none_or(|table| elsewhere.iter().all(|key| !table.contains_key(key)))
}

// ---------------------------------------------------------------- go.mod

/// Takes the directives that the row names from the candidate, and all others from the original.
fn merge_lines(row: &MergeRow, original: &str, candidate: &str) -> String {
    let is_merged = |directive: &str| {
        let word = directive
            .split([' ', '\t', '(', '\n'])
            .next()
            .unwrap_or_default();
        row.keys.iter().any(|key| key == word)
    };
    let kept = directives(original)
        .into_iter()
        .filter(|text| !is_merged(text));
    let taken = directives(candidate)
        .into_iter()
        .filter(|text| is_merged(text));
    kept.chain(taken)
        .fold(String::new(), |text, directive| text + &directive + "\n")
}

/// Splits the text into directives, each a line or a block in parentheses, without comments.
fn directives(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match &mut block {
            Some(lines) => {
                lines.push('\n');
                lines.push_str(line);
                if line == ")" {
                    found.extend(block.take());
                }
            }
            None if line.ends_with('(') => block = Some(line.to_owned()),
            None if !line.is_empty() => found.push(line.to_owned()),
            None => {}
        }
    }
    found.extend(block);
    found
}
