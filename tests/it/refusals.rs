//! Commands with an unusable name, loop or directory: a clear error, a hint, and nothing is lost.

mod environment;
mod states;

use crate::kit::{Done, Test};
use std::fs;
use std::path::PathBuf;

const AGENT: [&str; 2] = ["--agent", "script:../agent.script"];

/// Returns every command that takes a loop's name, with this name.
fn verbs(name: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["attach", name],
        vec!["pause", name],
        vec!["resume", name],
        vec!["resume", name, "--answer", "yes"],
        vec!["resume", name, "--now"],
        vec!["say", name, "hello"],
        vec!["set", name, "max-iterations=3"],
        vec!["stop", name],
        vec!["wait", name],
        vec!["rm", name],
        vec!["logs", name],
        vec!["logs", name, "-f"],
        vec!["status", name],
        vec!["status", name, "--json"],
        vec!["bus", "tail", name],
        vec!["bus", "tail", name, "--project"],
        vec!["bus", "post", "--loop", name, "hello"],
    ]
}

/// Returns every command that starts a loop of this name.
fn starts(name: &str) -> Vec<Vec<&str>> {
    let args = |verb: &[&'static str]| [verb, &["go", "--name", name], &AGENT].concat();
    vec![
        args(&["run"]),
        args(&["spawn"]),
        args(&["spawn", "--no-tmux"]),
    ]
}

/// Returns all files except locks, which every reader rewrites, and files that a living runner
/// updates.
fn on_disk(test: &Test) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut dirs) = (Vec::new(), vec![test.state_dir(), test.workspace()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => dirs.push(path),
                _ if name.ends_with("lock")
                    || ["pulse", "state.json", "state.json.new"].contains(&&name[..]) => {}
                _ => files.push((path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

/// Asserts that the arguments are refused with this error and hint and exit code 2, and that
/// nothing on disk changes.
#[track_caller]
fn refused(test: &Test, args: &[&str], error: &str, hint: &str) {
    let before = on_disk(test);
    is_refusal(&test.ralph(args), args, error, hint);
    assert!(on_disk(test) == before, "{args:?} changed something");
}

#[track_caller]
fn is_refusal(done: &Done, args: &[&str], error: &str, hint: &str) {
    let stderr = done.err.clone();
    assert_eq!((done.code, &done.out[..]), (2, ""), "{args:?}: {stderr}");
    let (first, second) = stderr
        .split_once("\n  hint: ")
        .unwrap_or_else(|| panic!("{args:?}: no hint in {stderr}"));
    assert!(
        first.contains("ralph: error: ") && first.contains(error),
        "{args:?}: {error:?} is not in {stderr}"
    );
    assert!(
        second.contains(hint),
        "{args:?}: {hint:?} is not in {stderr}"
    );
}

/// Runs a loop of this name to the end.
fn done(test: &Test, name: &str) {
    test.ralph(&[&["run", "go", "--name", name], &AGENT[..]].concat())
        .exits(0);
}

/// Whatever the command, an unknown name is an error that suggests the closest one.
#[test]
fn an_unknown_name_is_refused_with_the_closest_name() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    done(&test, "painter");
    for args in verbs("paintr") {
        refused(
            &test,
            &args,
            "no loop is named `paintr`",
            "did you mean `painter`?",
        );
    }
    for args in verbs("zebra") {
        refused(
            &test,
            &args,
            "no loop is named `zebra`",
            "`ralph ls` lists all loops",
        );
    }
    let hidden = ["wait", "painter", "paintr"];
    refused(
        &test,
        &hidden,
        "no loop is named `paintr`",
        "did you mean `painter`?",
    );
    assert_eq!(test.ralph(&["ls", "--names"]).exits(0).out, "painter\n");
}

/// An invalid name is an error that explains valid names, and is never used as a path.
#[test]
fn an_invalid_name_is_refused() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    done(&test, "painter");
    let long = "a".repeat(64);
    for name in [
        "../loops/painter",
        "painter/",
        ".",
        "",
        "Painter",
        "a b",
        "é",
        "_x",
        "a\nb",
        &long,
    ] {
        for args in verbs(name).iter().chain(&starts(name)) {
            refused(
                &test,
                args,
                "is not a valid loop name",
                "use at most 63 characters: a-z, 0-9",
            );
        }
    }
}
