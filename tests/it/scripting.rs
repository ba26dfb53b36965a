//! The program matches docs/scripting.md: exit codes, lines, fields and variables.

use crate::crash::crash;
use crate::kit::{Test, until};
use crate::spawn::until_status;
use ralph::ExitCode;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const AGENT: [&str; 2] = ["--agent", "script:../agent.script"];
const WAITS: &str = "sh touch here; until test -e go; do sleep 0.01; done";

/// Returns the rows of a page's first table after this text, each as its cells.
fn table(page: &str, after: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(page),
    )
    .unwrap();
    let rest = text
        .split_once(after)
        .unwrap_or_else(|| panic!("{after:?} is not in {page}"))
        .1;
    let rows = rest
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.skip(2).map(cells).collect()
}

/// Returns the texts in backticks in a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns the names in a table's first column.
pub(crate) fn names(page: &str, after: &str) -> BTreeSet<String> {
    table(page, after)
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .collect()
}

pub(crate) fn fields(object: &Value) -> BTreeSet<String> {
    object
        .as_object()
        .unwrap_or_else(|| panic!("no object: {object}"))
        .keys()
        .cloned()
        .collect()
}

/// Returns whether a line matches a documented one, in which words in capitals are placeholders.
fn is_like(line: &str, template: &str) -> bool {
    let (mut pattern, mut rest) = (String::new(), template);
    let capitals = Regex::new("[A-Z]{2,}").unwrap();
    while let Some(word) = capitals.find(rest) {
        pattern += &regex::escape(&rest[..word.start()]);
        // The tags of a log line are literal.
        let own = ["START", "END", "FAIL"].contains(&word.as_str());
        // A value is one word.
        let value = if pattern.ends_with('=') { r"\S+" } else { ".+" };
        pattern += if own { word.as_str() } else { value };
        rest = &rest[word.end()..];
    }
    pattern += &regex::escape(rest);
    Regex::new(&format!("^{pattern}$")).unwrap().is_match(line)
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "go", "--name", "a"], &AGENT[..], more].concat()
}

#[test]
fn every_status_has_the_documented_exit_code() {
    let rows = table("scripting.md", "## Exit codes");
    let listed: Vec<(String, i32)> = rows
        .iter()
        .map(|row| (quoted(&row[0]).remove(0), row[1].parse().unwrap()))
        .collect();
    let mut seen = Vec::new();
    for status in [
        "done", "failed", "crashed", "paused", "blocked", "waiting", "stopped",
    ] {
        let steps = match status {
            "done" => "promise COMPLETE",
            "failed" => "say no",
            "blocked" => "blocked Which port?",
            "waiting" => "mark WAIT",
            _ => WAITS,
        };
        let test = Test::new().script(&format!("iteration *\n {steps}\n"));
        let live = test.start(&run(&["-m", "1"]));
        if steps == WAITS {
            until("the agent", || test.workspace().join("here").exists());
        }
        let exits = match status {
            "crashed" => {
                crash(live);
                None
            }
            "paused" => {
                test.ralph(&["pause", "a"]).exits(0);
                test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
                test.write("go", "");
                Some(live.end().code)
            }
            "stopped" => {
                test.ralph(&["stop", "a"]).exits(0);
                Some(live.end().code)
            }
            _ => Some(live.end().code),
        };
        assert_eq!(test.status("a")["status"], status);
        let waited = test.ralph(&["wait", "a"]).code;
        assert!(
            exits.is_none_or(|code| code == waited),
            "{status}: {exits:?} and {waited}"
        );
        seen.push((status.to_owned(), waited));
    }
    assert_eq!(listed, seen);
}

#[test]
fn the_pages_list_every_exit_code() {
    let all: BTreeSet<u8> = ExitCode::ALL.map(ExitCode::code).into();
    let codes = |page: &str, after: &str, column: usize| -> BTreeSet<u8> {
        let rows = table(page, after).into_iter();
        // The row `128 + n` stands for signals.
        rows.filter_map(|row| row[column].parse().ok()).collect()
    };
    assert_eq!(codes("done.md", "## Exit codes", 0), all);
    let mut scripting = codes("scripting.md", "## Exit codes", 1);
    scripting.extend(codes("scripting.md", "All other commands", 0));
    assert_eq!(scripting, all);
}

#[test]
fn every_command_s_first_line_is_as_documented() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS}\niteration *\n promise COMPLETE\n"
    ));
    let mut seen: Vec<(&str, String)> = Vec::new();
    let mut note = |command: &'static str, args: &[&str]| {
        let out = test.ralph(args).exits(0).out;
        seen.push((command, out.lines().next().unwrap_or_default().to_owned()));
    };
    note(
        "ralph spawn",
        &[&["spawn", "go", "--name", "auth", "-m", "9"], &AGENT[..]].concat(),
    );
    let plain = [
        "spawn",
        "go",
        "--name",
        "plain",
        "-m",
        "9",
        "--no-tmux",
        "--share-workspace",
    ];
    note("ralph spawn --no-tmux", &[&plain[..], &AGENT].concat());
    until("the agent", || !test.events("auth", "spawned").is_empty());
    note("ralph pause", &["pause", "auth"]);
    note("ralph resume", &["resume", "auth"]);
    note("ralph set", &["set", "auth", "max-iterations=8"]);
    note("ralph say", &["say", "auth", "hello"]);
    note("ralph stop", &["stop", "auth"]);
    test.write("go", "");
    note("ralph wait", &["wait", "plain"]);
    note("ralph rm", &["rm", "auth"]);
    note("ralph ls --names", &["ls", "--names"]);
    note("ralph rm --ended", &["rm", "--ended"]);
    let rows = table("scripting.md", "## Lines");
    let listed: BTreeSet<String> = rows.iter().map(|row| quoted(&row[0]).remove(0)).collect();
    assert_eq!(
        listed,
        seen.iter()
            .map(|(command, _)| (*command).to_owned())
            .collect()
    );
    for (command, line) in &seen {
        let row = rows
            .iter()
            .find(|row| quoted(&row[0])[0] == *command)
            .unwrap();
        let template = &quoted(&row[1])[0];
        assert!(
            is_like(line, template),
            "{command} prints {line:?}, not {template:?}"
        );
    }
}

#[test]
fn every_line_of_iterations_log_is_documented() {
    let script = format!(
        "iteration 1\n exit 1\niteration 2\n say x\niteration 3\n {WAITS}\niteration 4\n sh touch there; sleep 60\n\
         iteration *\n promise COMPLETE\n"
    );
    let test = Test::new().script(&script);
    let live = test.start(&run(&["--backoff", "1ms..1ms"]));
    until("the agent", || test.workspace().join("here").exists());
    crash(live);
    test.write("go", "");
    let live = test.start(&["resume", "a"]);
    until("the agent", || test.workspace().join("there").exists());
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    test.ralph(&["resume", "a"]).exits(0);
    let templates = names("scripting.md", "`iterations.log` in a loop's directory");
    let log = test.read_loop("a", "iterations.log");
    let mut used = BTreeSet::new();
    for line in log.lines() {
        let fitting: Vec<&String> = templates
            .iter()
            .filter(|template| is_like(line, template))
            .collect();
        assert_eq!(fitting.len(), 1, "{line:?} is like {fitting:?}");
        used.extend(fitting);
    }
    assert_eq!(used, templates.iter().collect(), "{log}");
}

#[test]
fn every_json_object_has_the_documented_fields() {
    let test = Test::git().script("iteration 1\n promise COMPLETE\n");
    let done = test.ralph(
        &[
            &[
                "spawn",
                "go",
                "--name",
                "a",
                "--json",
                "--notify",
                "cat >told",
            ],
            &AGENT[..],
        ]
        .concat(),
    );
    let spawned: Value = serde_json::from_str(&done.exits(0).out).unwrap();
    assert_eq!(
        fields(&spawned),
        names("scripting.md", "## `ralph spawn --json`")
    );
    until_status(&test, "a", "done");
    test.ralph(&["wait", "a"]).exits(0);
    let listed = names("scripting.md", "## `ralph status --json`");
    assert_eq!(fields(&test.status("a")), listed);
    let all: Value = serde_json::from_str(&test.ralph(&["ls", "--json"]).exits(0).out).unwrap();
    assert_eq!(fields(&all[0]), listed);
    let notification: Value = serde_json::from_str(&test.read("told")).unwrap();
    assert_eq!(
        fields(&notification),
        names("scripting.md", "## `--notify`")
    );
    let posted = test
        .ralph(&["bus", "tail", "a", "--json"])
        .exits(0)
        .json_lines();
    assert_eq!(fields(&posted[0]), names("bus.md", "## The file"));
}

#[test]
fn notify_for_a_pause_has_the_documented_fields() {
    let test = Test::new().script(&format!("iteration *\n {WAITS}\n"));
    let live = test.start(&run(&["--notify", "cat >told"]));
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    live.end().exits(3);
    let notification: Value = serde_json::from_str(&test.read("told")).unwrap();
    let mut listed = names("scripting.md", "## `--notify`");
    for only_at_an_ending in ["at", "at_ms", "ms", "end"] {
        assert!(listed.remove(only_at_an_ending));
    }
    assert_eq!(fields(&notification), listed);
}

#[test]
fn every_process_has_the_documented_variables() {
    let test = Test::new().script("iteration 1\n sh env >agent\n promise COMPLETE\n");
    test.ralph(&run(&["--check", "env >check", "--notify", "env >notify"]))
        .exits(0);
    let rows = table("scripting.md", "## Variables");
    for (column, file) in [(1, "agent"), (2, "check"), (3, "notify")] {
        let listed: BTreeSet<String> = rows
            .iter()
            .filter(|row| row[column] == "yes")
            .flat_map(|row| quoted(&row[0]))
            .collect();
        let env = test.read(file);
        let ours = |name: &&str| name.starts_with("RALPH_") || *name == "TASK_FOLDER";
        // This one is set by the test itself.
        let not_ours = ["RALPH_STATE_DIR"];
        let has = env
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(_, value)| !value.is_empty());
        let has: BTreeSet<String> = has
            .map(|(name, _)| name)
            .filter(ours)
            .filter(|name| !not_ours.contains(name))
            .map(str::to_owned)
            .collect();
        assert_eq!(has, listed, "{file}");
    }
}
