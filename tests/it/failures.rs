//! Error messages of agents: each one in `testdata/failures.tsv` is classified as recorded there.

use ralph::testing::Replay;
use std::collections::BTreeSet;

const MESSAGES: &str = include_str!("../../testdata/failures.tsv");

#[test]
fn every_known_error_message_has_its_kind() {
    let agents = Replay::all();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in MESSAGES.lines().filter(|line| !line.starts_with('#')) {
        let [agent, kind, reset, message] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}")
        };
        let known = agents.get(agent).unwrap_or_else(|| panic!("{agent}"));
        let found = known.classify(&message.replace("\\n", "\n"));
        let expected = (kind != "-").then_some((kind, reset == "reset"));
        if found != expected {
            wrong.push(format!(
                "{agent}: {message}\n  is {found:?}, not {expected:?}"
            ));
        }
        seen.insert(agent);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        seen.len(),
        agents.len(),
        "every agent has messages: {seen:?}"
    );
}

#[test]
fn every_common_pattern_is_valid() {
    let table: toml::Table = include_str!("../../presets/failures.toml").parse().unwrap();
    let rows = table["reason"].as_array().unwrap();
    for row in rows {
        let pattern = row["pattern"].as_str().unwrap();
        assert!(regex::Regex::new(pattern).is_ok(), "{pattern}");
    }
    assert!(rows.len() > 9);
}

#[test]
fn ordinary_last_lines_are_no_known_failure() {
    let lines = [
        "I fixed the parser and all 500 tests pass.",
        "Done. The retry limit is now 4.",
        "error: could not compile `app` (lib) due to 3 previous errors",
        "panicked at src/main.rs:5:10",
        "Segmentation fault",
    ];
    for (name, agent) in Replay::all() {
        for line in lines {
            assert_eq!(agent.classify(line), None, "{name}: {line}");
        }
    }
}
