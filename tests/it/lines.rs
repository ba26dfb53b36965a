//! The console's lines and the help, compared as whole texts, so that no change goes unnoticed.

use crate::kit::Test;
use crate::snap;
use regex::Regex;
use std::fs;

/// Replaces values that differ from run to run with placeholders.
fn normalize(test: &Test, output: &str) -> String {
    let mut output = output.to_owned();
    for root in [
        fs::canonicalize(test.root()).unwrap(),
        test.root().to_owned(),
    ] {
        output = output.replace(&root.display().to_string(), "ROOT");
    }
    for (pattern, word) in [
        (r"duration: [^),]+", "duration: TIME"),
        (r"(green|red) \((exit \d+, )?[^)]+\)", "$1 (${2}TIME)"),
        (r"(?m)^(  took     \d+ iterations?), [^,]+", "$1, TIME"),
    ] {
        output = Regex::new(pattern)
            .unwrap()
            .replace_all(&output, word)
            .into_owned();
    }
    output
}

/// Runs a loop called `agent`, and compares everything it prints with a snapshot.
fn transcript(name: &str, script: &str, args: &[&str], code: i32) -> Test {
    let test = Test::git().script(script);
    let done = test.ralph(&run(args)).exits(code);
    snap::assert_snapshot(name, &normalize(&test, &done.out));
    test
}

fn run<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [
        &[
            "run",
            "mend it",
            "--name",
            "agent",
            "--agent",
            "script:../agent.script",
        ],
        args,
    ]
    .concat()
}

#[test]
fn the_lines_of_a_complete_loop_match_their_snapshot() {
    let script = "iteration 1\n  say looking around\niteration 2\n  write fixed\n  | yes\n";
    transcript(
        "complete",
        script,
        &["--check", "test -f fixed", "-m", "10"],
        0,
    );
    transcript(
        "limit",
        "iteration *\n  say looking around\n",
        &["-m", "2", "--no-promise"],
        0,
    );
}

#[test]
fn the_lines_of_a_retry_match_their_snapshot() {
    let script = "iteration 1\n  exit 1\niteration 2\n  exit 3\niteration 3\n  promise COMPLETE\n";
    transcript(
        "retrying",
        script,
        &["-m", "10", "--backoff", "1ms..300s"],
        0,
    );
}

#[test]
fn the_lines_of_five_failures_match_their_snapshot() {
    transcript(
        "failures",
        "iteration *\n  exit 1\n",
        &["-m", "10", "--backoff", "1ms..4ms"],
        1,
    );
}

#[test]
fn the_line_of_an_inactivity_timeout_matches_its_snapshot() {
    let script = "iteration 1\n  say thinking\n  hang\niteration 2\n  promise COMPLETE\n";
    transcript("inactivity", script, &["--inactivity-timeout", "1s"], 0);
}

#[test]
fn the_lines_of_a_done_pattern_match_their_snapshot() {
    let script = "iteration 1\n  say one is left\niteration 2\n  say All tasks complete\n  hang\n";
    transcript(
        "pattern",
        script,
        &["--done-pattern", "All tasks complete"],
        0,
    );
}

#[test]
fn the_lines_of_pause_and_resume_match_their_snapshot() {
    let wait = "sh until test -f go; do sleep 0.01; done";
    let script = format!("iteration 1\n  say working\n  {wait}\niteration 2\n  promise COMPLETE\n");
    let test = Test::git().script(&script);
    let live = test.start(&run(&["-m", "10"]));
    live.until_out("working");
    let paused = test.ralph(&["pause", "agent"]).exits(0).out;
    live.until_out("pausing");
    test.write("go", "");
    let first = live.end().exits(3).out;
    let again = test.ralph(&["pause", "agent"]).exits(0).err;
    let resumed = test.ralph(&["resume", "agent"]).exits(0).out;
    let all = [
        ("run", first),
        ("pause, from another terminal", paused),
        ("pause again, on standard error", again),
        ("resume", resumed),
    ];
    let all: Vec<String> = all
        .iter()
        .map(|(args, text)| format!("$ ralph {args}\n{text}"))
        .collect();
    snap::assert_snapshot("paused", &normalize(&test, &all.join("\n")));
}

#[test]
fn the_help_of_every_command_matches_its_snapshot() {
    let test = Test::new();
    let help = test.ralph(&["help"]).exits(0).out;
    snap::assert_snapshot("help/ralph", &help);
    let verbs = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .unwrap();
    let verbs = verbs
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = verbs
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        verbs.contains(&"run") && verbs.contains(&"doctor"),
        "{verbs:?}"
    );
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        let shown = test.ralph(&["help", verb]).exits(0).out;
        assert_eq!(test.ralph(&[verb, "--help"]).exits(0).out, shown, "{verb}");
        snap::assert_snapshot(&format!("help/{verb}"), &shown);
    }
    let kept = fs::read_dir(snap::dir().join("help")).unwrap().flatten();
    for file in kept.filter_map(|entry| entry.file_name().into_string().ok()) {
        let verb = file.trim_end_matches(".txt");
        assert!(
            verb == "ralph" || verbs.contains(&verb),
            "{file} is of no verb: remove it"
        );
    }
}
