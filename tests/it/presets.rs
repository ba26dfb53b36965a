//! Every file in `presets/agents/` follows the format, and docs/presets.md matches the files.

use crate::kit::Test;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

const KEYS: [&str; 15] = [
    "title",
    "command",
    "headless",
    "signs",
    "stream",
    "dialect",
    "prompt",
    "prompt-words",
    "model",
    "install",
    "login",
    "version",
    "denied",
    "tested",
    "approve",
];
const OPTIONAL: [&str; 16] = [
    "allow",
    "reason",
    "error-lines",
    "success-lines",
    "model-hint",
    "notes",
    "exit",
    "ready",
    "budget",
    "login-files",
    "login-variables",
    "keys",
    "inside",
    "own-paths",
    "own-sandbox",
    "credentials",
];
const LEVELS: [&str; 3] = ["none", "edits", "all"];
const MEANINGS: [&str; 5] = ["waiting", "login", "usage", "permission", "limit"];

/// Records its arguments and its prompt.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\n' "$@" > words.txt
for last; do :; done
if test -f "$last"; then cat "$last" > prompt.txt; else cat > prompt.txt; fi
"#;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn presets() -> BTreeMap<String, Table> {
    let files = fs::read_dir(root().join("presets/agents"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let name = name
            .strip_suffix(".toml")
            .unwrap_or_else(|| panic!("{name}: not a preset"))
            .to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let table = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (name, table)
    };
    let presets: BTreeMap<String, Table> = files.map(read).collect();
    assert!(
        presets.len() >= 12,
        "only {} presets were found",
        presets.len()
    );
    presets
}

fn page() -> String {
    fs::read_to_string(root().join("docs/presets.md")).unwrap()
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} is not a text"))
}

fn strings(table: &Table, key: &str) -> Vec<String> {
    let strings = table[key]
        .as_array()
        .unwrap_or_else(|| panic!("{key} is not a list"));
    strings
        .iter()
        .map(|word| word.as_str().expect("a word").to_owned())
        .collect()
}

fn level<'a>(preset: &'a Table, name: &str) -> &'a Table {
    preset["approve"][name].as_table().unwrap()
}

fn variables(level: &Table) -> Vec<(&str, &str)> {
    level["env"]
        .as_table()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect()
}

/// Formats a level's arguments and variables as docs/presets.md does.
fn spelled(level: &Table) -> String {
    let variables = variables(level).into_iter().map(|(name, value)| {
        let quote = if value.contains('"') { "'" } else { "" };
        format!("{name}={quote}{value}{quote}")
    });
    variables
        .chain(strings(level, "words"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn code(text: &str) -> String {
    if text.is_empty() {
        "–".into()
    } else {
        format!("`{}`", text.replace('|', "\\|"))
    }
}

#[test]
fn every_preset_follows_the_format() {
    for (name, preset) in presets() {
        for key in KEYS {
            assert!(preset.contains_key(key), "{name}: {key} is missing");
        }
        for key in preset.keys() {
            let known = KEYS.contains(&key.as_str()) || OPTIONAL.contains(&key.as_str());
            assert!(known, "{name}: there is no key {key}");
        }
        for key in ["title", "install", "login"] {
            assert!(!text(&preset, key).is_empty(), "{name}: {key} is empty");
        }
        for key in ["command", "version"] {
            assert!(!strings(&preset, key).is_empty(), "{name}: {key} is empty");
        }
        assert!(
            ["stdin", "argument", "file"].contains(&text(&preset, "prompt")),
            "{name}"
        );
        let model = strings(&preset, "model");
        let hint = preset
            .get("model-hint")
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(
            model.iter().any(|word| word.contains("{model}")) || model.is_empty(),
            "{name}: {model:?}"
        );
        assert_eq!(
            model.is_empty(),
            !hint.is_empty(),
            "{name}: a hint stands where there is no flag"
        );
        for pattern in strings(&preset, "denied") {
            let pattern =
                regex::Regex::new(&pattern).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!pattern.is_match(""), "{name}: {pattern} means every line");
        }
        let reasons = preset.get("reason").and_then(|rows| rows.as_array());
        for reason in reasons.into_iter().flatten() {
            let pattern = text(reason.as_table().unwrap(), "pattern");
            let pattern =
                regex::Regex::new(pattern).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!pattern.is_match(""), "{name}: {pattern} means everything");
        }
        assert_eq!(
            text(&preset, "dialect") == "text",
            strings(&preset, "stream").is_empty(),
            "{name}"
        );
        strings(&preset, "headless");
        strings(&preset, "prompt-words");
        text(&preset, "tested");
    }
}

#[test]
fn every_preset_has_three_approval_levels_and_unambiguous_exit_codes() {
    for (name, preset) in presets() {
        let levels: Vec<&String> = preset["approve"].as_table().unwrap().keys().collect();
        assert_eq!(levels.len(), LEVELS.len(), "{name}: {levels:?}");
        for level in LEVELS.map(|name| level(&preset, name)) {
            let keys: Vec<&String> = level.keys().filter(|key| *key != "allows").collect();
            assert_eq!(keys, ["env", "words"], "{name}");
            spelled(level);
        }
        let [none, _, all] = LEVELS.map(|name| spelled(level(&preset, name)));
        assert_ne!(none, all, "{name}: nothing and everything are the same");
        // The prompt says `You may …`.
        for level in LEVELS.map(|name| level(&preset, name)) {
            let allows = level.get("allows").and_then(Value::as_str);
            assert!(!allows.is_some_and(|text| text.ends_with('.')), "{name}");
        }
        for rule in preset
            .get("allow")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let rule = rule.as_table().unwrap();
            assert_eq!(rule.keys().collect::<Vec<_>>(), ["hint", "tool"], "{name}");
        }
        let exits = preset
            .get("exit")
            .map(|exits| exits.as_array().unwrap().clone())
            .unwrap_or_default();
        let mut codes = Vec::new();
        for exit in exits.iter().map(|exit| exit.as_table().unwrap()) {
            assert_eq!(
                exit.keys().collect::<Vec<_>>(),
                ["code", "hint", "means"],
                "{name}"
            );
            assert!(MEANINGS.contains(&text(exit, "means")), "{name}: {exit:?}");
            assert!(!text(exit, "hint").is_empty(), "{name}: {exit:?}");
            codes.push(exit["code"].as_integer().unwrap());
        }
        // Programs exit with 0 on success and with 1 for any error, so neither can have a special
        // meaning.
        assert!(
            codes.iter().all(|code| (2..=255).contains(code)),
            "{name}: {codes:?}"
        );
        codes.dedup();
        assert_eq!(codes.len(), exits.len(), "{name}: a code has two meanings");
    }
}

#[test]
fn the_agents_page_matches_the_presets() {
    let page = page();
    let mut missing = Vec::new();
    for (name, preset) in presets() {
        let [title, install, login, tested] =
            ["title", "install", "login", "tested"].map(|key| text(&preset, key));
        let tested = if tested.is_empty() { "no" } else { tested };
        let [none, edits, all] = LEVELS.map(|name| code(&spelled(level(&preset, name))));
        let notes = preset
            .get("notes")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let lines = [
            format!(
                "| `{name}` | {title} | {} | {login} | {tested} |",
                code(install)
            ),
            format!("| `{name}` | {none} | {edits} | {all} |"),
            format!("- **{name}**: {notes}"),
        ];
        let wanted = lines.into_iter().filter(|line| !line.ends_with(": "));
        missing.extend(wanted.filter(|line| !page.lines().any(|stands| stands == line)));
    }
    assert!(
        missing.is_empty(),
        "docs/presets.md lacks\n{}",
        missing.join("\n")
    );
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `") && line.matches(" | ").count() == 4);
    assert_eq!(
        rows.count(),
        presets().len(),
        "the page names an agent that there is not"
    );
}

#[test]
fn every_settings_example_in_the_page_is_valid() {
    let page = page();
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(
        examples.len() >= 4,
        "only {} examples were found",
        examples.len()
    );
    for example in examples {
        let agent = if example.contains("my-agent") {
            "my-agent"
        } else {
            "claude"
        };
        let settings = example.replace("/opt/claude/bin/", "");
        let test = Test::new()
            .on_path(agent, PROGRAM)
            .file(".ralph/settings.toml", &settings);
        test.ralph(&[
            "run",
            "mend it",
            "-m",
            "1",
            "--no-promise",
            "--agent",
            agent,
        ])
        .exits(0);
        assert!(test.read("prompt.txt").starts_with("mend it"), "{example}");
        for word in ["--once", "--write", "Bash(npm test)"]
            .iter()
            .filter(|word| example.contains(**word))
        {
            assert!(
                test.read("words.txt").lines().any(|line| line == *word),
                "{word}: {example}"
            );
        }
    }
}
